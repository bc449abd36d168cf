"""The credentials file: read as the official SDK writes it, and only if nobody else can read it."""

from __future__ import annotations

import json
import os
import traceback
from pathlib import Path
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import KEY
from tinkerwire._credentials.credentials_file import read_default_key
from tinkerwire._credentials.sources import StaticCredential, resolve_credential
from tinkerwire_base.call import default_converter
from tinkerwire_generated.models import StoredCredentialsV1

DETAILS = {"org_details": {"name": "o"}, "user_details": {"email": "e@example.org"}}
KEYS = {
    "a": {"type": "manual", "key": KEY, "name": "mine"},
    "b": {"type": "generated", "key": "tml-other", "name": "n", "details": DETAILS},
    "c": {"type": "of the future", "name": "n"},
}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the file has to be; it is not there yet."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".tinker").mkdir(mode=0o700)
    return tmp_path / ".tinker" / "credentials.json"


def write(file: Path, content: Any, mode: int = 0o600) -> None:
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    file.chmod(mode)


@pytest.mark.parametrize(("default", "key"), [("a", KEY), ("b", "tml-other"), (None, None)])
def test_the_default_key(file: Path, default: str | None, key: str | None) -> None:
    """The key that the file calls the default; a file of the contract's form is understood."""
    content = {"version": 1, "default": default, "keys": {name: KEYS[name] for name in "ab"}}
    assert default_converter().structure(content, StoredCredentialsV1).default == default
    write(file, content | {"keys": KEYS})
    found = read_default_key()
    assert (found and found.reveal()) == key


def test_no_file(file: Path) -> None:
    """Without a file, or a folder for it, there is no key."""
    assert read_default_key() is None
    file.parent.rmdir()
    assert read_default_key() is None
    file.parent.write_text("")
    assert read_default_key() is None


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container whose user has no entry: what is said is what to do, and who needs no file goes on."""

    def fail() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", fail)
    with pytest.raises(tw.TinkerError, match="this user has no home: set HOME or TINKER_API_KEY"):
        resolve_credential(None, "https://example.org")
    assert resolve_credential(None, "http://127.0.0.1:1") is None


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o601, 0o666])
def test_a_file_that_others_can_use(file: Path, mode: int) -> None:
    """It is refused, with the mode, the file and what to do."""
    write(file, {"default": "a", "keys": KEYS}, mode)
    with pytest.raises(tw.TinkerError, match=rf"credentials.json.*mode {mode:04o}.*chmod 600.*TINKER_API_KEY"):
        read_default_key()


@pytest.mark.parametrize(
    "content",
    [
        "",
        f'{{"{KEY}',
        "[]",
        {"version": 2, "default": "a", "keys": KEYS},
        {"default": "z", "keys": KEYS},
        {"default": "c", "keys": KEYS},
        {"default": ["a"], "keys": KEYS},
        {"default": "a", "keys": [KEY]},
        {"default": "a", "keys": {"a": KEY}},
        {"default": "a", "keys": {"a": {"key": KEY + "\n"}}},
    ],
)
def test_a_file_that_is_none(file: Path, content: Any) -> None:
    """A file of another form is refused without showing what is in it, also to who looks into the frames."""
    write(file, content)
    with pytest.raises(tw.TinkerError, match=r"credentials.json: it.*or set TINKER_API_KEY") as caught:
        read_default_key()
    shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    frames = [line for line in shown.format() if __file__ not in line]
    assert any("credentials_file.py" in line for line in frames)
    assert KEY not in "".join(frames)


def test_a_file_that_cannot_be_read(file: Path) -> None:
    """A file that cannot be opened is an error, and not as if there were none."""
    file.mkdir()
    with pytest.raises(tw.TinkerError, match=r"credentials.json: it cannot be read \("):
        read_default_key()


def test_when_the_file_is_asked(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only when there is neither key nor command, and not for servers on this machine."""
    write(file, {"default": "a", "keys": KEYS})
    found = resolve_credential(None, "https://example.org")
    assert isinstance(found, StaticCredential)
    assert found.secret.reveal() == KEY
    assert resolve_credential(None, "http://127.0.0.1:1") is None
    write(file, "broken")
    monkeypatch.setenv("TINKER_CREDENTIAL_CMD", "false")
    assert not isinstance(resolve_credential(None, "https://example.org"), StaticCredential)
    monkeypatch.setenv("TINKER_API_KEY", "tml-x")
    assert isinstance(resolve_credential(None, "https://example.org"), StaticCredential)
