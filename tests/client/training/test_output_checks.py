"""Tests of outputs and metrics of batches: mismatches raise, readable values are read."""

from __future__ import annotations

import logging
import math
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import ADAM, datum
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer
from tinkerwire._training.result_merging import check_all_or_none, check_outputs, merge_metrics, merge_results

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


def make_datum(targets: tw.TensorData | None, weights: list[float] | None = None) -> tw.Datum:
    """Return a datum with these loss inputs."""
    inputs: dict[str, Any] = {} if targets is None else {"target_tokens": targets}
    if weights is not None:
        inputs["weights"] = weights
    return tw.Datum(model_input=tw.ModelInput.from_ints([1]), loss_fn_inputs=inputs)


def make_tensor(size: int, shape: list[int] | None, dtype: Any = "float32") -> tw.TensorData:
    """Return a tensor of ones."""
    return tw.TensorData(data=[1] * size, dtype=dtype, shape=shape)


def make_result(**tensors: tw.TensorData) -> tw.ForwardBackwardOutput:
    """Return the result of a chunk of one datum."""
    return tw.ForwardBackwardOutput(loss_fn_output_type="T", loss_fn_outputs=[tensors], metrics={})


@pytest.mark.parametrize("name", ["logprobs", "elementwise_loss"])
@pytest.mark.parametrize("target_shape", [None, [4]])
@pytest.mark.parametrize("shape", [None, True])
def test_tensor_without_shape_has_the_size_of_its_data(
    name: str, target_shape: list[int] | None, shape: bool | None
) -> None:
    """Targets and outputs without a shape are compared by the number of their values."""
    chunk = [make_datum(make_tensor(4, target_shape, "int64"))]
    check_outputs(chunk, 0, make_result(**{name: make_tensor(4, [4] if shape else None)}))
    for size in (3, 5):
        with pytest.raises(tw.APIResponseValidationError, match=rf"data\[7\]: .* return 4 {name}, .*, got {size}"):
            check_outputs(chunk, 7, make_result(**{name: make_tensor(size, [size] if shape else None)}))


def test_position_with_several_targets_may_have_one_output() -> None:
    """With targets of shape [3, 2], three or six outputs are valid, and no other number."""
    chunk = [make_datum(make_tensor(6, [3, 2], "int64"))]
    for size in (3, 6):
        check_outputs(chunk, 0, make_result(logprobs=make_tensor(size, [size])))
    check_outputs(chunk, 0, make_result(logprobs=make_tensor(6, [3, 2])))
    for size in (2, 4, 5, 7):
        with pytest.raises(tw.APIResponseValidationError, match=f"must return 6 logprobs, .*, got {size}"):
            check_outputs(chunk, 0, make_result(logprobs=make_tensor(size, [size])))


@pytest.mark.parametrize(
    ("weights", "sizes"),
    [
        ([1.0, 0.0, 0.0, 1.0], {2, 3, 4}),
        ([0.5, 0.0, 0.0, 0.0], {1, 2, 3, 4}),
        ([0.0, 0.0, 0.0, 0.0], {4}),
        ([1.0, 1.0, 1.0, 1.0], {4}),
        (None, {4}),
    ],
)
def test_outputs_may_lack_positions_of_weight_zero(weights: list[float] | None, sizes: set[int]) -> None:
    """At least every position with a weight must have an output, unless all weights are zero."""
    chunk = [make_datum(make_tensor(4, [4], "int64"), weights)]
    valid = set()
    for size in range(6):
        try:
            check_outputs(chunk, 0, make_result(logprobs=make_tensor(size, [size])))
        except tw.APIResponseValidationError:
            continue
        valid.add(size)
    assert valid == sizes


def test_sparse_tensor_has_the_size_of_its_shape() -> None:
    """The values that a sparse tensor does not store count."""
    sparse = tw.TensorData(
        data=[-1.0], dtype="float32", shape=[2, 3], sparse_crow_indices=[0, 1, 1], sparse_col_indices=[2]
    )
    check_outputs([make_datum(make_tensor(6, [6], "int64"))], 0, make_result(logprobs=sparse))
    with pytest.raises(tw.APIResponseValidationError, match=r"must return 1 logprobs, .*, got 6") as caught:
        check_outputs([make_datum(make_tensor(1, [1], "int64"))], 0, make_result(logprobs=sparse))
    assert caught.value.status_code == 200


def test_outputs_of_later_datums_are_checked_too() -> None:
    """A datum without targets, or an output of another name, does not end the check of the chunk."""
    chunk = [make_datum(None), make_datum(make_tensor(2, [2], "int64")), make_datum(make_tensor(2, [2], "int64"))]
    outputs = [
        {"logprobs": make_tensor(9, [9])},
        {"other": make_tensor(9, [9])},
        {"elementwise_loss": make_tensor(3, [3])},
    ]
    result = tw.ForwardBackwardOutput(loss_fn_output_type="T", loss_fn_outputs=outputs, metrics={})
    with pytest.raises(tw.APIResponseValidationError, match=r"data\[12\]: the server must return 2 elementwise_loss"):
        check_outputs(chunk, 10, result)


def test_chunk_without_outputs_among_others_is_named() -> None:
    """The error names the datums of the first chunk that has no outputs."""
    empty = tw.ForwardBackwardOutput(loss_fn_output_type="T", loss_fn_outputs=[], metrics={})
    filled = make_result(logprobs=make_tensor(1, [1]))
    chunks = [[datum()], [datum(), datum()], [datum(), datum(), datum()]]
    check_all_or_none(chunks, [empty] * 3)
    check_all_or_none(chunks, [filled] * 3)
    with pytest.raises(tw.APIResponseValidationError, match=r"not for data\[1\] to data\[2\]"):
        check_all_or_none(chunks, [filled, empty, empty])
    with pytest.raises(tw.APIResponseValidationError, match=r"not for data\[3\] to data\[5\]"):
        check_all_or_none(chunks, [filled, filled, empty])
    with pytest.raises(tw.APIResponseValidationError, match=r"not for data\[0\] to data\[0\]"):
        check_all_or_none(chunks, [empty, filled, filled])


def test_hashes_and_means_of_special_values() -> None:
    """Hashes of infinite values are NaN, equal unknown metrics are kept, and the means of weightless chunks count."""
    metrics = merge_metrics(
        [{"a:hash_unordered": math.inf, "b:hash2": math.inf, "c:odd": 3.0, "d:mean": 1.0}] * 2, [0, 0]
    )
    assert math.isnan(metrics.pop("a:hash_unordered"))
    assert math.isnan(metrics.pop("b:hash2"))
    assert metrics == {"c:odd": 3.0, "d:mean": 1.0}
    assert merge_metrics([{"d:mean": 1.0}, {"d:mean": 2.0}], [0, 0]) == {"d:mean": 1.5}
    assert merge_metrics([{"u:unique": 5.0}, {"u:unique": 6.0}, {"u:unique": 7.0}], [1, 1, 1]) == {
        "u:unique": 5.0,
        "u:unique_1": 6.0,
        "u:unique_2": 7.0,
    }
    assert merge_metrics([{"h:hash2": -1.0}], [1]) == {"h:hash2": 2**64 - 1}


def test_first_named_type_and_number_of_outputs_are_used() -> None:
    """Chunks without a type do not hide that of others, and by default each output counts in the mean."""
    empty = tw.ForwardBackwardOutput(loss_fn_output_type="", loss_fn_outputs=[], metrics={"x:mean": 9.0})
    two = tw.ForwardBackwardOutput(loss_fn_output_type="A", loss_fn_outputs=[{}, {}], metrics={"x:mean": 1.0})
    one = tw.ForwardBackwardOutput(loss_fn_output_type="B", loss_fn_outputs=[{}], metrics={"x:mean": 4.0})
    merged = merge_results([empty, two, one])
    assert (merged.loss_fn_output_type, len(merged.loss_fn_outputs), merged.metrics) == ("A", 3, {"x:mean": 2.0})
    assert merge_results([two, one], [1, 5]).metrics == {"x:mean": 3.5}
    assert merge_results([empty]).loss_fn_output_type == ""
