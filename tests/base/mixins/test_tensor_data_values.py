"""TensorData: dtypes, shapes and values."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from tinkerwire_base.conversion.converter import Converter
from tinkerwire_generated.models import (
    TensorData,
)

CONVERTER = Converter()


def test_null_shape_reads_as_one_dimension() -> None:
    """A response without a shape has one-dimensional data."""
    tensor = CONVERTER.structure({"data": [1, 2.5], "dtype": "float32", "shape": None}, TensorData)
    assert tensor.shape is None
    assert tensor.to_numpy().shape == (2,)
    assert tensor.tolist() == [1, 2.5]
    assert CONVERTER.unstructure(tensor) == {"data": (1, 2.5), "dtype": "float32"}


@pytest.mark.parametrize(
    ("dtype", "values"), [("float32", []), ("int64", []), ("float32", [1.5]), ("int64", [2**62 + 1])]
)
def test_lists_become_arrays_of_their_dtype(dtype: Any, values: list[Any]) -> None:
    """The array of a list has the dtype of the wire and equal values, also when empty."""
    array = TensorData(data=values, dtype=dtype).to_numpy()
    assert array.dtype == dtype and array.tolist() == values


def test_tensor_keeps_its_shape() -> None:
    """A tensor keeps any number of dimensions, also as nested lists."""
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    tensor = TensorData.from_numpy(array)
    assert (tensor.shape, tensor.dtype, len(tensor.data)) == ([2, 3, 4], "float32", 24)
    assert tensor.tolist() == array.tolist()


def test_null_in_float_data_reads_as_nan() -> None:
    """Some servers send null for a missing number."""
    array = TensorData(data=[1.0, None], dtype="float32").to_numpy()  # type: ignore[list-item]
    assert array[0] == 1 and np.isnan(array[1])


@pytest.mark.parametrize("values", [[1, None], [1, 2.5], ["a"], [2**63]])
def test_data_of_another_dtype_raises_value_error(values: list[Any]) -> None:
    """Null, fractions, text and overflow in int64 data raise ValueError."""
    with pytest.raises(ValueError, match=r"TensorData.data: cannot be read as int64"):
        TensorData(data=values, dtype="int64").to_numpy()


@pytest.mark.parametrize("shape", [[2, 2], [], [-1, -3], [4]])
def test_shape_must_match_the_data(shape: list[int]) -> None:
    """A shape of another size raises an error that names both when the tensor is made."""
    with pytest.raises(ValueError, match=r"TensorData.shape: \[.*\] does not hold 3 values"):
        TensorData(data=[1, 2, 3], dtype="int64", shape=shape)


@pytest.mark.parametrize(
    ("values", "dtype", "pattern"),
    [
        (np.ones((2, 2), np.float32), "float32", "expected a 1-D array for float32, got 2-D float32; from_numpy"),
        (np.ones(2), "int64", "expected a 1-D array for int64, got 1-D float64"),
        (np.array(["a"]), "float32", "got 1-D <U1"),
        ("abc", "float32", "expected a flat list or array, got str"),
        (None, "float32", "got NoneType"),
    ],
)
def test_data_must_be_flat_numbers(values: Any, dtype: Any, pattern: str) -> None:
    """Arrays of more dimensions or other dtypes raise TypeError."""
    with pytest.raises(TypeError, match=f"TensorData.data: .*{pattern}"):
        TensorData(data=values, dtype=dtype)


def test_dtype_must_be_one_of_the_wire() -> None:
    """The dtype float64 does not exist on the wire."""
    with pytest.raises(ValueError, match=r"TensorData.dtype: must be one of 'int64', 'float32', got 'float64'"):
        TensorData(data=[1.0], dtype="float64")  # type: ignore[arg-type]


def test_tensors_are_equal_by_value() -> None:
    """An array and a list of the same numbers make equal tensors; other shapes differ."""
    tensor = TensorData(data=np.array([1.0, 2.0], np.float32), dtype="float32")
    assert tensor == TensorData(data=[1.0, 2.0], dtype="float32")
    assert tensor != TensorData(data=[1.0, 2.5], dtype="float32")
    assert tensor != TensorData(data=[1.0, 2.0], dtype="float32", shape=[2])
    assert tensor != [1.0, 2.0]


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_tensor_of_an_array_equals_the_constructed_tensor(shape: tuple[int, ...]) -> None:
    """A tensor made by ``from_numpy``, which skips the constructor, has the same value in every field."""
    array = np.ones(shape, np.float32)
    tensor = TensorData.from_numpy(array)
    constructed = TensorData(data=array.reshape(-1), dtype="float32", shape=list(shape))
    assert tensor == constructed
    assert repr(tensor) == repr(constructed)
    assert [hasattr(tensor, field.name) for field in attrs.fields(TensorData)] == [True] * len(attrs.fields(TensorData))
