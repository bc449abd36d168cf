"""Tests that long lists of numbers, which tensors store as arrays, are checked, read and sent like all other lists."""

from __future__ import annotations

import copy
import json
import math
import pickle
import warnings
from typing import Any, Literal

import attrs
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tinkerwire_base.call import default_converter
from tinkerwire_base.packed_list import MIN_PACKED_ITEMS, pack_floats
from tinkerwire_base.validators import NumberRangeError
from tinkerwire_generated import models as m

FLOATS = [0.1 * i - 3.7 for i in range(MIN_PACKED_ITEMS)]
INTS = list(range(150_000, 150_000 + MIN_PACKED_ITEMS))
NUMBERS = st.floats(width=64) | st.integers(-(2**70), 2**70) | st.booleans() | st.none() | st.just(np.float32(0.5))


def _make(values: Any, dtype: Literal["float32", "int64"] = "float32") -> m.TensorData:
    return m.TensorData(data=values, dtype=dtype)


def _make_datum(tensor: m.TensorData, name: str = "advantages") -> m.TensorData:
    return m.Datum(model_input=m.ModelInput.from_ints([1]), loss_fn_inputs={name: tensor}).loss_fn_inputs[name]


def _error_of(values: list[Any], dtype: Literal["float32", "int64"], name: str) -> tuple[type, str] | None:
    try:
        _make_datum(_make(values, dtype), name)
    except (TypeError, ValueError) as error:
        return type(error), str(error)
    return None


@given(st.lists(st.floats(width=64), min_size=MIN_PACKED_ITEMS, max_size=MIN_PACKED_ITEMS + 9))
def test_floats_read_as_given(values: list[float]) -> None:
    """The list has all digits of the floats, NaN and infinity, and belongs to the tensor."""
    given_values = list(values)
    tensor = _make(values)
    values[0] = 17.5
    assert list(map(repr, tensor.data)) == list(map(repr, given_values))


@given(st.lists(NUMBERS, min_size=MIN_PACKED_ITEMS, max_size=MIN_PACKED_ITEMS + 3))
def test_datum_accepts_and_rejects_what_it_does_of_short_lists(values: list[Any]) -> None:
    """A list of one item is not packed: a long one is rejected exactly if one of its items is."""
    for dtype, name in (("float32", "advantages"), ("int64", "target_tokens")):
        singles = [_error_of([value], dtype, name) for value in values]  # type: ignore[arg-type]
        found = _error_of(values, dtype, name)  # type: ignore[arg-type]
        assert (found is None) == (singles == [None] * len(singles))
        if found is not None:
            first = next(i for i, error in enumerate(singles) if error)
            assert f"{name}[{first}]" in found[1] or any(e and e[0] is found[0] for e in singles)


@pytest.mark.parametrize(("values", "dtype", "packed"), [(FLOATS, "float32", "float64"), (INTS, "int64", "int64")])
def test_long_lists_are_packed(values: list[Any], dtype: Any, packed: str) -> None:
    """Floats keep all their digits, and integers have the dtype of the wire."""
    raw = _make_datum(_make(values, dtype)).raw
    assert isinstance(raw, np.ndarray)
    assert (raw.dtype, raw.tolist()) == (np.dtype(packed), values)


def test_large_float_of_long_list_is_named() -> None:
    """The error has the position, and NaN does not hide it."""
    with pytest.raises(NumberRangeError, match=r"advantages\[65\]: 1e\+39 does not fit into float32"):
        _make_datum(_make([*FLOATS, math.nan, 1e39]))


@given(st.floats(width=64), st.integers(0, len(FLOATS)))
@example(2.0**113, 5)
@example(-(2.0**113), 0)
@example(np.nextafter(2.0**113, 0).item(), 5)
@example(-math.inf, 5)
@example(math.nan, len(FLOATS))
def test_only_numbers_that_float32_holds_are_packed(number: float, position: int) -> None:
    """NaN, infinity and large numbers are left to the check of the datum, wherever they are."""
    packed = pack_floats([*FLOATS[:position], number, *FLOATS[position:]])
    assert (packed is not None) == (abs(number) < 2.0**113)


def test_rounding_of_lists_is_silent() -> None:
    """A list has no dtype, so that its rounding to float32 causes no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tensor = _make_datum(_make(FLOATS))
        assert tensor.to_numpy().tolist() == np.array(FLOATS, np.float32).tolist()


@pytest.mark.parametrize(("values", "dtype", "other"), [(FLOATS, "float32", 0.25), (INTS, "int64", 7)])
def test_changed_list_is_sent(values: list[Any], dtype: Any, other: Any) -> None:
    """The list that the attribute returns belongs to the tensor, also after copies of it."""
    for copied in (_make(values, dtype), attrs.evolve(_make(values, dtype)), copy.copy(_make(values, dtype))):
        copied.data[3] = other
        expected = [*values[:3], other, *values[4:]]
        assert copied.to_numpy().tolist() == np.array(expected, dtype).tolist()
        assert json.loads(default_converter().encode(copied))["data"] == expected


@pytest.mark.parametrize(("values", "dtype"), [(FLOATS, "float32"), (INTS, "int64")])
def test_lists_of_responses_are_not_packed(values: list[Any], dtype: Any) -> None:
    """A tensor of JSON keeps the list of the parser, is equal to a packed one, and is sent like it."""
    text = default_converter().encode(_make(values, dtype))
    tensor = default_converter().decode(text, m.TensorData)
    assert tensor.raw == tuple(values)
    assert tensor == _make(values, dtype)
    assert default_converter().encode(_make_datum(tensor)) == text


@pytest.mark.parametrize(("values", "dtype"), [(FLOATS, "float32"), (INTS, "int64")])
def test_no_array_changes_a_list(values: list[Any], dtype: Any) -> None:
    """Copies share the array of a list, so that it cannot be written to; the array of the tensor is a copy."""
    tensor = _make(values, dtype)
    copied = copy.copy(tensor)
    with pytest.raises(ValueError, match="read-only"):
        tensor.raw[0] = 5
    tensor.to_numpy()[0] = 5
    assert tensor.data == copied.data == values


@pytest.mark.parametrize(("values", "dtype"), [(FLOATS, "float32"), (INTS, "int64")])
def test_packed_tensors_compare_and_copy_like_lists(values: list[Any], dtype: Any) -> None:
    """Equality, pickles, copies and dumps do not depend on the form, and show the numbers as given."""
    tensor, read = _make(values, dtype), _make(values, dtype)
    assert read.data == values
    for other in (pickle.loads(pickle.dumps(tensor)), copy.deepcopy(tensor), attrs.evolve(tensor), read):
        assert other == _make(values, dtype)
        assert repr(other) == repr(read)
        assert other.data == values
    assert _make(values, dtype).model_dump()["data"] == values
    assert json.loads(_make(values, dtype).model_dump_json())["data"] == values
    assert json.loads(default_converter().encode(_make(values, dtype)))["data"] == values
