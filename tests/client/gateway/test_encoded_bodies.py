"""Bodies of requests that are compressed or escaped mean the same as plain ones."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from support.gateway_clients import Client, Upstreams, json_response, value_of
from tinkerwire_base.call import WireResponse

TEXT = {"chunks": [{"tokens": [1, 2, 3]}]}
SAMPLE = {"base_model": "b", "prompt": TEXT, "sampling_params": {"max_tokens": 1}, "num_samples": 3}
DATUM = {"model_input": TEXT, "loss_fn_inputs": {"weights": {"data": [0.1, 1, -0.0], "dtype": "float32"}}}
BATCH = {"model_id": "m", "seq_id": 1, "forward_backward_input": {"data": [DATUM], "loss_fn": "cross_entropy"}}
RESULT = {"sequences": [], "prompt_logprobs": [-1.5, -2.5]}
COMPRESSIONS = {"gzip": gzip.compress, "deflate": zlib.compress}


def _exchange(to_wire: str | None, version: str | None, name: str, body: Any, encoding: str) -> tuple[Any, ...]:
    """Return the response to a request, what the upstream got, and the response to a poll."""
    upstream = Upstreams()
    upstream.answers["client/config"] = json_response({})
    for operation in ("asample", "forward_backward"):
        upstream.answers[operation] = json_response({"request_id": "r"})
    upstream.answers["create_session"] = json_response({"session_id": "s"})
    upstream.answers["retrieve_future"] = json_response(RESULT)
    client = Client(upstream, to_wire)
    compress: Callable[[bytes], bytes] = COMPRESSIONS.get(encoding, bytes)
    headers = {"Content-Encoding": encoding} if encoding else {}
    response = client.post(name, compress(orjson.dumps(body)), version, headers)
    polled = client.post("retrieve_future", compress(orjson.dumps({"request_id": "r"})), version, headers)
    client.close()
    sent = [(request.path, request.content) for request in upstream.requests]
    assert not any("content-encoding" in request.headers for request in upstream.requests)
    return _essence(response), sent, _essence(polled)


def _essence(response: WireResponse) -> tuple[int, Any]:
    return response.status, value_of(response)


@pytest.mark.parametrize("encoding", [*COMPRESSIONS, "identity"])
@pytest.mark.parametrize("version", ["0.4.1", "0.16.1", "0.38.0", None])
@pytest.mark.parametrize("to_wire", ["0.4.1", "0.16.1", "0.38.0", None])
@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("asample", SAMPLE),
        ("asample", {**SAMPLE, "prompt_logprobs": True}),
        ("asample", {**SAMPLE, "topk_sample_logprobs": 2}),
        ("forward_backward", BATCH),
        ("create_session", {"tags": [], "user_metadata": None, "sdk_version": "0.4.1", "type": "create_session"}),
        ("retrieve_future", {"request_id": "r", "allow_metadata_only": True}),
    ],
)
def test_compressed_body_means_the_same(
    to_wire: str | None, version: str | None, name: str, body: Any, encoding: str
) -> None:
    assert _exchange(to_wire, version, name, body, encoding) == _exchange(to_wire, version, name, body, "")


def test_compressed_session_names_the_version_of_its_client(upstream: Upstreams) -> None:
    upstream.answers["create_session"] = json_response({"session_id": "s"})
    client = Client(upstream)
    session = {"tags": [], "user_metadata": None, "sdk_version": "0.4.1"}
    client.post("create_session", gzip.compress(orjson.dumps(session)), headers={"Content-Encoding": "gzip"})
    upstream.answers["create_sampling_session"] = json_response({"sampling_session_id": "sampler"})
    body = {"session_id": "s", "sampling_session_seq_id": 0, "base_model": "b"}
    client.post("create_sampling_session", body)
    # A client of an unknown version might speak 0.38.0, which has the field.
    sample = {"prompt": TEXT, "sampling_params": {}, "sampling_session_id": "sampler", "topk_sample_logprobs": 1}
    assert client.post("asample", sample).status == 422


@pytest.mark.parametrize("encoding", ["br", "gzip, gzip", "x"])
@pytest.mark.parametrize("version", ["0.16.1", None])
def test_unknown_encoding_is_rejected(upstream: Upstreams, encoding: str, version: str | None) -> None:
    """The body without its encoding would be another body."""
    upstream.answers["asample"] = json_response({"request_id": "r"})
    response = Client(upstream).post("asample", SAMPLE, version, {"Content-Encoding": encoding})
    assert response.status == 415
    assert encoding in value_of(response)["detail"]
    assert not upstream.named("asample")


def test_escaped_name_asks_for_prompt_logprobs_too(upstream: Upstreams) -> None:
    upstream.answers["asample"] = json_response({"request_id": "r"})
    upstream.answers["retrieve_future"] = json_response(RESULT)
    client = Client(upstream)
    body = orjson.dumps({**SAMPLE, "prompt_logprobs": True}).replace(b"prompt_logprobs", b"prompt\\u005flogprobs")
    assert client.post("asample", body, "0.16.1").status == 200
    polled = client.post("retrieve_future", {"request_id": "r"}, "0.16.1")
    assert value_of(polled)["prompt_logprobs"] == [None, -1.5, -2.5]
