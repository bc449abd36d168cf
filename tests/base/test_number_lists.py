"""Lists of numbers: their types by key, rectangles, and errors with the position."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinkerwire_base import tensors
from tinkerwire_base.tensors import (
    flat_array,
    is_number_list,
    wire_list,
)
from tinkerwire_generated.constants import LOSS_INPUT_DTYPES
from tinkerwire_generated.models import TensorData

wire_array = partial(tensors.wire_array, list_dtypes=LOSS_INPUT_DTYPES)


@pytest.mark.parametrize(("key", "dtype"), LOSS_INPUT_DTYPES.items())
def test_lists_are_typed_by_key(key: str, dtype: str) -> None:
    """Every key of the wire has the dtype of its plain lists, empty, nested and of tuples too."""
    assert wire_array(key, [1, 0]).dtype == dtype
    assert wire_array(key, []).dtype == dtype
    assert wire_array(key, ((1, 0), (0, 1))).shape == (2, 2)
    assert wire_array(key, [[], []]).shape == (2, 0)
    assert wire_array(key, [True, False]).tolist() == [1, 0]


def test_lists_under_unknown_keys_are_rejected() -> None:
    """A plain list under a key that the wire does not know has no dtype; the error names the known ones."""
    with pytest.raises(ValueError, match=r"wieghts: a plain list has no dtype.*target_tokens, weights.*numpy array"):
        wire_array("wieghts", [1.0])


@pytest.mark.parametrize(
    ("key", "value", "kind", "pattern"),
    [
        ("weights", [1.0, None], TypeError, r"weights\[1\]: expected a number, got None \(NoneType\)"),
        ("weights", [[1.0], [None]], TypeError, r"weights\[1, 0\]: expected a number, got None"),
        ("weights", ["1"], TypeError, r"weights\[0\]: expected a number, got '1' \(str\)"),
        ("weights", [1e39], OverflowError, r"weights\[0\]: 1e\+39 does not fit into float32"),
        ("weights", [2**70, 10**39], OverflowError, r"weights\[1\]: 1000.* does not fit into float32"),
        ("weights", [1.0, 10**400], OverflowError, r"weights\[1\]: 1.* does not fit into float32"),
        ("weights", [[1.0], [1.0, 2.0]], ValueError, r"weights: rows must have equal lengths"),
        ("weights", [[[1.0]], [[1.0], [2.0]]], ValueError, r"weights: rows must have equal lengths"),
        ("weights", [1.0, [2.0]], ValueError, r"weights: rows must have equal lengths"),
        ("target_tokens", [1, 2.5], TypeError, r"target_tokens\[1\]: expected an int, got 2.5 \(float\)"),
        ("target_tokens", [1.0], TypeError, r"target_tokens\[0\]: expected an int, got 1.0 \(float\)"),
        ("target_tokens", [1, float("nan")], TypeError, r"target_tokens\[1\]: expected an int, got nan"),
        ("target_tokens", [1, None], TypeError, r"target_tokens\[1\]: expected an int, got None"),
        ("target_tokens", [0, 2**63], OverflowError, rf"target_tokens\[1\]: {2**63} does not fit into"),
        ("target_tokens", [0, 2**70], OverflowError, rf"target_tokens\[1\]: {2**70} does not fit into 64 bits"),
        ("target_tokens", [-1, 2**63], OverflowError, rf"target_tokens\[1\]: {2**63} does not fit into 64 bits"),
        ("target_tokens", [-1, np.uint64(2**63)], OverflowError, r"target_tokens\[1\]: .* does not fit into 64 bits"),
        (
            "target_tokens",
            [np.array([1, 2]), np.array([1])],
            ValueError,
            r"target_tokens: rows must have equal lengths",
        ),
    ],
)
def test_invalid_lists_raise_errors_with_key_and_position(
    key: str, value: Any, kind: type[Exception], pattern: str
) -> None:
    """Nulls, text, floats for ints, raggedness and overflow each name the key, the position and the value."""
    with pytest.raises(kind, match=pattern):
        wire_array(key, value)


def test_large_ints_of_a_list_stay_exact() -> None:
    """Numpy would make a float of a list that mixes its uint64 with a negative number."""
    assert wire_array("target_tokens", [-1, np.uint64(2**62 + 1)]).tolist() == [-1, 2**62 + 1]


@settings(max_examples=40)
@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=2), max_size=5))
def test_rectangles_of_ints_survive_a_round_trip(rows: list[list[int]]) -> None:
    """Nested lists of 64-bit integers are exact there and back."""
    assert TensorData.from_array("target_tokens", rows).tolist() == rows


NUMBERS_AND_OTHERS = st.one_of(
    st.none(), st.booleans(), st.floats(), st.integers(-(2**65), 2**65), st.sampled_from([np.float64(0.1), "0.5", "a"])
)


@settings(max_examples=200)
@given(st.lists(NUMBERS_AND_OTHERS, max_size=4), st.sampled_from(["float32", "int64", "int32"]))
def test_flat_arrays_equal_those_of_numpy(values: list[Any], dtype: str) -> None:
    """Numbers are equal bit by bit, and errors are equal, for any list."""
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            expected = np.asarray(values, dtype)
        except (TypeError, ValueError, OverflowError) as error:
            with pytest.raises(type(error)):
                flat_array(values, dtype)
        else:
            array = flat_array(values, dtype)
            assert array.dtype == expected.dtype and np.array_equal(array, expected, equal_nan=dtype == "float32")


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        ([1, 2], "int64", True),
        ([0], "int64", True),
        ([], "int64", True),
        ([-1], "int64", False),
        ([2**53], "int64", False),
        ([True], "int64", False),
        ([1.0], "int64", False),
        ((1.0, 2), "float32", True),
        ([1, 2], "float32", True),
        ([1.0, True], "float32", False),
        ([1.0, None], "float32", False),
        (np.array([1.0]), "float32", False),
        (range(2), "int64", False),
    ],
)
def test_lists_of_plain_numbers_are_recognized(values: Any, dtype: str, expected: bool) -> None:
    """Only lists and tuples of Python's own numbers take the fast path."""
    assert is_number_list(values, dtype) is expected


def test_lists_within_lists_are_typed_and_named() -> None:
    """Rows of arrays and tuples are read, and the first invalid item of any row is named."""
    assert wire_list("x", [np.array([1, 2]), (3, 4)], "int64").tolist() == [[1, 2], [3, 4]]
    assert wire_list("x", [], "float32").shape == (0,)
    assert wire_list("x", [np.float32(1.5), 2], "float32").tolist() == [1.5, 2.0]
    assert wire_list("x", [np.bool_(True), np.int8(3)], "int64").tolist() == [1, 3]
    for value, place in (([[1, 2], [3, "a"]], r"\[1, 1\]"), ([(1,), (None,)], r"\[1, 0\]"), ([1, "a"], r"\[1\]")):
        with pytest.raises(TypeError, match=rf"^x{place}: expected an int"):
            wire_list("x", value, "int64")
    with pytest.raises(ValueError, match=r"^x\[1\]: rows must have equal lengths"):
        wire_list("x", [[[1], [2]], [[1], [2, 3]]], "int64")
    for number in (-(2**63) - 1, 2**63):
        with pytest.raises(OverflowError, match=rf"^x\[0, 1\]: {number} does not fit into 64 bits"):
            wire_list("x", [[1, number], [2, 3]], "int64")
