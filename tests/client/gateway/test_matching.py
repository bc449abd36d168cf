"""Large bodies that mean the same in two versions whose schemas differ."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from support.gateway_clients import Client, Upstreams, json_response
from tinkerwire._gateway.matching import MIN_SCANNED_BYTES
from tinkerwire._wire.dialect import Dialect

IMAGE = {"type": "image", "data": "AA==", "format": "png", "expected_tokens": 1}


def batch(loss_fn: str = "cross_entropy", *chunks: Any) -> bytes:
    """Return a large batch, with spaces that a translation would remove."""
    tokens = list(range(MIN_SCANNED_BYTES // 4))
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
