"""Protocols of models: len, indices, iteration, arrays, dict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinkerwire_generated import models as m

MATRIX = m.TensorData(data=np.arange(6, dtype=np.float32), dtype="float32", shape=[2, 3])
LIST_TENSOR = m.TensorData(data=[1, 2, 3], dtype="int64")
SCALAR = m.TensorData(data=[1.5], dtype="float32", shape=[])
EMPTY = m.TensorData(data=[], dtype="float32", shape=[0])
SPARSE = m.TensorData(data=[7], dtype="int64", shape=[2, 2], sparse_crow_indices=[0, 1, 1], sparse_col_indices=[1])


def test_length_of_a_tensor_equals_that_of_its_array() -> None:
    """Of the first dimension; a tensor is true however long it is, as the official one."""
    assert [len(tensor) for tensor in (MATRIX, LIST_TENSOR, EMPTY, SPARSE)] == [2, 3, 0, 2]
    with pytest.raises(TypeError, match="without dimensions"):
        len(SCALAR)
    assert all([MATRIX, SCALAR, EMPTY])


@pytest.mark.parametrize(
    ("tensor", "key", "expected"),
    [
        (LIST_TENSOR, 1, 2),
        (LIST_TENSOR, -1, 3),
        (LIST_TENSOR, slice(1, None), [2, 3]),
        (MATRIX, 1, [3, 4, 5]),
        (MATRIX, (slice(None), 0), [0, 3]),
        (MATRIX, np.array([True, False]), [[0, 1, 2]]),
        (SPARSE, 0, [0, 7]),
        (SCALAR, (), 1.5),
    ],
)
def test_indices_and_slices_equal_those_of_the_array(tensor: m.TensorData, key: Any, expected: Any) -> None:
    """By number, slice, several of them, or mask."""
    assert np.asarray(tensor[key]).tolist() == expected


def test_iteration_goes_over_the_first_dimension() -> None:
    """As over an array, with its end."""
    assert list(LIST_TENSOR) == [1, 2, 3]
    assert [row.tolist() for row in MATRIX] == [[0, 1, 2], [3, 4, 5]]
    assert 2 in LIST_TENSOR
    with pytest.raises(IndexError):
        LIST_TENSOR[3]


@pytest.mark.parametrize("tensor", [MATRIX, LIST_TENSOR, SCALAR, EMPTY, SPARSE])
def test_numpy_converts_a_tensor_to_an_array(tensor: m.TensorData) -> None:
    """The array has the dtype and shape of the tensor, or another dtype on request."""
    array = np.asarray(tensor)
    assert array.dtype == tensor.dtype and array.shape == tensor.to_numpy().shape
    assert np.array_equal(array, tensor.to_numpy())
    assert np.asarray(tensor, np.float64).dtype == np.float64
    assert np.array(tensor).tolist() == tensor.tolist()
    assert tensor.__array__(np.int64).dtype == np.int64
    assert np.sum(tensor) == tensor.to_numpy().sum()


def test_array_is_copied_only_on_request_or_if_required() -> None:
    """By the rules of numpy 2: None as needed, True always, False never."""
    assert np.shares_memory(np.asarray(MATRIX), MATRIX.raw)
    assert not np.shares_memory(np.array(MATRIX), MATRIX.raw)
    assert not np.shares_memory(MATRIX.__array__(copy=True), MATRIX.raw)
    assert np.shares_memory(MATRIX.__array__(copy=False), MATRIX.raw)
    for rejection in (
        lambda: LIST_TENSOR.__array__(copy=False),
        lambda: SPARSE.__array__(copy=False),
        lambda: MATRIX.__array__(np.float64, copy=False),
    ):
        with pytest.raises(ValueError, match="requires a copy"):
            rejection()


@pytest.mark.parametrize(
    "make",
    [
        lambda: m.AdamParams(learning_rate=0.5),
        lambda: m.SamplingParams(max_tokens=3),
        lambda: m.ModelInput.from_ints([1, 2]),
        lambda: m.SupportedModel(model_name="a", extra_fields={"more": 1}),
    ],
)
def test_dict_of_a_model_has_its_fields(make: Callable[[], Any]) -> None:
    """As of the official pydantic models: names and values as they are, and unknown keys."""
    model = make()
    fields = dict(model)
    names = {name for name in type(model).model_fields if name != "extra_fields"}
    assert set(fields) - {"more"} == names
    assert all(fields[name] is getattr(model, name) for name in names)
    assert fields.get("more") == getattr(model, "extra_fields", {}).get("more")


def test_datums_are_not_iterable() -> None:
    """As the official one, which is a dataclass."""
    datum = m.Datum(model_input=m.ModelInput.from_ints([1]), loss_fn_inputs={})
    with pytest.raises(TypeError, match="not iterable"):
        iter(datum)  # type: ignore[call-overload]
