"""Tests of the functions of tinkerwire.auth, as scripts use them."""

from __future__ import annotations

from pathlib import Path

import pytest

import tinkerwire as tw
from support.auth_cases import AUTH_CASES
from support.clients import KEY
from support.scripted import ScriptedResponse, ScriptedServer

pytestmark = pytest.mark.timeout(60)


def test_missing_credentials_raise_error_that_names_sources() -> None:
    """Without credentials, get_tinker_token() returns None, and the error of the check names their sources."""
    assert tw.auth.get_tinker_token() is None
    assert not tw.auth.tinker_has_credentials()
    with pytest.raises(tw.TinkerError, match=r"TINKER_API_KEY.*TINKER_CREDENTIAL_CMD.*credentials\.json"):
        tw.auth.raise_if_tinker_not_accessible()


@pytest.mark.parametrize("name", AUTH_CASES)
def test_results_equal_those_of_the_official_helpers(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For any content of file and variables, the results equal those of SDK 0.38.0, without an exception."""
    case = AUTH_CASES[name]
    case.put(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable, value in case.variables.items():
        monkeypatch.setenv(variable, value)
    assert tw.auth.get_tinker_token() == case.key
    assert tw.auth.tinker_has_credentials() == case.has_credentials


def test_folder_instead_of_the_credentials_file_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder at the path of the credentials file counts as a missing file."""
    (tmp_path / ".tinker" / "credentials.json").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert tw.auth.get_tinker_token() is None
    assert not tw.auth.tinker_has_credentials()


def test_credential_check_does_not_run_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A credential command counts as a credential and does not run."""
    monkeypatch.setenv("TINKER_CREDENTIAL_CMD", f"touch {tmp_path / 'ran'}")
    assert tw.auth.get_tinker_token() is None
    assert tw.auth.tinker_has_credentials()
    assert not (tmp_path / "ran").exists()


def test_access_check_does_not_retry(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is down raises an error at once."""
    monkeypatch.setenv("TINKER_BASE_URL", server.url)
    server.rules["get_server_capabilities"] = lambda _: ScriptedResponse(status=503)
    with pytest.raises(tw.InternalServerError):
        tw.auth.raise_if_tinker_not_accessible()
    assert len(server.named("get_server_capabilities")) == 1


def test_access_check_sends_one_request(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """One request decides; every failure is a TinkerError."""
    monkeypatch.setenv("TINKER_BASE_URL", server.url)
    monkeypatch.setenv("TINKER_API_KEY", KEY)
    tw.auth.raise_if_tinker_not_accessible()
    assert server.named("get_server_capabilities")[0].headers["x-api-key"] == KEY
    server.rules["get_server_capabilities"] = lambda _: ScriptedResponse({"detail": "no"}, status=401)
    with pytest.raises(tw.AuthenticationError):
        tw.auth.raise_if_tinker_not_accessible()
    monkeypatch.setenv("TINKER_BASE_URL", "nowhere")
    with pytest.raises(tw.TinkerError, match=r"cannot access the Tinker service: ValueError: base_url: 'nowhere'"):
        tw.auth.raise_if_tinker_not_accessible()
