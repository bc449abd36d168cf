"""The credentials file between the official SDK 0.38.0 and tinkerwire: each reads and edits the other's file.

The name keeps the module out of the fast tests: run `pytest tests/rigs/official/credentials_suite.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.rigs.official.venv import ensure_official_python

from support.auth_cases import AUTH_CASES
from tinkerwire._credentials.credentials_file import read_default_key
from tinkerwire._credentials.secret import Secret
from tinkerwire._credentials.stored_keys import add_key, list_keys, remove_key, use_key
from tinkerwire_generated.models import ApiKeyDetails, ApiKeyOrgDetails, ApiKeyUserDetails, SelfApiKeyResponse

pytestmark = pytest.mark.timeout(1800)
START = """
from tinker.lib.credentials import *
store = JsonCredentialStore(default_credentials_path())
details = ApiKeyDetails(org_details=ApiKeyOrgDetails(name="o"), user_details=ApiKeyUserDetails(email="e"))
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a home folder for both."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def run_official(code: str) -> str:
    """Return the output of a program on the official SDK."""
    python = ensure_official_python("0.38.0")
    run = subprocess.run([str(python), "-I", "-c", START + code], capture_output=True, text=True, check=False)
    assert not run.returncode, run.stderr
    return run.stdout.strip()


def store_key(number: int) -> None:
    """Store a key as `tinkerwire auth login` does."""
    details = ApiKeyDetails(org_details=ApiKeyOrgDetails(name="o"), user_details=ApiKeyUserDetails(email="e"))
    add_key(Secret(f"tml-{number}"), SelfApiKeyResponse(key_id=number, name=f"n{number}", note="x", details=details))


def test_official_sdk_reads_our_credentials_file(home: Path) -> None:
    """The official SDK reads every stored key, and its clients would send it."""
    store_key(1)
    store_key(2)
    use_key("n1")
    key_fields = run_official(
        "key = store.get_default_key(); print(key.type, key.key, key.name, key.note, key.details == details)"
    )
    assert key_fields == "manual tml-1 n1 x True"
    assert run_official("import tinker; print(tinker.auth.get_tinker_token())") == "tml-1"
    remove_key("1")
    assert run_official("print(store.get_default_key(), store.get_key('2').key)") == "None tml-2"


def test_official_credentials_file_is_read(home: Path) -> None:
    """Both types of keys are read, and each side can edit the other's file."""
    run_official(
        "store.add_key('1', ManualKey(key='tml-1', name='n1'))\n"
        "store.add_key('2', GeneratedKey(key='tml-2', name='n2', details=details))\n"
        "store.set_default('2')"
    )
    keys = [(stored.id, stored.type, stored.name, stored.email, stored.is_default) for stored in list_keys()]
    assert keys == [("1", "manual", "n1", "", False), ("2", "generated", "n2", "e", True)]
    store_key(3)
    run_official("store.set_default('1'); store.delete_key('2')")
    key = read_default_key()
    assert key is not None
    assert key.reveal() == "tml-1"
    assert [stored.id for stored in list_keys()] == ["1", "3"]
    if os.name == "posix":
        assert (home / ".tinker" / "credentials.json").stat().st_mode & 0o777 == 0o600


AUTH_RESULTS = (
    "import json, tinker; print(json.dumps([tinker.auth.get_tinker_token(), tinker.auth.tinker_has_credentials()]))"
)


@pytest.mark.parametrize("name", AUTH_CASES)
def test_recorded_auth_results_are_official(name: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The results recorded for tests/client/test_auth.py are those of the official functions."""
    case = AUTH_CASES[name]
    case.put(home)
    for variable in ("TINKER_API_KEY", "TINKER_CREDENTIAL_CMD"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in case.variables.items():
        monkeypatch.setenv(variable, value)
    assert json.loads(run_official(AUTH_RESULTS)) == [case.key, case.has_credentials]
