"""Retries of requests whose form the gateway does not know, or knows no more: the upstream runs each once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from support.gateway_clients import Client, Upstreams, json_response
from tinkerwire_base.call import JSON, PROTOBUF, WireRequest, WireResponse
from tinkerwire_base.errors import APIConnectionError

BATCH: dict[str, Any] = {
    "model_id": "m",
    "seq_id": 1,
    "forward_backward_input": {
        "loss_fn": "cross_entropy",
        "data": [
            {
                "model_input": {"chunks": [{"type": "encoded_text", "tokens": [1]}]},
                "loss_fn_inputs": {"weights": {"data": [0.5], "dtype": "float32", "shape": [1]}},
            }
        ],
    },
}
KEY = {"X-Idempotency-Key": "k1"}


class KeyedServer:
    """A server that runs each key once, and rejects another body under the same key before it reads it.

    Args:
        media: the media types that it accepts.
        failures: statuses to respond with, after the batch was run, before the first success.
    """

    def __init__(self, media: tuple[str, ...], failures: tuple[int, ...] = ()) -> None:
        self.runs: list[bytes | None] = []
        self._media = media
        self._failures = list(failures)
        self._by_key: dict[str, bytes | None] = {}

    def answer(self, request: WireRequest) -> WireResponse:
        """Return the response to a batch."""
        key = request.headers["x-idempotency-key"]
        if self._by_key.get(key, request.content) != request.content:
            return json_response({"detail": "another request used the key"}, 409)
        if request.headers["content-type"] not in self._media:
            return json_response({"detail": "unsupported"}, 415)
        if key not in self._by_key:
            self._by_key[key] = request.content
            self.runs.append(request.content)
            if self._failures:
                return json_response({"detail": "failed"}, self._failures.pop())
        return json_response({"request_id": "r"})


def _send_two_batches(upstream: Upstreams, answer: Callable[[WireRequest], WireResponse]) -> list[str]:
    """Send two batches, both of which succeed, and return the media types that the upstream received."""
    upstream.answers["forward_backward"] = answer
    client = Client(upstream, None)
    for number in range(2):
        assert client.post("forward_backward", BATCH, "0.16.1", {"X-Idempotency-Key": f"k{number}"}).status == 200
    return [request.headers["content-type"] for request in upstream.named("forward_backward")]


def test_new_gateway_repeats_a_request_in_the_form_that_was_run(upstream: Upstreams) -> None:
    """Its first form is another one, which the upstream rejects for the key alone."""
    server = KeyedServer((JSON,))
    upstream.answers["forward_backward"] = server.answer
    for _ in range(2):
        response = Client(upstream, None).post("forward_backward", BATCH, "0.16.1", KEY)
        assert (response.status, orjson.loads(response.content)) == (200, {"request_id": "r"})
    assert len(server.runs) == 1


def test_batch_keeps_its_bytes_while_the_form_is_learned(upstream: Upstreams) -> None:
    """The retry comes after another batch has shown the form."""
    server = KeyedServer((JSON,))
    upstream.answers["forward_backward"] = server.answer
    client = Client(upstream, None)
    for _ in range(3):
        assert client.post("forward_backward", BATCH, "0.16.1", KEY).status == 200
    media = [request.headers["content-type"] for request in upstream.named("forward_backward")]
    assert media == [PROTOBUF, JSON, JSON, JSON]
    assert {request.content for request in upstream.named("forward_backward")[1:]} == set(server.runs)


def test_form_that_failed_after_the_run_is_sent_again(upstream: Upstreams) -> None:
    """A server that takes both forms has run the first one, and conflicts with the second."""
    server = KeyedServer((PROTOBUF, JSON), failures=(500,))
    upstream.answers["forward_backward"] = server.answer
    client = Client(upstream, None)
    assert client.post("forward_backward", BATCH, "0.16.1", KEY).status == 200
    assert client.post("forward_backward", BATCH, "0.16.1", KEY).status == 200
    assert len(server.runs) == 1


def test_conflict_in_all_forms_reaches_the_client(upstream: Upstreams) -> None:
    upstream.answers["forward_backward"] = json_response({"detail": "the seq_id is another one"}, 409)
    response = Client(upstream, None).post("forward_backward", BATCH, "0.16.1", KEY)
    assert response.status == 409
    assert orjson.loads(response.content) == {"detail": "the seq_id is another one"}


def test_conflict_in_one_form_is_not_hidden_by_the_rejection_of_another(upstream: Upstreams) -> None:
    """Clients repeat a request after a conflict, and end it after a rejection."""
    statuses = [409, 200]

    def answer(request: WireRequest) -> WireResponse:
        if "optimizer" in orjson.loads(request.content or b""):
            return json_response({"detail": "unknown field: optimizer"}, 422)
        return json_response({"request_id": "r", "detail": "the first attempt is being handled"}, statuses.pop(0))

    upstream.answers["load_weights"] = answer
    body = {"model_id": "m", "seq_id": 1, "path": "tinker://run/weights/a", "optimizer": False, "type": "load_weights"}
    client = Client(upstream, None)
    responses = [client.post("load_weights", body, "0.38.0", KEY) for _ in range(2)]
    assert [response.status for response in responses] == [409, 200]


def test_upstream_that_is_found_again_keeps_what_it_has_shown(upstream: Upstreams) -> None:
    """A lost connection makes the gateway discover the upstream anew; its forms are known if it is the same."""
    server = KeyedServer((JSON,))
    upstream.answers["forward_backward"] = server.answer
    client = Client(upstream, None)
    assert client.post("forward_backward", BATCH, "0.16.1", KEY).status == 200

    def lose(request: WireRequest) -> WireResponse:
        raise APIConnectionError("lost")

    upstream.answers["optim_step"] = lose
    body = {"model_id": "m", "seq_id": 2, "adam_params": {"learning_rate": 0.1}}
    assert client.post("optim_step", body, "0.16.1").status == 502
    sent_before = len(upstream.named("forward_backward"))
    assert client.post("forward_backward", BATCH, "0.16.1", {"X-Idempotency-Key": "k2"}).status == 200
    assert len(upstream.named("client/config")) == 2
    assert len(upstream.named("forward_backward")) == sent_before + 1


def test_server_that_drops_an_unknown_form_gets_the_other_one(upstream: Upstreams) -> None:
    """Both batches succeed, and the second one is sent in the form that was accepted."""

    def answer(request: WireRequest) -> WireResponse:
        if request.headers["content-type"] == PROTOBUF:
            raise APIConnectionError("the server closed the connection")
        return json_response({"request_id": "r"})

    assert _send_two_batches(upstream, answer) == [PROTOBUF, PROTOBUF, JSON, JSON]


def test_connection_that_ends_after_an_unknown_form_costs_no_form(upstream: Upstreams) -> None:
    """The server responds with 500, and closes the connection on which the other form is sent."""
    losses = iter([True])

    def answer(request: WireRequest) -> WireResponse:
        if request.headers["content-type"] == PROTOBUF:
            return json_response({"detail": "cannot decode"}, 500)
        if next(losses, False):
            raise APIConnectionError("the server closed the connection")
        return json_response({"request_id": "r"})

    assert _send_two_batches(upstream, answer) == [PROTOBUF, JSON, JSON, JSON]


def test_lost_connection_is_not_a_rejection_of_the_other_form(upstream: Upstreams) -> None:
    """Clients repeat a request after 502, but not after 415."""

    def answer(request: WireRequest) -> WireResponse:
        if request.headers["content-type"] == PROTOBUF:
            raise APIConnectionError("lost")
        return json_response({"detail": "unsupported"}, 415)

    upstream.answers["forward_backward"] = answer
    assert Client(upstream, None).post("forward_backward", BATCH, "0.16.1", KEY).status == 502


def test_rejected_content_is_not_sent_in_an_encoding_that_the_upstream_does_not_take(upstream: Upstreams) -> None:
    """Clients repeat a request after the 500 of an upstream that cannot read it, but not after 422."""

    def answer(request: WireRequest) -> WireResponse:
        if request.headers["content-type"] == PROTOBUF:
            return json_response({"detail": "cannot decode"}, 500)
        is_known = orjson.loads(request.content or b"")["forward_backward_input"]["loss_fn"] == "cross_entropy"
        return json_response({"request_id": "r"} if is_known else {"detail": "no such loss"}, 200 if is_known else 422)

    upstream.answers["forward_backward"] = answer
    client = Client(upstream, None)
    rejected = {**BATCH, "forward_backward_input": {**BATCH["forward_backward_input"], "loss_fn": "cispo"}}
    # The first one comes before the encoding is known, the last one after it.
    for number, (body, status) in enumerate(((rejected, 422), (BATCH, 200), (rejected, 422))):
        upstream.requests.clear()
        response = client.post("forward_backward", body, "0.16.1", {"X-Idempotency-Key": f"k{number}"})
        assert response.status == status, response.content
    assert {request.headers["content-type"] for request in upstream.named("forward_backward")} == {JSON}


def test_failure_of_the_likely_encoding_is_repeated_before_the_other_one_counts(upstream: Upstreams) -> None:
    """An upstream with client/config may be busy, and rejects JSON, which it does not take."""
    failures = iter([500])

    def answer(request: WireRequest) -> WireResponse:
        if request.headers["content-type"] == JSON:
            return json_response({"detail": "not a message"}, 422)
        return json_response({"request_id": "r"}, next(failures, 200))

    upstream.answers["client/config"] = json_response({})
    upstream.answers["forward_backward"] = answer
    assert Client(upstream, None).post("forward_backward", BATCH, "0.16.1", KEY).status == 200


def test_failure_in_json_counts_at_an_upstream_of_json_wires(upstream: Upstreams) -> None:
    """Its rejection of protobuf does not apply to the batch, which the client should send again."""

    def answer(request: WireRequest) -> WireResponse:
        is_json = request.headers["content-type"] == JSON
        return json_response({"detail": "busy" if is_json else "not JSON"}, 500 if is_json else 422)

    upstream.answers["forward_backward"] = answer
    response = Client(upstream, None).post("forward_backward", BATCH, "0.16.1", KEY)
    assert (response.status, orjson.loads(response.content)) == (500, {"detail": "busy"})
