"""Tests of reading the credentials file: its format is that of the official SDK, and only its owner may access it."""

from __future__ import annotations

import json
import os
import traceback
from pathlib import Path

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
    "c": {"type": "of a later version", "name": "n"},
}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of the credentials file, which does not exist yet, in an existing folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".tinker").mkdir(mode=0o700)
    return tmp_path / ".tinker" / "credentials.json"


def write(file: Path, content: object, mode: int = 0o600) -> None:
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    file.chmod(mode)


@pytest.mark.parametrize(("default", "key"), [("a", KEY), ("b", "tml-other"), (None, None)])
def test_default_key_is_read(file: Path, default: str | None, key: str | None) -> None:
    """The file may have the contract's format, and records of unknown types."""
    content = {"version": 1, "default": default, "keys": {name: KEYS[name] for name in "ab"}}
    assert default_converter().structure(content, StoredCredentialsV1).default == default
    write(file, content | {"keys": KEYS})
    secret = read_default_key()
    assert (secret and secret.reveal()) == key


def test_missing_file_has_no_key(file: Path) -> None:
    """A missing file, a missing folder, and a file in the folder's place do not raise."""
    assert read_default_key() is None
    file.parent.rmdir()
    assert read_default_key() is None
    file.parent.write_text("")
    assert read_default_key() is None


def test_missing_home_folder_raises_only_if_a_key_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container's user may have no home folder; the error names the variables to set."""

    def fail() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", fail)
    with pytest.raises(tw.TinkerError, match="this user has no home folder; set HOME or TINKER_API_KEY"):
        resolve_credential(None, "https://example.org")
    assert resolve_credential(None, "http://127.0.0.1:1") is None


@pytest.mark.skipif(os.name != "posix", reason="only POSIX has file modes")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o601, 0o666])
def test_file_that_other_users_can_access_raises(file: Path, mode: int) -> None:
    """The error names the file, its mode, and two remedies."""
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
def test_malformed_file_raises_without_showing_its_content(file: Path, content: object) -> None:
    """Neither the error nor a local variable of its frames contains a key."""
    write(file, content)
    with pytest.raises(tw.TinkerError, match=r"credentials.json: .*or set TINKER_API_KEY") as caught:
        read_default_key()
    report = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    frames = [line for line in report.format() if __file__ not in line]
    assert any("credentials_file.py" in line for line in frames)
    assert KEY not in "".join(frames)


def test_unreadable_file_raises(file: Path) -> None:
    """A file that cannot be opened does not count as missing."""
    file.mkdir()
    with pytest.raises(tw.TinkerError, match=r"credentials.json: cannot be read \("):
        read_default_key()


def test_file_is_read_only_without_key_and_command(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key, a command, or a loopback address makes the file unnecessary, even a broken one."""
    write(file, {"default": "a", "keys": KEYS})
    credential = resolve_credential(None, "https://example.org")
    assert isinstance(credential, StaticCredential)
    assert credential.secret.reveal() == KEY
    assert resolve_credential(None, "http://127.0.0.1:1") is None
    write(file, "broken")
    monkeypatch.setenv("TINKER_CREDENTIAL_CMD", "false")
    assert not isinstance(resolve_credential(None, "https://example.org"), StaticCredential)
    monkeypatch.setenv("TINKER_API_KEY", "tml-x")
    assert isinstance(resolve_credential(None, "https://example.org"), StaticCredential)
