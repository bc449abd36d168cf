"""Polls for results: holding, failures, and the form of results."""

from __future__ import annotations

import asyncio
import struct

import numpy as np
import orjson
import pytest

from support.gateway_clients import Client, Upstreams, json_response, value_of
from tinkerwire._server.http.protobuf import encode_result
from tinkerwire._wire import codec
from tinkerwire_base.call import JSON, PROTOBUF, WireRequest, WireResponse
from tinkerwire_generated import models

POLL = {"request_id": "r1"}
TRY_AGAIN = {"type": "try_again", "request_id": "r1", "queue_state": "paused_capacity", "queue_state_reason": "busy"}
LOGPROBS = [-0.1, -1.2345678, -3.4e-5]
SAMPLE = {"sequences": [{"stop_reason": "stop", "tokens": [1, 2, 3], "logprobs": LOGPROBS}], "type": "sample"}
AS_PROTOBUF = {"Accept": PROTOBUF, "X-Tinker-Request-Type": "Sample"}
SHORT = {"x-stainless-read-timeout": "0.05"}


def sample_message() -> bytes:
    """Return SAMPLE as protobuf."""
    sequence = models.SampledSequence(stop_reason="stop", tokens=[1, 2, 3], logprobs=LOGPROBS)
    return encode_result(models.SampleResponse(sequences=[sequence]))


def test_json_result_passes_unchanged(upstream: Upstreams) -> None:
    content = b'{"metrics" : {"loss:sum": 0.10000000000000001}}'
    upstream.answers["retrieve_future"] = WireResponse(status=200, headers={"content-type": JSON}, content=content)
    response = Client(upstream).post("retrieve_future", POLL, "0.16.1", {"X-Tinker-Request-Type": "OptimStep"})
    assert response.content == content
    assert upstream.requests[-1].headers["accept"] == JSON


def test_json_sample_becomes_protobuf_with_the_same_float32(upstream: Upstreams) -> None:
    upstream.answers["retrieve_future"] = json_response(SAMPLE)
    response = Client(upstream).post("retrieve_future", POLL, "0.38.0", AS_PROTOBUF)
    assert response.headers["content-type"] == PROTOBUF
    assert response.content == sample_message()


def test_protobuf_sample_becomes_json_with_the_same_float32(upstream: Upstreams) -> None:
    upstream.answers["client/config"] = json_response({})
    upstream.answers["retrieve_future"] = WireResponse(
        status=200, headers={"content-type": PROTOBUF}, content=sample_message()
    )
    headers = {"X-Tinker-Request-Type": "Sample"}
    response = Client(upstream, "0.38.0").post("retrieve_future", POLL, "0.16.1", headers)
    assert upstream.requests[-1].headers["accept"] == PROTOBUF
    (sequence,) = value_of(response)["sequences"]
    assert struct.pack("<3f", *sequence["logprobs"]) == struct.pack("<3f", *LOGPROBS)
    assert sequence["tokens"] == [1, 2, 3]


def test_protobuf_result_passes_unchanged(upstream: Upstreams) -> None:
    upstream.answers["client/config"] = json_response({})
    upstream.answers["retrieve_future"] = WireResponse(
        status=200, headers={"content-type": PROTOBUF}, content=sample_message() + b"\xf8\x7f\x01"
    )
    response = Client(upstream, "0.25.0").post("retrieve_future", POLL, "0.38.0", AS_PROTOBUF)
    assert response.content == sample_message() + b"\xf8\x7f\x01"


def test_result_type_is_known_from_the_submission(upstream: Upstreams) -> None:
    """A client that names no type in its polls gets the result in its form, too."""
    upstream.answers["client/config"] = json_response({})
    upstream.answers["asample"] = json_response({"request_id": "r1"})
    upstream.answers["retrieve_future"] = WireResponse(
        status=200, headers={"content-type": PROTOBUF}, content=sample_message()
    )
    client = Client(upstream, "0.38.0")
    body = {"prompt": {"chunks": []}, "sampling_params": {}, "sampling_session_id": "s", "seq_id": 0}
    client.post("asample", body, "0.16.1")
    assert value_of(client.post("retrieve_future", POLL, "0.16.1"))["sequences"][0]["stop_reason"] == "stop"


def test_missing_metrics_become_empty_in_protobuf(upstream: Upstreams) -> None:
    output = {"loss_fn_output_type": "T", "loss_fn_outputs": [], "metrics": None}
    upstream.answers["retrieve_future"] = json_response(output)
    headers = {"Accept": PROTOBUF, "X-Tinker-Request-Type": "ForwardBackward"}
    response = Client(upstream).post("retrieve_future", POLL, "0.38.0", headers)
    assert codec.decode(response.content, models.ForwardBackwardOutput).metrics == {}


@pytest.mark.parametrize("unready", [json_response(TRY_AGAIN), json_response(TRY_AGAIN, 408)])
def test_unready_result_is_polled_until_it_is_ready(upstream: Upstreams, unready: WireResponse) -> None:
    """Each further poll of the upstream has an idempotency key of its own."""
    replies = iter([unready, unready, json_response({"path": "tinker://a/weights/b"})])
    upstream.answers["retrieve_future"] = lambda _: next(replies)
    headers = {"X-Idempotency-Key": "k", "X-Tinker-Request-Type": "SaveWeights"}
    response = Client(upstream).post("retrieve_future", POLL, "0.16.1", headers)
    assert value_of(response) == {"path": "tinker://a/weights/b"}
    assert [request.headers["x-idempotency-key"] for request in upstream.requests] == ["k", "k-1", "k-2"]


@pytest.mark.parametrize("unready", [json_response(TRY_AGAIN), json_response(TRY_AGAIN, 408)])
def test_unready_result_becomes_408_before_the_client_gives_up(upstream: Upstreams, unready: WireResponse) -> None:
    upstream.answers["retrieve_future"] = unready
    response = Client(upstream).post("retrieve_future", POLL, "0.16.1", SHORT)
    assert response.status == 408
    assert value_of(response) == TRY_AGAIN


def test_empty_408_gets_a_body(upstream: Upstreams) -> None:
    upstream.answers["retrieve_future"] = WireResponse(status=408)
    response = Client(upstream).post("retrieve_future", POLL, "0.16.1", SHORT)
    assert (response.status, value_of(response)["queue_state"]) == (408, "active")


@pytest.mark.parametrize(
    ("reply", "error", "category"),
    [
        (json_response({"detail": "no such token"}, 400), "no such token", "unknown"),
        (json_response({"error": "bad", "category": "USER"}, 422), "bad", "user"),
        (json_response({"detail": "conflict"}, 409), "conflict", "unknown"),
        (json_response({"detail": "oom"}), "oom", "unknown"),
        (json_response({"error": "oom", "category": "server"}), "oom", "server"),
    ],
)
@pytest.mark.parametrize("version", ["0.4.1", "0.38.0"])
def test_failures_of_any_form_become_error_and_category(
    upstream: Upstreams, reply: WireResponse, error: str, category: str, version: str
) -> None:
    upstream.answers["retrieve_future"] = reply
    headers = AS_PROTOBUF if version == "0.38.0" else {}
    response = Client(upstream).post("retrieve_future", POLL, version, headers)
    assert response.status == 200
    assert value_of(response) == {"error": error, "category": category}


@pytest.mark.parametrize("status", [401, 402, 404, 410, 429, 500, 503])
def test_other_statuses_pass_with_text_and_headers(upstream: Upstreams, status: int) -> None:
    upstream.answers["retrieve_future"] = json_response({"detail": "the text"}, status, retry_after="7")
    response = Client(upstream).post("retrieve_future", POLL, "0.38.0", AS_PROTOBUF)
    assert (response.status, value_of(response)["detail"]) == (status, "the text")
    assert response.headers["retry-after"] == "7"


def test_size_of_a_result_is_asked_of_upstreams_that_know_it(upstream: Upstreams) -> None:
    size = {"status": "complete_metadata", "response_payload_size": 9}
    upstream.answers["retrieve_future"] = json_response(size)
    body = {**POLL, "allow_metadata_only": True}
    assert value_of(Client(upstream, "0.16.1").post("retrieve_future", body, "0.38.0", AS_PROTOBUF)) == size
    assert upstream.body("retrieve_future")["allow_metadata_only"] is True
    upstream.answers["retrieve_future"] = json_response(SAMPLE)
    assert Client(upstream, "0.4.1").post("retrieve_future", body, "0.38.0", AS_PROTOBUF).status == 200
    assert "allow_metadata_only" not in upstream.body("retrieve_future")


def test_upstream_that_rejects_protobuf_is_asked_for_json(upstream: Upstreams) -> None:
    def reply(request: WireRequest) -> WireResponse:
        return json_response({"detail": "?"}, 406) if PROTOBUF in request.headers["accept"] else json_response(SAMPLE)

    upstream.answers["client/config"] = json_response({})
    upstream.answers["retrieve_future"] = reply
    response = Client(upstream, None).post("retrieve_future", POLL, "0.38.0", AS_PROTOBUF)
    assert response.content == sample_message()


def test_drain_answers_waiting_polls_with_408(upstream: Upstreams) -> None:
    """The upstream keeps the result; the next gateway gets it."""

    async def scenario() -> WireResponse:
        client = Client(upstream)
        headers = {"X-Stainless-Package-Version": "0.16.1", "content-type": JSON}
        content = orjson.dumps(POLL)
        request = WireRequest(method="POST", path="/api/v1/retrieve_future", headers=headers, content=content)
        polling = asyncio.create_task(client.send(request))
        # The first poll of the upstream has no result.
        await asyncio.sleep(0.01)
        client.app.drain()
        return await polling

    upstream.answers["retrieve_future"] = json_response(TRY_AGAIN, 408)
    assert asyncio.run(scenario()).status == 408


def test_forward_backward_output_keeps_every_bit(upstream: Upstreams) -> None:
    """From protobuf to JSON and back, for values at the ends of float32."""
    values = np.array([np.float32(3.4028235e38), np.float32(1e-45), np.float32(0.1), -0.0], np.float32)
    output = models.ForwardBackwardOutput(
        loss_fn_output_type="ArrayRecord",
        loss_fn_outputs=[{"logprobs": models.TensorData(data=values, dtype="float32", shape=[4])}],
        metrics={"loss:sum": 0.1},
    )
    message = encode_result(output)
    upstream.answers["client/config"] = json_response({})
    upstream.answers["retrieve_future"] = WireResponse(status=200, headers={"content-type": PROTOBUF}, content=message)
    headers = {"X-Tinker-Request-Type": "ForwardBackward"}
    as_json = Client(upstream, "0.38.0").post("retrieve_future", POLL, "0.16.1", headers)
    upstream.answers["retrieve_future"] = as_json
    back = Client(upstream, "0.16.1").post("retrieve_future", POLL, "0.38.0", {**headers, "Accept": PROTOBUF})
    assert back.content == message
