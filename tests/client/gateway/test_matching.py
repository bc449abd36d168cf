"""Bodies that mean the same in two versions whose schemas differ."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from support.gateway_clients import Client, Upstreams, json_response
from tinkerwire._connection.call_codec import WIRE_HEADER
from tinkerwire._gateway.matching import has_same_json
from tinkerwire._wire.dialect import Dialect

IMAGE = {"type": "image", "data": "AA==", "format": "png", "expected_tokens": 1}


def batch(loss_fn: str = "cross_entropy", *chunks: Any) -> bytes:
    """Return a large batch, with spaces that a translation would remove."""
    tokens = list(range(10_000))
    datum = {"model_input": {"chunks": [{"tokens": tokens, "type": "encoded_text"}, *chunks]}, "loss_fn_inputs": {}}
    value = {"data": [datum], "loss_fn": loss_fn}
    return orjson.dumps({"model_id": "m", "seq_id": 1, "forward_backward_input": value}, option=orjson.OPT_INDENT_2)


@pytest.mark.parametrize("to_wire", ["0.4.1", None], ids=["older", "discovered"])
def test_large_batch_without_differences_is_passed_as_it_came(upstream: Upstreams, to_wire: str | None) -> None:
    upstream.answers["forward_backward"] = json_response({"request_id": "r"})
    client = Client(upstream, to_wire)
    if to_wire is None:
        # Batches are JSON once protobuf was rejected; the next dialect is known by then.
        client.app._upstream._dialect = Dialect.from_client_config(None).as_confirmed(
            "forward_backward", Dialect.for_version("0.16.1")
        )
    assert client.post("forward_backward", batch(), "0.16.1").status == 200
    assert upstream.requests[-1].content == batch()


@pytest.mark.parametrize(("loss_fn", "chunks", "text"), [("dro", (), "dro"), ("cross_entropy", (IMAGE,), "height")])
def test_large_batch_with_a_difference_is_refused(
    upstream: Upstreams, loss_fn: str, chunks: tuple[Any, ...], text: str
) -> None:
    """Version 0.4.1 has no such loss, and requires sizes of images."""
    response = Client(upstream, "0.4.1").post("forward_backward", batch(loss_fn, *chunks), "0.16.1")
    assert response.status == 400
    assert text in response.content.decode() or "expected_tokens" in response.content.decode()
    assert not upstream.named("forward_backward")


SAMPLE = (
    b'{"sampling_session_id": "s", "seq_id": 1, "num_samples": 1, "sampling_params": {"temperature": 1e0}, '
    b'"prompt": {"chunks": [{"type": "encoded_text", "tokens": [1, 2]}]}%s}'
)
RANGE = {WIRE_HEADER: "0.18.2-0.38.0"}


@pytest.mark.parametrize("to_wire", ["0.18.2", "0.38.0", None], ids=["older", "newest", "discovered"])
@pytest.mark.parametrize("headers", [{"X-Stainless-Package-Version": "0.38.0"}, RANGE], ids=["official", "range"])
def test_sample_without_differences_is_passed_as_it_came(
    upstream: Upstreams, headers: dict[str, str], to_wire: str | None
) -> None:
    """Neither the range of a client that knows its server only so far, nor a schema with more fields, matters."""
    upstream.answers["client/config"] = json_response({})
    upstream.answers["asample"] = json_response({"request_id": "r", "sample_sequence_ids": ["r:0"]})
    sample = SAMPLE % b""
    assert Client(upstream, to_wire).post("asample", sample, None, headers).status == 200
    assert upstream.requests[-1].content == sample


@pytest.mark.parametrize(
    "field", [b', "topk_sample_logprobs": 2', b', "topk\\u005fsample_logprobs": 2', b', "prompt_alt_tokens_k": 3']
)
@pytest.mark.parametrize("headers", [{"X-Stainless-Package-Version": "0.38.0"}, RANGE], ids=["official", "range"])
def test_sample_with_a_difference_is_refused(upstream: Upstreams, headers: dict[str, str], field: bytes) -> None:
    """An escape in the name of a field hides nothing."""
    response = Client(upstream, "0.18.2").post("asample", SAMPLE % field, None, headers)
    assert response.status == 400
    assert "wire 0.18.2" in response.content.decode()
    assert not upstream.named("asample")


def test_chunk_that_one_version_lacks_is_a_difference() -> None:
    """Version 0.18.2 has no dmel chunks, and the same other ones."""
    dialect = Dialect.for_version("0.18.2")
    assert has_same_json("asample", "0.38.0", dialect, SAMPLE % b"")
    assert not has_same_json("asample", "0.38.0", dialect, (SAMPLE % b"").replace(b"encoded_text", b"dmel"))
    assert not has_same_json("asample", "0.38.0", dialect)
