"""Copies of other people's weights, in the forms of old and new wires."""

from __future__ import annotations

import pytest

import tinkerwire as tw
from support.clients import open_client
from support.scripted import PATIENCE_S, ScriptedResponse, ScriptedServer

pytestmark = pytest.mark.timeout(60)
PATH = "tinker://other/weights/a"
COPY = "tinker://mine/weights/a"
HEADER = "x-tinker-weights-access-token"


@pytest.fixture(autouse=True)
def copies(server: ScriptedServer) -> None:
    server.rules["copy_weights"] = lambda _: ScriptedResponse({"tinker_path": COPY})


def sent(server: ScriptedServer) -> dict[str, object]:
    """The last body, without nulls."""
    return {key: value for key, value in server.bodies("copy_weights")[-1].items() if value is not None}


def test_into_a_project(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The project is named in the body, the token in a header; RestClient reads the environment, too."""
    with open_client(server.url, wire_version="0.38.0", project_id="p") as client:
        copy = client.copy_weights(PATH, ttl_seconds=60, weights_access_token="token")
        assert copy.result(PATIENCE_S) == COPY
        assert sent(server) == {"source_path": PATH, "destination_project_id": "p", "ttl_seconds": 60}
        assert server.named("copy_weights")[-1].headers[HEADER] == "token"
        rest = client.create_rest_client()
        rest.copy_weights(PATH, "q").result(PATIENCE_S)
        assert sent(server)["destination_project_id"] == "q"
        assert HEADER not in server.named("copy_weights")[-1].headers
        monkeypatch.setenv("TINKER_PROJECT_ID", "r")
        rest.copy_weights(PATH).result(PATIENCE_S)
        assert sent(server)["destination_project_id"] == "r"
    assert not server.named("create_session")


def test_into_a_session(server: ScriptedServer) -> None:
    """Before wire 0.34.0 the copy is one of the session's models, and the token is in the body."""
    with open_client(server.url, wire_version="0.30.4") as client:
        client.copy_weights(PATH, weights_access_token="token").result(PATIENCE_S)
        expected = {"source_path": PATH, "session_id": "s1", "model_seq_id": 0, "weights_access_token": "token"}
        assert sent(server) == expected
        with pytest.raises(tw.TinkerError, match="session_id"):
            client.create_rest_client().copy_weights(PATH, "p").result(PATIENCE_S)
    assert len(server.named("copy_weights")) == 1


def test_what_is_refused(server: ScriptedServer) -> None:
    """No project, no path, and a wire without the call; nothing is sent."""
    with open_client(server.url, wire_version="0.38.0") as client:
        with pytest.raises(ValueError, match="into which project"):
            client.copy_weights(PATH).result(PATIENCE_S)
        with pytest.raises(ValueError, match="destination_project_id: give the id of a project"):
            client.create_rest_client().copy_weights(PATH)
        with pytest.raises(ValueError, match="path: '' is empty"):
            client.copy_weights("")
    with open_client(server.url) as old, pytest.raises(tw.DialectError, match=r"copy_weights.*0\.16\.1"):
        old.copy_weights(PATH).result(PATIENCE_S)
    assert not server.named("copy_weights")
