"""TensorData as an array and as a sequence of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tinkerwire_generated.models import TensorData

MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)
SPARSE = TensorData(data=[7.0], dtype="float32", shape=[2, 3], sparse_crow_indices=[0, 0, 1], sparse_col_indices=[2])


@pytest.mark.parametrize(
    "tensor",
    [
        TensorData.from_numpy(MATRIX),
        TensorData(data=[1.0, 2.0, 3.0], dtype="float32"),
        TensorData(data=[1, 2, 3, 4], dtype="int64", shape=[4, 1]),
        TensorData(data=[], dtype="int64"),
        SPARSE,
    ],
    ids=["matrix", "list", "column", "empty", "sparse"],
)
def test_tensor_behaves_as_the_sequence_of_its_rows(tensor: TensorData) -> None:
    """Length, rows, slices and array equal those of to_numpy for every form of the data."""
    expected = tensor.to_numpy()
    assert len(tensor) == len(expected)
    assert tensor  # an empty tensor is truthy, as with the official class
    assert np.array_equal(list(tensor), list(expected))
    assert np.array_equal(tensor[1:], expected[1:])
    assert np.array_equal(tensor[::-1], expected[::-1])
    array = np.asarray(tensor)
    assert array.dtype == expected.dtype
    assert np.array_equal(array, expected)
    assert np.asarray(tensor, np.float64).dtype == np.float64
    assert np.array_equal(np.array(tensor, copy=True), expected)
    with pytest.raises(IndexError):
        tensor[len(tensor)]


def test_array_is_copied_only_on_request() -> None:
    """Numpy's copy=True returns new memory, copy=False the data itself or a ValueError."""
    tensor: Any = TensorData.from_numpy(MATRIX)
    assert np.shares_memory(np.asarray(tensor), MATRIX)
    assert np.shares_memory(tensor.__array__(copy=False), MATRIX)
    assert not np.shares_memory(np.array(tensor), MATRIX)
    assert not np.shares_memory(tensor.__array__(copy=True), MATRIX)
    for converted in (TensorData(data=[1.0], dtype="float32"), SPARSE):
        with pytest.raises(ValueError, match="requires a copy"):
            converted.__array__(copy=False)
    with pytest.raises(ValueError, match="requires a copy"):
        tensor.__array__(np.float64, copy=False)


def test_tensor_without_dimensions_has_no_length() -> None:
    """It behaves like an array without dimensions."""
    tensor = TensorData(data=[3], dtype="int64", shape=[])
    with pytest.raises(TypeError, match="no length"):
        len(tensor)
    assert np.asarray(tensor).item() == 3
