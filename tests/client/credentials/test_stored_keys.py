"""Tests of changes to the credentials file: they lose no data of other processes and later versions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinkerwire as tw
from support.clients import KEY
from tinkerwire._credentials.credentials_file import read_default_key
from tinkerwire._credentials.secret import Secret
from tinkerwire._credentials.stored_keys import add_key, find_key, list_keys, remove_key, use_key
from tinkerwire._files import LOCK_FILE
from tinkerwire_base.call import default_converter
from tinkerwire_generated.models import (
    ApiKeyDetails,
    ApiKeyOrgDetails,
    ApiKeyUserDetails,
    SelfApiKeyResponse,
    StoredCredentialsV1,
)

posix_only = pytest.mark.skipif(os.name != "posix", reason="only POSIX has file modes and these locks")
DETAILS = ApiKeyDetails(org_details=ApiKeyOrgDetails(name="o"), user_details=ApiKeyUserDetails(email="e@example.org"))
LATER_CONTENT = {
    "version": 1,
    "field_of_a_later_version": {"a": [1, None, 2**70, "\ud800"]},
    "default": "g",
    "keys": {
        "g": {"type": "generated", "key": "tml-g", "name": "made", "more": True},
        "c": {"type": "of a later version", "name": "n"},
    },
}


def describe_key(number: int, name: str = "mine") -> SelfApiKeyResponse:
    """Return a server's description of a key."""
    return SelfApiKeyResponse(key_id=number, name=name, note="for tests", details=DETAILS)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of the credentials file; neither the file nor its folder exists yet."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / ".tinker" / "credentials.json"


def write(file: Path, content: object, mode: int = 0o600) -> None:
    file.parent.mkdir(mode=0o700, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    file.chmod(mode)


def test_first_key_creates_the_file_for_its_owner_only(file: Path) -> None:
    """The file has the contract's format, and clients use the key; the umask does not matter."""
    mask = os.umask(0)
    try:
        stored = add_key(Secret(KEY), describe_key(7))
    finally:
        os.umask(mask)
    assert (stored.id, stored.name, stored.organization, stored.email) == ("7", "mine", "o", "e@example.org")
    assert stored.is_default
    default = read_default_key()
    assert default is not None
    assert default.reveal() == KEY
    content = json.loads(file.read_text())
    assert default_converter().structure(content, StoredCredentialsV1).keys.keys() == {"7"}
    assert KEY not in repr(stored)
    if os.name == "posix":
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert {path.name for path in file.parent.iterdir()} == {file.name, LOCK_FILE}


def test_every_change_keeps_unknown_data(file: Path) -> None:
    """Unknown fields of the file, unknown record types and unknown fields of records stay."""
    write(file, LATER_CONTENT)
    add_key(Secret(KEY), describe_key(7))
    use_key("made")
    remove_key("7")
    assert json.loads(file.read_text()) == LATER_CONTENT
    add_key(Secret("tml-g"), describe_key(7))
    assert json.loads(file.read_text())["keys"]["g"] == LATER_CONTENT["keys"]["g"]


def test_adding_a_stored_key_updates_its_description(file: Path) -> None:
    """The record keeps its type and its unknown fields."""
    write(file, {"keys": {"7": {"type": "generated", "key": KEY, "name": "old", "more": 1}}})
    add_key(Secret(KEY), describe_key(7, "new"))
    record = json.loads(file.read_text())["keys"]["7"]
    assert (record["type"], record["name"], record["more"]) == ("generated", "new", 1)


def test_adding_a_key_does_not_overwrite_another_one_with_its_id(file: Path) -> None:
    """Ids of different servers may be equal; the error names the command that removes the stored key."""
    add_key(Secret(KEY), describe_key(7))
    before = file.read_bytes()
    with pytest.raises(tw.TinkerError, match=r"another key, 'mine', has the id 7.*auth logout 7") as caught:
        add_key(Secret("tml-other"), describe_key(7, "other"))
    assert "tml-" not in str(caught.value)
    assert file.read_bytes() == before


def test_keys_are_found_by_id_or_name(file: Path) -> None:
    """An id has precedence over a name; the error for an ambiguous or unknown name lists keys."""
    for number, name in ((1, "a"), (2, "b"), (3, "b"), (4, "1")):
        add_key(Secret(f"{KEY}{number}"), describe_key(number, name))
    assert use_key("a").id == "1"
    assert find_key(None).id == "1"
    assert find_key("1").id == "1"
    with pytest.raises(tw.TinkerError, match=r"2 keys have this name; use the id: 2 \(b\), 3 \(b\)"):
        use_key("b")
    with pytest.raises(tw.TinkerError, match=r"no key with this id or name: 1 \(a\), 2") as caught:
        remove_key(f"{KEY}4")
    assert KEY not in str(caught.value)
    remove_key("1")
    assert read_default_key() is None
    with pytest.raises(tw.TinkerError, match=r"has no default key; give an id or a name: 2 \(b\)"):
        find_key(None)
    assert [key.id for key in list_keys()] == ["2", "3", "4"]


@pytest.mark.parametrize(
    "content",
    [
        "",
        f'{{"{KEY}',
        "[]",
        "[" * 100_000,
        {"version": 2, "keys": {}},
        {"keys": []},
        {"keys": [KEY]},
        {"keys": {"a": KEY}},
        {"keys": {}, "default": ["a"]},
    ],
    ids=lambda content: str(content)[:20],
)
def test_malformed_file_is_not_changed(file: Path, content: object) -> None:
    """Every change raises an error that does not show a key."""
    write(file, content)
    before = file.read_bytes()
    for change in (
        lambda: add_key(Secret("tml-n"), describe_key(1)),
        lambda: use_key("a"),
        lambda: remove_key("a"),
        list_keys,
    ):
        with pytest.raises(tw.TinkerError, match=r"credentials.json: .*repair or remove the file") as caught:
            change()
        assert KEY not in str(caught.value)
    assert file.read_bytes() == before
    assert {path.name for path in file.parent.iterdir()} == {file.name, LOCK_FILE}


@posix_only
def test_file_that_other_users_can_access_raises(file: Path) -> None:
    """The mode stays as it is, so that the user learns that others may have read the keys."""
    write(file, {"keys": {}}, 0o640)
    with pytest.raises(tw.TinkerError, match=r"mode 0640.*chmod 600"):
        add_key(Secret(KEY), describe_key(1))
    assert file.stat().st_mode & 0o777 == 0o640


@posix_only
def test_symbolic_link_is_kept_and_its_target_changed(file: Path, tmp_path: Path) -> None:
    """Users may keep the file in another folder."""
    target = tmp_path / "dotfiles" / "keys.json"
    target.parent.mkdir()
    write(target, {"keys": {}})
    file.parent.mkdir()
    file.symlink_to(target)
    add_key(Secret(KEY), describe_key(1))
    assert file.is_symlink()
    assert "1" in json.loads(target.read_text())["keys"]


def test_file_in_place_of_the_folder_raises(file: Path) -> None:
    """The error names the credentials file."""
    file.parent.write_text("")
    with pytest.raises(tw.TinkerError, match=r"credentials.json: cannot be written \("):
        add_key(Secret(KEY), describe_key(1))


WRITER = """
import sys
from tinkerwire._credentials.stored_keys import add_key, remove_key
from tinkerwire._credentials.secret import Secret
from tinkerwire_generated.models import *
details = ApiKeyDetails(org_details=ApiKeyOrgDetails(name="o"), user_details=ApiKeyUserDetails(email="e"))
for offset in range(30):
    number = int(sys.argv[1]) + offset
    add_key(Secret(f"tml-{number}"), SelfApiKeyResponse(key_id=number, name="n", note="", details=details))
    if offset % 2:
        remove_key(str(number))
"""


@posix_only
@pytest.mark.timeout(120)
def test_concurrent_processes_lose_no_key(file: Path) -> None:
    """Three processes add thirty keys each, and remove every second key that they added."""
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(1000 * n)]) for n in range(3)]
    assert [writer.wait(100) for writer in writers] == [0, 0, 0]
    assert sorted(int(key.id) for key in list_keys()) == [
        1000 * n + offset for n in range(3) for offset in range(0, 30, 2)
    ]


TEXT = st.text(max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
KEYS = st.dictionaries(TEXT, st.dictionaries(TEXT, JSON, max_size=3), max_size=3)
FILE = st.fixed_dictionaries(
    {}, optional={"version": st.just(1), "keys": st.none() | KEYS, "default": st.none() | TEXT, "more": JSON}
)


@given(FILE | JSON)
@settings(max_examples=200, deadline=None)
def test_any_content_is_kept_or_rejected(tmp_path_factory: pytest.TempPathFactory, content: Any) -> None:
    """Adding a key keeps all other data, or raises TinkerError and leaves the file unchanged."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder))
        file = folder / ".tinker" / "credentials.json"
        write(file, content)
        before = file.read_bytes()
        try:
            add_key(Secret(KEY), describe_key(7))
        except tw.TinkerError:
            assert file.read_bytes() == before
            return
        after = json.loads(file.read_text())
        assert after["keys"].pop("7")["key"] == KEY
        assert after["keys"] == {k: v for k, v in (content.get("keys") or {}).items() if k != "7"}
        own_keys = ("keys", "default", "version")
        assert {k: v for k, v in after.items() if k not in own_keys} == {
            k: v for k, v in content.items() if k not in own_keys
        }
