"""Timestamps of the wire, the same on every Python from 3.10 on."""

from __future__ import annotations

import inspect
import shutil
import subprocess
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinkerwire_base import timestamps
from tinkerwire_base.timestamps import parse_timestamp

UTC = timezone.utc
READ = [
    ("2025-01-31T12:00:00Z", datetime(2025, 1, 31, 12, tzinfo=UTC)),
    ("2025-01-31t12:00:00z", datetime(2025, 1, 31, 12, tzinfo=UTC)),
    ("2025-01-31 12:00:00", datetime(2025, 1, 31, 12, tzinfo=UTC)),
    ("2025-01-31T12:00:00.5Z", datetime(2025, 1, 31, 12, 0, 0, 500_000, tzinfo=UTC)),
    ("2025-01-31T12:00:00.123456789Z", datetime(2025, 1, 31, 12, 0, 0, 123_456, tzinfo=UTC)),
    ("2025-01-31T12:00:00.12+05:30", datetime(2025, 1, 31, 6, 30, 0, 120_000, tzinfo=UTC)),
    ("2025-01-31T12:00:00-0800", datetime(2025, 1, 31, 20, tzinfo=UTC)),
    (" 2025-01-31T12:00:00Z\n", datetime(2025, 1, 31, 12, tzinfo=UTC)),
]
INVALID = ["", "soon", "2025-01-31", "2025-02-30T00:00:00Z", "2025-01-31T25:00:00Z", "2025-01-31T12:00:00+99:99"]


@pytest.mark.parametrize(("text", "moment"), READ)
def test_timestamps_parse_to_aware_datetimes(text: str, moment: datetime) -> None:
    """Z, offsets, fractions of any length and a blank for the T are read; without an offset it is UTC."""
    parsed_time = parse_timestamp(text)
    assert parsed_time == moment and parsed_time.tzinfo is not None


@pytest.mark.parametrize("value", [*INVALID, None, 1738324800, datetime(2025, 1, 31)])
def test_invalid_timestamp_raises_value_error(value: Any) -> None:
    """Anything else raises a ValueError that shows it."""
    with pytest.raises(ValueError, match="expected an RFC 3339 timestamp") as caught:
        parse_timestamp(value)
    assert repr(value) in str(caught.value)


@settings(max_examples=60)
@given(
    st.datetimes(
        timezones=st.timedeltas(-timedelta(hours=14), timedelta(hours=14)).map(
            lambda d: timezone(truncate_to_minutes(d))
        )
    )
)
def test_isoformat_survives_a_round_trip(moment: datetime) -> None:
    """The isoformat of any aware datetime parses to an equal datetime."""
    assert parse_timestamp(moment.isoformat()) == moment


def truncate_to_minutes(delta: timedelta) -> timedelta:
    return timedelta(minutes=delta // timedelta(minutes=1))


def find_pythons(version: str) -> list[str]:
    # pyenv's own first: what it puts into the path does not run while a version is not switched on.
    interpreters = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    on_path = shutil.which(f"python{version}")
    return [*map(str, interpreters), *([on_path] if on_path else [])]


@pytest.mark.parametrize("version", ["3.10", "3.12", "3.13"])
def test_all_python_versions_parse_alike(version: str) -> None:
    """Python 3.10 parses neither Z nor unusual fractions, and newer versions parse more than the wire has."""
    python = next(
        (path for path in find_pythons(version) if subprocess.run([path, "-c", ""], check=False).returncode == 0), None
    )
    if python is None:
        pytest.skip(f"missing: python{version}")
    program = f"""
from __future__ import annotations
{inspect.getsource(timestamps).partition("from __future__ import annotations")[2]}
for text in {[text for text, _ in READ] + INVALID!r}:
    try:
        print(parse_timestamp(text).isoformat())
    except ValueError:
        print("refused")
"""
    run = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True)
    expected = [parse_timestamp(text).isoformat() for text, _ in READ] + ["refused"] * len(INVALID)
    assert run.stdout.splitlines() == expected
