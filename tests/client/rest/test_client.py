"""RestClient: the request and the result of each method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import tinkerwire as tw
from support.clients import open_client
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer
from tinkerwire import types

pytestmark = pytest.mark.timeout(60)
PATH = "tinker://m1/weights/a"
SAMPLER_PATH = "tinker://m1/sampler_weights/b"
CURSOR = {"offset": 0, "limit": 20, "total_count": 1}
RUN = {
    "training_run_id": "m1",
    "base_model": "base",
    "model_owner": "me",
    "is_lora": True,
    "lora_rank": 8,
    "last_request_time": "2026-01-01T00:00:00Z",
}
CHECKPOINT = {
    "checkpoint_id": "weights/a",
    "checkpoint_type": "training",
    "time": "2026-01-01T00:00:00+00:00",
    "tinker_path": PATH,
}
ROUTE = "training_runs/m1/checkpoints/weights/a"
CHECKPOINTS = {"checkpoints": [CHECKPOINT], "cursor": CURSOR}
Json = dict[str, Any]
RestCall = Callable[[tw.RestClient], "tw.APIFuture[Any]"]


class MethodCase(NamedTuple):
    """A call of a method, its request, and the server's response."""

    call: RestCall
    method: str
    path: str
    query: dict[str, str]
    body: Json | None
    response: Json


METHODS: dict[str, MethodCase] = {
    "capabilities": MethodCase(
        lambda rest: rest.get_server_capabilities(),
        "GET",
        "get_server_capabilities",
        {},
        None,
        {"supported_models": [{"model_name": "b"}]},
    ),
    "run": MethodCase(lambda rest: rest.get_training_run("m1"), "GET", "training_runs/m1", {}, None, RUN),
    "accessible run": MethodCase(
        lambda rest: rest.get_training_run("m1", "accessible"),
        "GET",
        "training_runs/m1",
        {"access_scope": "accessible"},
        None,
        RUN,
    ),
    "run by path": MethodCase(
        lambda rest: rest.get_training_run_by_tinker_path(SAMPLER_PATH),
        "GET",
        "training_runs/m1",
        {},
        None,
        RUN,
    ),
    "weights info": MethodCase(
        lambda rest: rest.get_weights_info_by_tinker_path(PATH),
        "POST",
        "weights_info",
        {},
        {"tinker_path": PATH},
        {"base_model": "b", "is_lora": True, "lora_rank": 4},
    ),
    "runs": MethodCase(
        lambda rest: rest.list_training_runs(),
        "GET",
        "training_runs",
        {"limit": "20", "offset": "0"},
        None,
        {"training_runs": [RUN], "cursor": CURSOR},
    ),
    "page of runs": MethodCase(
        lambda rest: rest.list_training_runs(5, 10, "accessible"),
        "GET",
        "training_runs",
        {"limit": "5", "offset": "10", "access_scope": "accessible"},
        None,
        {"training_runs": [], "cursor": CURSOR},
    ),
    "checkpoints": MethodCase(
        lambda rest: rest.list_checkpoints("m1"),
        "GET",
        "training_runs/m1/checkpoints",
        {},
        None,
        {"checkpoints": [CHECKPOINT]},
    ),
    "all checkpoints": MethodCase(
        lambda rest: rest.list_user_checkpoints(7, 3),
        "GET",
        "checkpoints",
        {"limit": "7", "offset": "3"},
        None,
        CHECKPOINTS,
    ),
    "delete": MethodCase(lambda rest: rest.delete_checkpoint("m1", "weights/a"), "DELETE", ROUTE, {}, None, {}),
    "delete by path": MethodCase(
        lambda rest: rest.delete_checkpoint_from_tinker_path(PATH), "DELETE", ROUTE, {}, None, {}
    ),
    "publish": MethodCase(
        lambda rest: rest.publish_checkpoint_from_tinker_path(PATH), "POST", f"{ROUTE}/publish", {}, None, {}
    ),
    "unpublish": MethodCase(
        lambda rest: rest.unpublish_checkpoint_from_tinker_path(PATH),
        "DELETE",
        f"{ROUTE}/publish",
        {},
        None,
        {},
    ),
    "ttl": MethodCase(
        lambda rest: rest.set_checkpoint_ttl_from_tinker_path(PATH, 60),
        "PUT",
        f"{ROUTE}/ttl",
        {},
        {"ttl_seconds": 60},
        {},
    ),
    "no ttl": MethodCase(
        lambda rest: rest.set_checkpoint_ttl_from_tinker_path(PATH, None),
        "PUT",
        f"{ROUTE}/ttl",
        {},
        {"ttl_seconds": None},
        {},
    ),
    "session": MethodCase(
        lambda rest: rest.get_session("s1"),
        "GET",
        "sessions/s1",
        {},
        None,
        {"training_run_ids": ["m1"], "sampler_ids": []},
    ),
    "sessions": MethodCase(
        lambda rest: rest.list_sessions(2, 4),
        "GET",
        "sessions",
        {"limit": "2", "offset": "4"},
        None,
        {"sessions": ["s1"]},
    ),
    "sampler": MethodCase(
        lambda rest: rest.get_sampler("s1:sample:0"),
        "GET",
        "samplers/s1:sample:0",
        {},
        None,
        {"sampler_id": "s1:sample:0", "base_model": "b"},
    ),
}


@pytest.mark.parametrize("case", METHODS.values(), ids=METHODS)
def test_method_sends_its_request_and_returns_its_result(
    server: ScriptedServer, rest: tw.RestClient, case: MethodCase
) -> None:
    """Each method sends the method, path, query and body of the wire; an empty response gives None."""
    server.rules[case.path] = lambda _: ScriptedResponse(case.response)
    result = case.call(rest).result(TEST_TIMEOUT_S)
    (request,) = server.requests
    assert (request.method, request.name, request.query, request.body) == case[1:5]
    assert (result is None) == (case.response == {})


@pytest.mark.parametrize(
    "response",
    [
        ScriptedResponse(b"", status=204),
        ScriptedResponse(b"null"),
        ScriptedResponse({"any": "thing"}),
        ScriptedResponse(b""),
    ],
    ids=str,
)
def test_calls_without_a_result_accept_any_success(
    server: ScriptedServer, rest: tw.RestClient, response: ScriptedResponse
) -> None:
    """Delete, publish and set_ttl return None after any successful response."""
    server.rules[ROUTE] = server.rules[f"{ROUTE}/publish"] = server.rules[f"{ROUTE}/ttl"] = lambda _: response
    for future in (
        rest.delete_checkpoint_from_tinker_path(PATH),
        rest.publish_checkpoint_from_tinker_path(PATH),
        rest.set_checkpoint_ttl_from_tinker_path(PATH, 1),
    ):
        assert future.result(TEST_TIMEOUT_S) is None


@pytest.mark.parametrize("status", [404, 405])
def test_missing_endpoint_is_named(server: ScriptedServer, rest: tw.RestClient, status: int) -> None:
    """If the server lacks an endpoint, the error names its address, after one request."""
    server.rules["checkpoints"] = lambda _: ScriptedResponse({"detail": "Not Found"}, status=status)
    with pytest.raises(tw.APIStatusError, match=f"/api/v1/checkpoints: HTTP {status}: .*Not Found"):
        rest.list_user_checkpoints().result(TEST_TIMEOUT_S)
    assert len(server.requests) == 1


NEWER_METHODS: dict[str, MethodCase] = {
    "runs of a project": MethodCase(
        lambda rest: rest.list_training_runs(project_id="p"),
        "GET",
        "training_runs",
        {"limit": "20", "offset": "0", "project_id": "p"},
        None,
        {"training_runs": [], "cursor": CURSOR},
    ),
    "external weights": MethodCase(
        lambda rest: rest.get_external_weights_urls("tinker://m1/external_weights/a"),
        "GET",
        "training_runs/m1/checkpoints/external_weights/a/external_weights_urls",
        {},
        None,
        {"urls": {"a.age": "https://x"}, "expires": "2026-01-01T00:00:00Z"},
    ),
    "project of a session": MethodCase(
        lambda rest: rest.assign_session_project("s1", "p"),
        "PUT",
        "sessions/s1/project",
        {},
        {"project_id": "p"},
        {},
    ),
    "search": MethodCase(
        lambda rest: rest.search_sessions(types.SessionSearchRequest(display_name="d", limit=7)),
        "POST",
        "sessions/search",
        {},
        {"user_metadata": {}, "owner": {"type": "own"}, "limit": 7, "display_name": "d"},
        {"sessions": []},
    ),
}


@pytest.mark.parametrize("case", NEWER_METHODS.values(), ids=NEWER_METHODS)
def test_newer_method_needs_a_newer_wire(server: ScriptedServer, case: MethodCase) -> None:
    """Methods that wire 0.16.1 lacks send the requests of the newest wire, and raise DialectError on wire 0.16.1."""
    server.rules[case.path] = lambda _: ScriptedResponse(case.response)
    with open_client(server.url, wire_version="0.38.0") as client:
        result = case.call(client.create_rest_client()).result(TEST_TIMEOUT_S)
    (request,) = server.requests
    sent = {key: value for key, value in request.body.items() if value is not None} if request.body else request.body
    assert (request.method, request.name, request.query, sent) == case[1:5]
    assert (result is None) == (case.response == {})
    with open_client(server.url) as old_client, pytest.raises(tw.DialectError, match=r"0\.16\.1"):
        case.call(old_client.create_rest_client()).result(TEST_TIMEOUT_S)
    assert len(server.requests) == 1


def test_wrong_kind_of_weights_or_search_is_rejected(server: ScriptedServer, rest: tw.RestClient) -> None:
    """Before a request, a path of other weights raises ValueError, and a dict as a search raises TypeError."""
    with pytest.raises(ValueError, match="must be external weights, got training weights"):
        rest.get_external_weights_urls(PATH)
    with pytest.raises(TypeError, match="expected a SessionSearchRequest, got dict"):
        rest.search_sessions({"limit": 3})  # type: ignore[arg-type]
    assert not server.requests


# The server parses the path of weights_info.
PATH_METHODS = {name for name in dir(tw.RestClient) if name.endswith("_tinker_path")} - {
    "get_weights_info_by_tinker_path"
}


@pytest.mark.parametrize("name", sorted(PATH_METHODS))
@pytest.mark.parametrize("path", ["", " ", "tinker://m1", "m1", "tinker://", "/"])
def test_path_without_ids_is_rejected_before_sending(
    server: ScriptedServer, rest: tw.RestClient, name: str, path: str
) -> None:
    """Methods that need ids reject a path without ids, before a request."""
    with pytest.raises(ValueError, match=r"^tinker_path: "):
        getattr(rest, name)(path, *([1] if "ttl" in name else []))
    assert not server.requests


@pytest.mark.parametrize(
    ("run", "checkpoint"), [("", "weights/a"), ("..", "weights/a"), ("m", "weights/../.."), ("m", "")]
)
def test_id_that_changes_the_request_path_is_rejected(
    server: ScriptedServer, rest: tw.RestClient, run: str, checkpoint: str
) -> None:
    """The client rejects an id that would change the path of the request, before sending."""
    with pytest.raises(ValueError, match="cannot be part of a path"):
        rest.delete_checkpoint(run, checkpoint).result(TEST_TIMEOUT_S)
    assert not server.requests


def test_method_that_the_wire_lacks_is_rejected(server: ScriptedServer) -> None:
    """A method or argument that the wire lacks raises DialectError before a request."""
    with tw.ServiceClient(base_url=server.url, wire_version="0.4.1") as client:
        with pytest.raises(tw.DialectError, match=r"get_sampler.*0\.4\.1"):
            client.create_rest_client().get_sampler("s").result(TEST_TIMEOUT_S)
        client.create_rest_client().list_training_runs().result(TEST_TIMEOUT_S)
        with pytest.raises(tw.DialectError, match="access_scope"):
            client.create_rest_client().list_training_runs(access_scope="accessible").result(TEST_TIMEOUT_S)
    assert [request.name for request in server.requests] == ["training_runs"]
