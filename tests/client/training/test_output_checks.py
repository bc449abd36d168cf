"""Tests of outputs and metrics of batches: mismatches raise, readable values are read."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import ADAM, datum
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer
from tinkerwire._training.result_merging import merge_metrics, merge_results

pytestmark = pytest.mark.timeout(60)


def make_outputs(*sizes: int) -> dict[str, Any]:
    outputs = [{"logprobs": {"data": [-1.0] * size, "dtype": "float32", "shape": [size]}} for size in sizes]
    return {"loss_fn_output_type": "T", "loss_fn_outputs": outputs, "metrics": {}}


@pytest.mark.parametrize("kind", ["Forward", "ForwardBackward"])
@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ((2,), r"2 outputs for data\[0\] to data\[1\], got 1"),
        ((2, 3, 1), r"2 outputs for data\[0\] to data\[1\], got 3"),
        ((3, 2), r"data\[0\]: the server must return 2 logprobs, one per target token, got 3"),
        ((2, 2), r"data\[1\]: the server must return 3 logprobs, one per target token, got 2"),
    ],
)
def test_outputs_that_do_not_match_the_batch_raise(
    server: ScriptedServer, training: tw.TrainingClient, kind: str, sizes: tuple[int, ...], text: str
) -> None:
    """Too few, too many and reordered outputs raise an error that names the datum."""
    server.on_poll(kind, lambda _: ScriptedResponse(make_outputs(*sizes)))
    call = training.forward if kind == "Forward" else training.forward_backward
    with pytest.raises(tw.APIResponseValidationError, match=text):
        call([datum(1, 2), datum(1, 2, 3)], "cross_entropy").result(TEST_TIMEOUT_S)


@pytest.mark.parametrize("sizes", [(), (2, 3)])
def test_matching_outputs_are_kept(server: ScriptedServer, training: tw.TrainingClient, sizes: tuple[int, ...]) -> None:
    """A loss may have no outputs at all."""
    server.on_poll("Forward", lambda _: ScriptedResponse(make_outputs(*sizes)))
    result = training.forward([datum(1, 2), datum(1, 2, 3)], "cross_entropy").result(TEST_TIMEOUT_S)
    assert len(result.loss_fn_outputs) == len(sizes)


def test_metrics_as_text_are_read_and_others_are_warned_of_once(
    server: ScriptedServer, training: tw.TrainingClient, caplog: pytest.LogCaptureFixture
) -> None:
    """Numbers as text are read; a metric that is not a number is logged, once."""
    sent = {"a:sum": "2.0", "b:sum": "1e-3", "c:hash2": "18446744073709551615", "d:sum": None, "e:sum": "many"}
    server.on_poll("ForwardBackward", lambda _: ScriptedResponse({**make_outputs(), "metrics": sent}))
    server.on_poll("OptimStep", lambda _: ScriptedResponse({"metrics": sent}))
    caplog.set_level(logging.WARNING)
    expected = {"a:sum": 2.0, "b:sum": 0.001, "c:hash2": 2**64 - 1}
    for _ in range(2):
        assert training.forward_backward([datum()], "cross_entropy").result(TEST_TIMEOUT_S).metrics == expected
        assert training.optim_step(ADAM).result(TEST_TIMEOUT_S).metrics == expected
    warned = [record.getMessage() for record in caplog.records if "metric" in record.getMessage()]
    assert len(warned) == 2
    assert "'d:sum'" in warned[0]
    assert "'e:sum'" in warned[1]


def test_hash2_is_the_exact_sum_modulo_2_to_the_64() -> None:
    """Integers beyond 2^53 keep every digit, and negative ones wrap."""
    merged = merge_metrics([{"h:hash2": 2**64 - 1}, {"h:hash2": "9007199254740993"}, {"h:hash2": -1}], [1, 1, 1])
    assert merged == {"h:hash2": 9007199254740991}


def test_unknown_reduction_warns() -> None:
    """The warning names the metric and the reduction in use."""
    warned: list[tuple[str, str]] = []
    merged = merge_metrics([{"x:other": 1}, {"x:other": 3}], [1, 1], lambda *parts: warned.append(parts))
    assert merged == {"x:other": 2.0}
    assert warned == [("x:other", "the reduction 'other' is unknown; different values of chunks are averaged")]
    assert merge_results([]).metrics == {}
