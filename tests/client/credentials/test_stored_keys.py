"""Changes of the credentials file: nothing in it is lost, whoever else writes, and whatever else is there."""

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
from tinkerwire_base.call import default_converter
from tinkerwire_generated.models import (
    ApiKeyDetails,
    ApiKeyOrgDetails,
    ApiKeyUserDetails,
    SelfApiKeyResponse,
    StoredCredentialsV1,
)

posix_only = pytest.mark.skipif(os.name != "posix", reason="modes and locks are those of POSIX")
DETAILS = ApiKeyDetails(org_details=ApiKeyOrgDetails(name="o"), user_details=ApiKeyUserDetails(email="e@example.org"))
FOREIGN = {
    "version": 1,
    "of_the_future": {"a": [1, None, 2**70, "\ud800"]},
    "default": "g",
    "keys": {
        "g": {"type": "generated", "key": "tml-g", "name": "made", "more": True},
        "c": {"type": "of the future", "name": "n"},
    },
}


def about(number: int, name: str = "mine") -> SelfApiKeyResponse:
    """What a server says of a key."""
    return SelfApiKeyResponse(key_id=number, name=name, note="for tests", details=DETAILS)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the file has to be; neither it nor its folder is there yet."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / ".tinker" / "credentials.json"


def write(file: Path, content: Any, mode: int = 0o600) -> None:
    file.parent.mkdir(mode=0o700, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    file.chmod(mode)


def test_the_first_key_makes_the_file(file: Path) -> None:
    """Of the contract's form, for the owner alone, and the key is the one that clients take."""
    mask = os.umask(0)
    try:
        kept = add_key(Secret(KEY), about(7))
    finally:
        os.umask(mask)
    assert (kept.id, kept.name, kept.organization, kept.email) == ("7", "mine", "o", "e@example.org")
    assert kept.is_default
    found = read_default_key()
    assert found is not None
    assert found.reveal() == KEY
    content = json.loads(file.read_text())
    assert default_converter().structure(content, StoredCredentialsV1).keys.keys() == {"7"}
    assert KEY not in repr(kept)
    if os.name == "posix":
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert list(file.parent.iterdir()) == [file]


def test_what_is_not_known_stays(file: Path) -> None:
    """Fields of the file, records of another type and fields of records, through every change."""
    write(file, FOREIGN)
    add_key(Secret(KEY), about(7))
    use_key("made")
    remove_key("7")
    assert json.loads(file.read_text()) == FOREIGN
    add_key(Secret("tml-g"), about(7))
    assert json.loads(file.read_text())["keys"]["g"] == FOREIGN["keys"]["g"]


def test_a_key_that_is_there_is_described_anew(file: Path) -> None:
    """It stays of its type, and keeps what else is known of it."""
    write(file, {"keys": {"7": {"type": "generated", "key": KEY, "name": "old", "more": 1}}})
    add_key(Secret(KEY), about(7, "new"))
    record = json.loads(file.read_text())["keys"]["7"]
    assert (record["type"], record["name"], record["more"]) == ("generated", "new", 1)


def test_another_key_of_the_same_number_is_not_lost(file: Path) -> None:
    """Another server may count from one, too."""
    add_key(Secret(KEY), about(7))
    before = file.read_bytes()
    with pytest.raises(tw.TinkerError, match=r"another key, 'mine', has the number 7 .*auth logout 7") as caught:
        add_key(Secret("tml-other"), about(7, "other"))
    assert "tml-" not in str(caught.value)
    assert file.read_bytes() == before


def test_keys_go_by_id_or_name(file: Path) -> None:
    """A name that two have is refused with their ids; what there is not, with what there is."""
    for number, name in ((1, "a"), (2, "b"), (3, "b"), (4, "1")):
        add_key(Secret(f"{KEY}{number}"), about(number, name))
    assert use_key("a").id == "1"
    assert find_key(None).id == "1"
    assert find_key("1").id == "1"
    with pytest.raises(tw.TinkerError, match=r"2 keys have this name; use the id: 2 \(b\), 3 \(b\)"):
        use_key("b")
    with pytest.raises(tw.TinkerError, match=r"no key of that id or name: 1 \(a\), 2") as caught:
        remove_key(f"{KEY}4")
    assert KEY not in str(caught.value)
    remove_key("1")
    assert read_default_key() is None
    with pytest.raises(tw.TinkerError, match=r"has no default key; name one: 2 \(b\)"):
        find_key(None)
    assert [each.id for each in list_keys()] == ["2", "3", "4"]


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
def test_a_file_of_another_form_is_left_as_it_is(file: Path, content: Any) -> None:
    """Every change is refused, and none shows what is in it."""
    write(file, content)
    before = file.read_bytes()
    for change in (
        lambda: add_key(Secret("tml-n"), about(1)),
        lambda: use_key("a"),
        lambda: remove_key("a"),
        list_keys,
    ):
        with pytest.raises(tw.TinkerError, match=r"credentials.json: its? .*mend or remove it") as caught:
            change()
        assert KEY not in str(caught.value)
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


@posix_only
def test_a_file_that_others_can_use_is_refused(file: Path) -> None:
    """It is not mended in passing: whose keys others may have read has to hear of it."""
    write(file, {"keys": {}}, 0o640)
    with pytest.raises(tw.TinkerError, match=r"mode 0640.*chmod 600"):
        add_key(Secret(KEY), about(1))
    assert file.stat().st_mode & 0o777 == 0o640


@posix_only
def test_a_link_stays_one(file: Path, tmp_path: Path) -> None:
    """Whoever keeps the file elsewhere finds the change there."""
    elsewhere = tmp_path / "dotfiles" / "keys.json"
    elsewhere.parent.mkdir()
    write(elsewhere, {"keys": {}})
    file.parent.mkdir()
    file.symlink_to(elsewhere)
    add_key(Secret(KEY), about(1))
    assert file.is_symlink()
    assert "1" in json.loads(elsewhere.read_text())["keys"]


def test_a_folder_that_is_none(file: Path) -> None:
    """The error names the file."""
    file.parent.write_text("")
    with pytest.raises(tw.TinkerError, match=r"credentials.json: it cannot be written \("):
        add_key(Secret(KEY), about(1))


WRITER = """
import sys
from tinkerwire._credentials.stored_keys import add_key, remove_key
from tinkerwire._credentials.secret import Secret
from tinkerwire_generated.models import *
details = ApiKeyDetails(org_details=ApiKeyOrgDetails(name="o"), user_details=ApiKeyUserDetails(email="e"))
for each in range(30):
    number = int(sys.argv[1]) + each
    add_key(Secret(f"tml-{number}"), SelfApiKeyResponse(key_id=number, name="n", note="", details=details))
    if each % 2:
        remove_key(str(number))
"""


@posix_only
@pytest.mark.timeout(120)
def test_processes_that_write_at_once_lose_no_key(file: Path) -> None:
    """Three processes add thirty keys each, and take every second one of their own away again."""
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(1000 * n)]) for n in range(3)]
    assert [writer.wait(100) for writer in writers] == [0, 0, 0]
    assert sorted(int(each.id) for each in list_keys()) == [
        1000 * n + each for n in range(3) for each in range(0, 30, 2)
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
def test_any_content_is_kept_or_refused(tmp_path_factory: pytest.TempPathFactory, content: Any) -> None:
    """What a change does not concern is what it was before; a refusal is a TinkerError and changes nothing."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder))
        file = folder / ".tinker" / "credentials.json"
        write(file, content)
        before = file.read_bytes()
        try:
            add_key(Secret(KEY), about(7))
        except tw.TinkerError:
            assert file.read_bytes() == before
            return
        after = json.loads(file.read_text())
        assert after["keys"].pop("7")["key"] == KEY
        assert after["keys"] == {k: v for k, v in (content.get("keys") or {}).items() if k != "7"}
        known = ("keys", "default", "version")
        assert {k: v for k, v in after.items() if k not in known} == {
            k: v for k, v in content.items() if k not in known
        }
