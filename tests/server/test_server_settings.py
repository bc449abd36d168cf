"""Tests of the arguments of EmbeddedServer and Quirks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tinkerwire.local import EmbeddedServer, Quirks


@pytest.mark.parametrize(
    ("name", "value", "error", "text"),
    [
        ("folder", 3, TypeError, "expected a path, got 3"),
        ("wire_version", 3, TypeError, "expected a str, got 3"),
        ("long_poll_s", "x", TypeError, "expected a number, got 'x'"),
        ("long_poll_s", -1, ValueError, "must be 0 or more seconds, got -1"),
        ("session_ttl_s", float("nan"), ValueError, "must be 0 or more seconds, got nan"),
        ("strict_sequence", "no", TypeError, "expected True or False, got 'no'"),
        ("gap_wait_s", True, TypeError, "expected a number, got True"),
        ("fault_injection", {}, TypeError, "expected a FaultInjection"),
        ("quirks", "short_paths", TypeError, "expected a Quirks, got 'short_paths'"),
        ("seed", 1.5, TypeError, "expected a whole number, got 1.5"),
        ("max_queued_samples", -1, ValueError, "must be at least 0, got -1"),
        ("max_inline_bytes", 1.5, TypeError, "expected a whole number, got 1.5"),
        ("aliases", ["a"], TypeError, "expected a mapping"),
        ("client_config", ["a"], TypeError, "expected a mapping"),
        ("retention", 3, TypeError, "expected a RetentionPolicy, got 3"),
        ("clock", 3, TypeError, "expected a function, got 3"),
    ],
)
def test_invalid_argument_is_named(name: str, value: Any, error: type[Exception], text: str, tmp_path: Path) -> None:
    """The error comes before the folder is used."""
    folder = tmp_path / "data"
    with pytest.raises(error, match=f"{name}:? {text}"):
        EmbeddedServer(**{"folder": folder, name: value})
    assert not folder.exists()


def test_error_does_not_show_a_key(tmp_path: Path) -> None:
    """A key of the wrong type is a key all the same."""
    with pytest.raises(TypeError, match=r"api_key: expected a str, got \(bytes\)"):
        EmbeddedServer(folder=tmp_path, api_key=b"secret")  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "value"), [("short_paths", "no"), ("result_delay_s", "x"), ("missing", 3)])
def test_quirk_of_the_wrong_type_is_named(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"{name}: expected "):
        Quirks(**{name: value})
