"""The functions of tinkerwire.auth, as scripts use them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tinkerwire as tw
from support.clients import KEY
from support.scripted import Answer, Scripted

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A credentials file with a key."""
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / ".tinker" / "credentials.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"default": "a", "keys": {"a": {"key": "tml-stored"}}}))
    file.chmod(0o600)
    return file


def test_without_credentials() -> None:
    """There is none; the check says where one may come from."""
    assert tw.auth.get_tinker_token() is None
    assert not tw.auth.tinker_has_credentials()
    with pytest.raises(tw.TinkerError, match=r"TINKER_API_KEY.*TINKER_CREDENTIAL_CMD.*credentials\.json"):
        tw.auth.raise_if_tinker_not_accessible()


def test_the_key(stored: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The key of the file, unless there is a command, which is not run, or one in the environment."""
    assert tw.auth.get_tinker_token() == "tml-stored"
    assert tw.auth.tinker_has_credentials()
    monkeypatch.setenv("TINKER_CREDENTIAL_CMD", f"touch {tmp_path / 'ran'}")
    assert tw.auth.get_tinker_token() is None
    assert tw.auth.tinker_has_credentials()
    monkeypatch.setenv("TINKER_API_KEY", KEY)
    assert tw.auth.get_tinker_token() == KEY
    assert not (tmp_path / "ran").exists()


def test_a_file_that_cannot_be_used(stored: Path) -> None:
    """It is an error, and not as if there were no credentials."""
    stored.write_text("{")
    for ask in (tw.auth.get_tinker_token, tw.auth.tinker_has_credentials):
        with pytest.raises(tw.TinkerError, match=r"credentials\.json"):
            ask()


def test_access(server: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    """One question of the server decides; what goes wrong is a TinkerError."""
    monkeypatch.setenv("TINKER_BASE_URL", server.url)
    monkeypatch.setenv("TINKER_API_KEY", KEY)
    tw.auth.raise_if_tinker_not_accessible()
    assert server.named("get_server_capabilities")[0].headers["x-api-key"] == KEY
    server.rules["get_server_capabilities"] = lambda _: Answer({"detail": "no"}, status=401)
    with pytest.raises(tw.AuthenticationError):
        tw.auth.raise_if_tinker_not_accessible()
    monkeypatch.setenv("TINKER_BASE_URL", "nowhere")
    with pytest.raises(tw.TinkerError, match=r"cannot be used: ValueError: base_url: 'nowhere'"):
        tw.auth.raise_if_tinker_not_accessible()
