"""copy_weights: copies of shared weights, on old and new wires."""

from __future__ import annotations

import pytest

import tinkerwire as tw
from support.clients import open_client
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer

pytestmark = pytest.mark.timeout(60)
PATH = "tinker://other/weights/a"
COPY = "tinker://mine/weights/a"
HEADER = "x-tinker-weights-access-token"


@pytest.fixture(autouse=True)
def copy_endpoint(server: ScriptedServer) -> None:
    """Let the server copy weights."""
    server.rules["copy_weights"] = lambda _: ScriptedResponse({"tinker_path": COPY})


def read_last_body(server: ScriptedServer) -> dict[str, object]:
    """Return the body of the last copy_weights request, without nulls."""
    return {key: value for key, value in server.bodies("copy_weights")[-1].items() if value is not None}


def test_weights_are_copied_into_a_project(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The request has the project in its body and the token in a header; RestClient also reads the environment."""
    with open_client(server.url, wire_version="0.38.0", project_id="p") as client:
        copy = client.copy_weights(PATH, ttl_seconds=60, weights_access_token="token")
        assert copy.result(TEST_TIMEOUT_S) == COPY
        assert read_last_body(server) == {"source_path": PATH, "destination_project_id": "p", "ttl_seconds": 60}
        assert server.named("copy_weights")[-1].headers[HEADER] == "token"
        rest = client.create_rest_client()
        rest.copy_weights(PATH, "q").result(TEST_TIMEOUT_S)
        assert read_last_body(server)["destination_project_id"] == "q"
        assert HEADER not in server.named("copy_weights")[-1].headers
        monkeypatch.setenv("TINKER_PROJECT_ID", "r")
        rest.copy_weights(PATH).result(TEST_TIMEOUT_S)
        assert read_last_body(server)["destination_project_id"] == "r"
    assert not server.named("create_session")


def test_old_wire_copies_weights_into_a_session(server: ScriptedServer) -> None:
    """Before wire 0.34.0 the copy is a model of the session, and the token is in the body."""
    with open_client(server.url, wire_version="0.30.4") as client:
        client.copy_weights(PATH, weights_access_token="token").result(TEST_TIMEOUT_S)
        expected = {"source_path": PATH, "session_id": "s1", "model_seq_id": 0, "weights_access_token": "token"}
        assert read_last_body(server) == expected
        with pytest.raises(tw.TinkerError, match="session_id"):
            client.create_rest_client().copy_weights(PATH, "p").result(TEST_TIMEOUT_S)
    assert len(server.named("copy_weights")) == 1


def test_invalid_copy_is_rejected_before_sending(server: ScriptedServer) -> None:
    """A missing project, an empty path and a wire without copy_weights raise errors before a request."""
    with open_client(server.url, wire_version="0.38.0") as client:
        with pytest.raises(ValueError, match="the destination project is missing"):
            client.copy_weights(PATH).result(TEST_TIMEOUT_S)
        with pytest.raises(ValueError, match="destination_project_id: give the id of a project"):
            client.create_rest_client().copy_weights(PATH)
        with pytest.raises(ValueError, match="path: '' is empty"):
            client.copy_weights("")
    with open_client(server.url) as old_client, pytest.raises(tw.DialectError, match=r"copy_weights.*0\.16\.1"):
        old_client.copy_weights(PATH).result(TEST_TIMEOUT_S)
    assert not server.named("copy_weights")
