"""An upstream that is replaced by a server of another version while no request is in progress."""

from __future__ import annotations

import pytest

from support.gateway_clients import Client, Upstreams, json_response, value_of
from tinkerwire._gateway import upstream as upstream_module
from tinkerwire_base.call import JSON, PROTOBUF, WireRequest, WireResponse

DATUM = {
    "model_input": {"chunks": [{"tokens": [1, 2]}]},
    "loss_fn_inputs": {"weights": {"data": [0.1, 1], "dtype": "float32"}},
}
BATCH = {"model_id": "m", "seq_id": 1, "forward_backward_input": {"data": [DATUM], "loss_fn": "cross_entropy"}}
SESSION = {"tags": [], "user_metadata": None, "sdk_version": "0.16.1", "type": "create_session"}
CONFIG = {"proto_write_fwdbwd": True, "fwd_via_fwdbwd": True}


@pytest.fixture(autouse=True)
def _check_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream_module, "RECHECK_S", 0.0)


def _become(upstream: Upstreams, media: str) -> None:
    """Make the upstream a server that takes batches of one media type only, and has client/config if it is protobuf."""

    def answer(request: WireRequest) -> WireResponse:
        if request.headers["content-type"] != media:
            return json_response({"detail": f"Content-Type must be {media}"}, 415)
        return json_response({"request_id": media})

    upstream.answers = {"forward_backward": answer, "create_session": json_response({"session_id": "s"})}
    if media == PROTOBUF:
        upstream.answers["client/config"] = json_response(CONFIG)


def _batch(client: Client, number: int) -> str:
    headers = {"X-Idempotency-Key": f"key-{number}"}
    response = client.post("forward_backward", {**BATCH, "seq_id": number}, "0.16.1", headers)
    assert response.status == 200, response.content
    request_id: str = value_of(response)["request_id"]
    return request_id


@pytest.mark.parametrize(("first", "second"), [(JSON, PROTOBUF), (PROTOBUF, JSON)])
def test_rejected_request_is_sent_in_the_form_of_the_new_server(upstream: Upstreams, first: str, second: str) -> None:
    client = Client(upstream, to_wire=None)
    _become(upstream, first)
    assert _batch(client, 1) == first
    _become(upstream, second)
    assert _batch(client, 2) == second
    keys = {request.headers["x-idempotency-key"] for request in upstream.named("forward_backward")}
    assert keys == {"key-1", "key-2"}
    # Later requests have the right form at once.
    sent = len(upstream.named("forward_backward"))
    assert _batch(client, 3) == second
    assert len(upstream.named("forward_backward")) == sent + 1


def test_feature_of_the_new_server_is_not_refused(upstream: Upstreams) -> None:
    upstream.answers["asample"] = json_response({"request_id": "r"})
    client = Client(upstream, to_wire=None)
    sample = {"prompt": {"chunks": []}, "sampling_params": {}, "base_model": "b", "prompt_alt_tokens_k": 2}
    assert client.post("asample", sample, "0.38.0").status == 400
    upstream.answers["client/config"] = json_response({**CONFIG, "sample_use_retrieve_futures": True})
    assert client.post("asample", sample, "0.38.0").status == 200


def test_session_is_created_at_the_server_that_is_there(upstream: Upstreams) -> None:
    """The first session finds the new server, before anything is rejected."""
    client = Client(upstream, to_wire=None)
    _become(upstream, JSON)
    _batch(client, 1)
    _become(upstream, PROTOBUF)
    assert client.post("create_session", SESSION, "0.16.1").status == 200
    upstream.requests.clear()
    assert _batch(client, 2) == PROTOBUF
    assert len(upstream.named("forward_backward")) == 1


def test_optional_operations_that_the_former_server_lacked_are_passed_on(upstream: Upstreams) -> None:
    client = Client(upstream, to_wire=None)
    _become(upstream, JSON)
    heartbeat = {"session_id": "s", "type": "session_heartbeat"}
    for _ in range(2):
        assert client.post("session_heartbeat", heartbeat, "0.16.1").status == 200
    assert len(upstream.named("session_heartbeat")) == 1
    _become(upstream, PROTOBUF)
    upstream.answers["session_heartbeat"] = json_response({"type": "session_heartbeat"})
    client.post("create_session", SESSION, "0.16.1")
    upstream.requests.clear()
    assert client.post("session_heartbeat", heartbeat, "0.16.1").status == 200
    assert len(upstream.named("session_heartbeat")) == 1


def test_rejection_of_the_same_server_is_passed_on(upstream: Upstreams) -> None:
    client = Client(upstream, to_wire=None)
    upstream.answers["optim_step"] = json_response({"detail": "no"}, 422)
    response = client.post("optim_step", {"model_id": "m", "adam_params": {}}, "0.16.1")
    attempts = len(upstream.named("optim_step"))
    assert response.status == 422
    assert value_of(response) == {"detail": "no"}
    client.post("optim_step", {"model_id": "m", "adam_params": {}}, "0.16.1")
    assert len(upstream.named("optim_step")) == 2 * attempts


def test_upstream_that_does_not_respond_to_the_check_keeps_its_dialect(upstream: Upstreams) -> None:
    client = Client(upstream, to_wire=None)
    _become(upstream, PROTOBUF)
    _batch(client, 1)
    upstream.answers["client/config"] = json_response({"detail": "busy"}, 503)
    assert client.post("create_session", SESSION, "0.16.1").status == 200
    sent = len(upstream.named("forward_backward"))
    assert _batch(client, 2) == PROTOBUF
    assert len(upstream.named("forward_backward")) == sent + 1
