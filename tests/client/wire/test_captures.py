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
CAPTURES = {each["name"]: each for each in json.loads((Path(__file__).parents[2] / "facts/captures.json").read_text())}
DATUM = tw.Datum(
    model_input=tw.ModelInput.from_ints([1, 2]), loss_fn_inputs={"target_tokens": [2, 3], "weights": [1.0, 1.0]}
)
NOT_OURS: Mapping[str, str] = {
    "client/config": "the version is given, so the server is not asked for anything",
    "client/dynamic_config": "only what cancels samples needs it, and asks when it does",
    "telemetry": "it is the official service's own business",
}
"""Requests of the official SDK that ours does not send, and why."""
DIFFERENT: Mapping[str, str] = {
    "get_info": "the official SDK asks when a model is created, from 0.38.0 on only then; ours when the user does",
    "create_session": "the official SDK of old creates the session first of all; ours at first need",
    "retrieve_future.allow_metadata_only": "ours takes results as they come, and asks for no sizes",
    "asample.record_stability_info": "the official SDK says that it is not wanted; ours leaves it out, to the same end",
    "auth/token": "the official SDK opens two connections, and each gets a token of its own",
    "retrieve_futures": "how often depends on when samples end, and the last time on when clients are left",
    "training_runs?access_scope": "owned is the default of servers, which ours leaves to them",
}
"""What ours does otherwise in requests that both send, and why."""


TOKEN = "eyJhbGciOiJub25lIn0.eyJleHAiOjQxMDI0NDQ4MDB9.x"
"""Good until the year 2100."""
ANY_TIME = ("get_info", "create_session", "retrieve_futures", "auth/token")
"""Requests that ours sends at other times or another number of times, and that mean the same."""


def flow(client: tw.ServiceClient, *, with_optimizer: bool) -> None:
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


def respond_finished(server: ScriptedServer, request: RecordedRequest) -> dict[str, Any]:
    """Return a retrieve_futures response in which all samples are finished."""
    # The test's server names promises by their number.
    names = [f"asample/{number}/{body['seq_id']}" for number, body in server.created_futures if "num_samples" in body]
    states = [{"state": "finished", "request_id": name} for name in names]
    return {"completions": states[request.body["prev_cursor"] :], "cursor": len(names)}


def client_requests(server: ScriptedServer, capture: Mapping[str, Any]) -> list[RecordedRequest]:
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
    server.rules["retrieve_futures"] = lambda request: ScriptedResponse(respond_finished(server, request))
    server.rules["auth/token"] = lambda _: ScriptedResponse({"jwt": TOKEN})
    server.rules["training_runs/m1"] = lambda _: ScriptedResponse({**run, "last_request_time": "2026-01-01T00:00:00Z"})
    version = capture["version"]
    with open_client(server.url, wire_version=version, client_config=capture["client_config"]) as client:
        flow(client, with_optimizer=version != "0.4.1")
    return server.requests


def meaning(path: str, body: Any) -> Any:
    """Reduce a body to its meaning: null, default and absent become equal."""
    operation = OPERATIONS.get(path)
    if path == "retrieve_future":
        # Ids are the server's, and the test's server has its own.
        return None
    if isinstance(body, dict) and "forward_only" not in body and "data" in body:
        body = {**body, "forward_only": False}
    if operation is None or operation.request is None or "data" in (body or {}):
        return body
    if path == "asample" and body.get("record_stability_info") is False:
        body = {key: value for key, value in body.items() if key != "record_stability_info"}
    return Converter().structure(body, operation.request)


def line(path: str, method: str, headers: Mapping[str, str], body: Any) -> dict[str, Any]:
    """Return a request in the form for the comparison."""
    kinds = ("content-encoding", "x-tinker-request-type", "x-tinker-sampling-backpressure")
    plain = "application/json"
    return {
        "path": path,
        "method": method,
        "body": meaning(path, body),
        "accept": headers.get("accept", plain),
        "content-type": headers.get("content-type", plain),
        **{kind: headers[kind] for kind in kinds if kind in headers},
    }


@pytest.mark.parametrize("name", CAPTURES)
def test_the_same_flow_sends_the_same(server: ScriptedServer, name: str) -> None:
    """Every request means the same as the official SDK's, in the same order, except for listed differences."""
    capture = CAPTURES[name]
    ours = [
        line(request.name, request.method, request.headers, request.body)
        for request in client_requests(server, capture)
    ]
    official = [
        line(each["path"].partition("?")[0], each["method"], each.get("headers", {}), each["body"])
        for each in capture["requests"]
        if each["path"] not in NOT_OURS
    ]

    def ordered(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [each for each in requests if each["path"] not in ANY_TIME]

    for our_request, their_request in zip(ordered(ours), ordered(official), strict=True):
        assert our_request == their_request
    for path in ANY_TIME:
        found = [each for each in ours if each["path"] == path]
        theirs = [each for each in official if each["path"] == path]
        assert bool(found) == bool(theirs)
        assert not found or found[0] in theirs


def test_each_difference_is_there() -> None:
    """Each listed difference occurs in a capture."""
    everything = [each for capture in CAPTURES.values() for each in capture["requests"]]
    paths = {each["path"].partition("?")[0] for each in everything}
    assert NOT_OURS.keys() <= paths
    for place in DIFFERENT:
        path, _, field = place.replace("?", ".").partition(".")
        assert path in paths
        assert not field or any(path in each["path"] and field in json.dumps(each) for each in everything)
