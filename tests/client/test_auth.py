"""The functions of tinkerwire.auth, as scripts use them."""

from __future__ import annotations

from pathlib import Path

import pytest

import tinkerwire as tw
from support.auth_cases import AUTH_CASES
from support.clients import KEY
from support.scripted import ScriptedResponse, ScriptedServer

pytestmark = pytest.mark.timeout(60)


def test_without_credentials() -> None:
    """There is none; the check says where one may come from."""
    assert tw.auth.get_tinker_token() is None
    assert not tw.auth.tinker_has_credentials()
    with pytest.raises(tw.TinkerError, match=r"TINKER_API_KEY.*TINKER_CREDENTIAL_CMD.*credentials\.json"):
        tw.auth.raise_if_tinker_not_accessible()


@pytest.mark.parametrize("name", AUTH_CASES)
def test_answers_are_those_of_the_official_helpers(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the file and the variables hold, there is the same answer as in SDK 0.38.0, and no exception."""
    case = AUTH_CASES[name]
    case.put(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable, value in case.variables.items():
        monkeypatch.setenv(variable, value)
    assert tw.auth.get_tinker_token() == case.key
    assert tw.auth.tinker_has_credentials() == case.has_credentials


def test_a_folder_in_the_place_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is as if there were no file."""
    (tmp_path / ".tinker" / "credentials.json").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert tw.auth.get_tinker_token() is None
    assert not tw.auth.tinker_has_credentials()


def test_the_command_is_not_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It counts as a credential all the same."""
    monkeypatch.setenv("TINKER_CREDENTIAL_CMD", f"touch {tmp_path / 'ran'}")
    assert tw.auth.get_tinker_token() is None
    assert tw.auth.tinker_has_credentials()
    assert not (tmp_path / "ran").exists()


def test_access_is_asked_for_once(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is down gives an error at once, and not a wait."""
    monkeypatch.setenv("TINKER_BASE_URL", server.url)
    server.rules["get_server_capabilities"] = lambda _: ScriptedResponse(status=503)
    with pytest.raises(tw.InternalServerError):
        tw.auth.raise_if_tinker_not_accessible()
    assert len(server.named("get_server_capabilities")) == 1


def test_access(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """One question of the server decides; what goes wrong is a TinkerError."""
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
