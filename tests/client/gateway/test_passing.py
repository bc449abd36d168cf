"""Requests and responses that pass through unchanged."""

from __future__ import annotations

import gzip

import attrs
import orjson
import pytest
import zstandard

import tinkerwire as tw
from support.gateway_clients import Client, Upstreams, json_response, value_of
from tinkerwire._wire.protobuf import encode_request
from tinkerwire_base.call import PROTOBUF, WireRequest, WireResponse
from tinkerwire_generated import models

ODD_JSON = b'{ "model_id": "m",  "seq_id":1,"adam_params":{"learning_rate":0.10000000000000001}, "type":"optim_step" }'


def test_equal_wires_pass_the_bytes_of_requests_and_responses(upstream: Upstreams) -> None:
    """Numbers and spaces stay as they are, in both directions."""
    reply = b'{"request_id" : "r",   "later_field":1e0}'
    upstream.answers["optim_step"] = WireResponse(
        status=200, headers={"content-type": "application/json", "x-deprecation-note": "old"}, content=reply
    )
    response = Client(upstream, "0.16.1").post("optim_step", ODD_JSON, "0.16.1", {"X-Idempotency-Key": "k1"})
    (sent,) = upstream.requests
    assert sent.content == ODD_JSON
    assert response.content == reply
    assert response.headers["x-deprecation-note"] == "old"
    assert sent.headers["x-idempotency-key"] == "k1"
    assert sent.headers["x-api-key"] == "tml-client-key"


def test_headers_of_a_connection_are_not_passed(upstream: Upstreams) -> None:
    upstream.answers["optim_step"] = json_response({"request_id": "r"}, set_cookie="a=b", content_encoding="gzip")
    headers = {"Host": "x", "Cookie": "c", "Content-Length": "9", "Accept-Encoding": "br", "X-Tinker-Note": "n"}
    response = Client(upstream).post("optim_step", ODD_JSON, "0.16.1", headers)
    sent = upstream.requests[0].headers
    assert not {"host", "cookie", "content-length", "accept-encoding"} & sent.keys()
    assert sent["x-tinker-note"] == "n"
    assert not {"set-cookie", "content-encoding"} & response.headers.keys()


def test_headers_that_connection_names_are_not_passed(upstream: Upstreams) -> None:
    upstream.answers["optim_step"] = json_response({"request_id": "r"}, connection="close, X-Hop", x_hop="1", x_end="2")
    headers = {"Connection": "keep-alive, X-First ,x-second", "X-First": "1", "X-Second": "2", "X-Third": "3"}
    response = Client(upstream).post("optim_step", ODD_JSON, "0.16.1", headers)
    sent = upstream.requests[0].headers
    assert not {"connection", "x-first", "x-second"} & sent.keys()
    assert sent["x-third"] == "3"
    assert not {"connection", "x-hop"} & response.headers.keys()
    assert response.headers["x-end"] == "2"


def test_other_wires_translate_the_request(upstream: Upstreams) -> None:
    """Version 0.4.1 has no weight decay, and its clients leave out what is the default."""
    upstream.answers["optim_step"] = json_response({"request_id": "r"})
    body = {"model_id": "m", "seq_id": 1, "adam_params": {"learning_rate": 0.1, "weight_decay": 0.0}}
    assert Client(upstream, "0.4.1").post("optim_step", body, "0.16.1").status == 200
    sent = upstream.body("optim_step")
    assert sent["adam_params"]["learning_rate"] == 0.1
    assert "weight_decay" not in sent["adam_params"]


def test_same_protobuf_passes_with_its_compression(upstream: Upstreams) -> None:
    """An upstream whose flags ask for zstd gets it; any other gets the message itself."""
    message = encode_request(_batch(), "0.38.0")
    headers = {"Content-Type": PROTOBUF, "Content-Encoding": "zstd"}
    for asks, expected in ((True, zstandard.compress(message)), (False, message)):
        upstream.requests.clear()
        upstream.answers["client/config"] = json_response({"proto_compress_fwdbwd": asks})
        upstream.answers["forward_backward"] = json_response({"request_id": "r"})
        client = Client(upstream, "0.38.0")
        response = client.post("forward_backward", zstandard.compress(message), "0.38.0", headers)
        assert response.status == 200
        (sent,) = upstream.named("forward_backward")
        assert sent.content == expected
        assert ("content-encoding" in sent.headers) is asks


def test_protobuf_becomes_json_for_an_old_upstream(upstream: Upstreams) -> None:
    """A forward is a message that is forward_only in one form, and an operation of its own in the other."""
    upstream.answers["forward"] = json_response({"request_id": "r"})
    batch = _batch().forward_backward_input
    forward = models.ForwardRequest(forward_input=batch, model_id=models.ModelID("m"), seq_id=3)
    message = encode_request(forward, "0.38.0")
    response = Client(upstream, "0.16.1").post("forward_backward", message, "0.38.0", {"Content-Type": PROTOBUF})
    assert response.status == 200
    sent = upstream.body("forward")
    assert sent["seq_id"] == 3
    assert sent["forward_input"]["data"][0]["loss_fn_inputs"]["weights"]["data"] == [pytest.approx(0.1)]
    assert upstream.requests[-1].headers["content-type"] == "application/json"


def test_json_becomes_protobuf_for_a_new_upstream(upstream: Upstreams) -> None:
    upstream.answers["client/config"] = json_response({})
    upstream.answers["forward_backward"] = json_response({"request_id": "r"})
    body = {
        "model_id": "m",
        "seq_id": 1,
        "forward_backward_input": {
            "loss_fn": "cross_entropy",
            "data": [
                {
                    "model_input": {"chunks": [{"tokens": [1]}]},
                    "loss_fn_inputs": {"weights": {"data": [0.1], "dtype": "float32", "shape": [1]}},
                }
            ],
        },
    }
    assert Client(upstream, "0.38.0").post("forward_backward", body, "0.16.1").status == 200
    (sent,) = upstream.named("forward_backward")
    assert sent.headers["content-type"] == PROTOBUF
    assert sent.content == encode_request(_batch(), "0.38.0")


def test_discovered_upstream_keeps_the_form_that_it_accepts(upstream: Upstreams) -> None:
    """The first batch tries protobuf; after a rejection, all batches are JSON."""

    def accept_json(request: WireRequest) -> WireResponse:
        is_json = request.headers["content-type"] == "application/json"
        return json_response({"request_id": "r"}) if is_json else json_response({"detail": "unsupported"}, 415)

    upstream.answers["forward_backward"] = accept_json
    client = Client(upstream, None)
    message = encode_request(attrs.evolve(_batch(), seq_id=1), "0.38.0")
    for _ in range(2):
        assert client.post("forward_backward", message, "0.38.0", {"Content-Type": PROTOBUF}).status == 200
    media = [request.headers["content-type"] for request in upstream.named("forward_backward")]
    assert media == [PROTOBUF, "application/json", "application/json"]


def test_discovered_upstream_gets_a_batch_without_fields_that_it_rejects(upstream: Upstreams) -> None:
    """Clients of 0.26.2 on write the configuration of a loss in a field that an upstream of 0.25.0 does not have."""
    batch = _batch()
    config = attrs.evolve(batch.forward_backward_input, loss_fn="ppo", loss_fn_config={"clip_low_threshold": 0.5})
    batch = attrs.evolve(batch, forward_backward_input=config)

    def accept(request: WireRequest) -> WireResponse:
        if request.headers["content-type"] != PROTOBUF:
            return json_response({"detail": "unsupported"}, 415)
        is_known = request.content == encode_request(batch, "0.25.0")
        return json_response({"request_id": "r"} if is_known else {"detail": "unknown field"}, 200 if is_known else 422)

    upstream.answers["client/config"] = json_response({})
    upstream.answers["forward_backward"] = accept
    client = Client(upstream, None)
    message = encode_request(batch, "0.38.0")
    assert message != encode_request(batch, "0.25.0")
    for _ in range(3):
        assert client.post("forward_backward", message, "0.38.0", {"Content-Type": PROTOBUF}).status == 200
    assert upstream.named("forward_backward")[-2].content == encode_request(batch, "0.25.0")


def test_batch_that_no_form_makes_valid_is_the_upstreams_422(upstream: Upstreams) -> None:
    upstream.answers["client/config"] = json_response({})
    upstream.answers["forward_backward"] = json_response({"detail": "no such loss"}, 422)
    message = encode_request(_batch(), "0.38.0")
    response = Client(upstream, None).post("forward_backward", message, "0.38.0", {"Content-Type": PROTOBUF})
    assert (response.status, value_of(response)) == (422, {"detail": "no such loss"})


def test_body_that_does_not_fit_the_client_version_is_its_422(upstream: Upstreams) -> None:
    response = Client(upstream, "0.4.1").post("optim_step", {"seq_id": 1, "adam_params": {}}, "0.16.1")
    assert response.status == 422
    assert value_of(response)["detail"][0]["loc"] == ["body", "model_id"]
    assert not upstream.named("optim_step")


def test_unknown_paths_and_methods_are_errors(upstream: Upstreams) -> None:
    client = Client(upstream)
    assert client.post("nowhere", {}, "0.16.1").status == 404
    assert client.get("optim_step", "0.16.1").status == 405
    assert not upstream.requests


def test_default_of_an_absent_query_parameter_is_left_out(upstream: Upstreams) -> None:
    upstream.answers["sessions"] = json_response({"sessions": []})
    client = Client(upstream, "0.7.0")
    assert client.get("sessions", "0.38.0", (("access_scope", "owned"), ("limit", "3"))).status == 200
    assert upstream.requests[-1].query == (("limit", "3"),)
    refused = client.get("sessions", "0.38.0", (("access_scope", "accessible"),))
    assert refused.status == 400
    assert "access_scope" in value_of(refused)["detail"]


def test_discovered_upstream_is_asked_again_without_a_parameter_that_it_rejects(upstream: Upstreams) -> None:
    """A client of a later version always sends the default of access_scope."""

    def refuse_scope(request: WireRequest) -> WireResponse:
        if any(name == "access_scope" for name, _ in request.query):
            return json_response({"detail": "unknown parameter access_scope"}, 422)
        return json_response({"training_runs": [], "cursor": {"offset": 0, "limit": 3, "total_count": 0}})

    upstream.answers["training_runs"] = refuse_scope
    client = Client(upstream, None)
    for _ in range(2):
        assert client.get("training_runs", "0.38.0", (("access_scope", "owned"), ("limit", "3"))).status == 200
    # The second request starts with what was accepted.
    assert len(upstream.named("training_runs")) == 3
    # The oldest version of this operation is not the oldest that the upstream may have.
    upstream.answers["sessions"] = refuse_scope
    assert client.get("sessions", "0.38.0", (("access_scope", "owned"), ("limit", "3"))).status == 200


def _batch() -> models.ForwardBackwardRequest:
    datum = tw.Datum(
        model_input=tw.ModelInput.from_ints([1]),
        loss_fn_inputs={"weights": tw.TensorData(data=[0.1], dtype="float32", shape=[1])},
    )
    batch = models.ForwardBackwardInput(data=[datum], loss_fn="cross_entropy")
    return models.ForwardBackwardRequest(forward_backward_input=batch, model_id=models.ModelID("m"), seq_id=1)


def test_compressed_json_is_decompressed(upstream: Upstreams) -> None:
    upstream.answers["optim_step"] = json_response({"request_id": "r"})
    headers = {"Content-Encoding": "gzip"}
    assert Client(upstream).post("optim_step", gzip.compress(ODD_JSON), "0.16.1", headers).status == 200
    assert upstream.requests[0].content == ODD_JSON
    assert orjson.loads(upstream.requests[0].content)["seq_id"] == 1
