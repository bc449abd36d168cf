"""Tests of the client's requests in a dialect against captures of the official SDK of that version."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import ADAM, PARAMS, PROMPT, open_client
from support.scripted import TEST_TIMEOUT_S, RecordedRequest, ScriptedResponse, ScriptedServer, in_order
from tinkerwire_base.conversion.converter import Converter
from tinkerwire_generated.operations import OPERATIONS

pytestmark = pytest.mark.timeout(60)
CAPTURES: dict[str, dict[str, Any]] = {
    capture["name"]: capture for capture in json.loads((Path(__file__).parents[2] / "facts/captures.json").read_text())
}
DATUM = tw.Datum(
    model_input=tw.ModelInput.from_ints([1, 2]), loss_fn_inputs={"target_tokens": [2, 3], "weights": [1.0, 1.0]}
)
OMITTED_REQUESTS: Mapping[str, str] = {
    "client/config": "the user sets the version, so the client discovers nothing",
    "client/dynamic_config": "only the cancellation of samples needs it, and requests it then",
    "telemetry": "only the official service receives telemetry",
}
"""Requests of the official SDK that this client does not send, and the reasons."""
DIFFERENCES: Mapping[str, str] = {
    "get_info": "the official SDK sends it when it creates a model, since 0.38.0 only then; this client on get_info()",
    "create_session": "old releases of the official SDK create the session first; this client when it needs one",
    "retrieve_future.allow_metadata_only": "this client does not request the size of a result before the result",
    "asample.record_stability_info": "the official SDK sends false; this client omits the field, which means the same",
    "auth/token": "the official SDK opens two connections, each with a separate token",
    "retrieve_futures": "the number depends on when samples end and when clients are closed",
    "training_runs?access_scope": "owned is the default of servers, which this client does not send",
}
"""Differences in requests that both clients send, and the reasons."""
TOKEN = "eyJhbGciOiJub25lIn0.eyJleHAiOjQxMDI0NDQ4MDB9.x"
"""Token that is valid until the year 2100."""
UNORDERED_REQUESTS = ("get_info", "create_session", "retrieve_futures", "auth/token")
"""Requests whose position and number may differ from those of the official SDK."""


def run_capture_steps(client: tw.ServiceClient, *, with_optimizer: bool) -> None:
    """Run the steps of the captures; the oldest SDK cannot load an optimizer's state."""
    client.get_server_capabilities()
    training = client.create_lora_training_client("base", rank=8)
    training.forward_backward([DATUM], "cross_entropy").result(TEST_TIMEOUT_S)
    training.forward([DATUM], "cross_entropy").result(TEST_TIMEOUT_S)
    training.optim_step(ADAM).result(TEST_TIMEOUT_S)
    path = training.save_state("a").result(TEST_TIMEOUT_S).path
    training.load_state(path).result(TEST_TIMEOUT_S)
    training.save_weights_for_sampler("a").result(TEST_TIMEOUT_S)
    training.get_info()
    sampling = client.create_sampling_client(base_model="base")
    sampling.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
    sampling.compute_logprobs(PROMPT).result(TEST_TIMEOUT_S)
    if with_optimizer:
        client.create_training_client_from_state_with_optimizer(path).result(TEST_TIMEOUT_S)
    else:
        client.create_training_client_from_state(path).result(TEST_TIMEOUT_S)
    client.create_rest_client().list_training_runs().result(TEST_TIMEOUT_S)


def list_finished_samples(server: ScriptedServer, request: RecordedRequest) -> dict[str, Any]:
    """Return the body of a retrieve_futures response in which all samples are finished."""
    request_ids = [
        f"asample/{number}/{body['seq_id']}" for number, body in server.created_futures if "num_samples" in body
    ]
    states = [{"state": "finished", "request_id": request_id} for request_id in request_ids]
    return {"completions": states[request.body["prev_cursor"] :], "cursor": len(request_ids)}


def record_client_requests(server: ScriptedServer, capture: Mapping[str, Any]) -> list[RecordedRequest]:
    """Return the client's requests in the dialect of a capture."""
    with_logprobs = {"sequences": [{"stop_reason": "stop", "tokens": [1]}], "prompt_logprobs": [None, -1.0]}
    server.on_poll("Sample", in_order(server.healthy_response, ScriptedResponse(with_logprobs)))
    server.rules["create_sampling_session"] = lambda _: ScriptedResponse({"sampling_session_id": "ss1"})
    run = {
        "training_run_id": "m1",
        "base_model": "base",
        "model_owner": "me",
        "is_lora": True,
        "lora_rank": 8,
        "user_metadata": {},
    }
    server.rules["retrieve_futures"] = lambda request: ScriptedResponse(list_finished_samples(server, request))
    server.rules["auth/token"] = lambda _: ScriptedResponse({"jwt": TOKEN})
    server.rules["training_runs/m1"] = lambda _: ScriptedResponse({**run, "last_request_time": "2026-01-01T00:00:00Z"})
    version = capture["version"]
    with open_client(server.url, wire_version=version, client_config=capture["client_config"]) as client:
        run_capture_steps(client, with_optimizer=version != "0.4.1")
    return server.requests


def normalize_body(path: str, body: Any) -> Any:
    """Return a body in which null, default and absent values are equal."""
    operation = OPERATIONS.get(path)
    if path == "retrieve_future":
        # The ids are those of the server that responded.
        return None
    if isinstance(body, dict) and "forward_only" not in body and "data" in body:
        body = {**body, "forward_only": False}
    if operation is None or operation.request is None or "data" in (body or {}):
        return body
    if path == "asample" and body.get("record_stability_info") is False:
        body = {key: value for key, value in body.items() if key != "record_stability_info"}
    return Converter().structure(body, operation.request)


def normalize_request(path: str, method: str, headers: Mapping[str, str], body: Any) -> dict[str, Any]:
    """Return the parts of a request that the test compares."""
    names = ("content-encoding", "x-tinker-request-type", "x-tinker-sampling-backpressure")
    default_type = "application/json"
    return {
        "path": path,
        "method": method,
        "body": normalize_body(path, body),
        "accept": headers.get("accept", default_type),
        "content-type": headers.get("content-type", default_type),
        **{name: headers[name] for name in names if name in headers},
    }


@pytest.mark.parametrize("name", CAPTURES)
def test_client_sends_requests_of_official_sdk(server: ScriptedServer, name: str) -> None:
    """The client sends the same requests in the same order as the official SDK, except for listed differences."""
    capture = CAPTURES[name]
    captured = [
        normalize_request(request.name, request.method, request.headers, request.body)
        for request in record_client_requests(server, capture)
    ]
    official = [
        normalize_request(
            request["path"].partition("?")[0], request["method"], request.get("headers", {}), request["body"]
        )
        for request in capture["requests"]
        if request["path"] not in OMITTED_REQUESTS
    ]

    def keep_ordered(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [request for request in requests if request["path"] not in UNORDERED_REQUESTS]

    for our_request, official_request in zip(keep_ordered(captured), keep_ordered(official), strict=True):
        assert our_request == official_request
    for path in UNORDERED_REQUESTS:
        our_requests = [request for request in captured if request["path"] == path]
        official_requests = [request for request in official if request["path"] == path]
        assert bool(our_requests) == bool(official_requests)
        assert not our_requests or our_requests[0] in official_requests


def test_every_listed_difference_occurs_in_capture() -> None:
    """The lists of omitted and different requests have no outdated entry."""
    requests = [request for capture in CAPTURES.values() for request in capture["requests"]]
    paths = {request["path"].partition("?")[0] for request in requests}
    assert OMITTED_REQUESTS.keys() <= paths
    for name in DIFFERENCES:
        path, _, field = name.replace("?", ".").partition(".")
        assert path in paths
        assert not field or any(path in request["path"] and field in json.dumps(request) for request in requests)
