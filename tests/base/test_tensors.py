"""Arrays, scalars and lists to the two dtypes of the wire: every row of the table, and every way to go wrong."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinkerwire_base import tensors
from tinkerwire_base.tensors import (
    FLOAT32_MAX,
    PrecisionWarning,
    compute_norm,
    is_wire_array,
    plain_array,
    refuse_non_finite,
    token_ids,
    wire_dtype,
)
from tinkerwire_generated.constants import LOSS_INPUT_DTYPES
from tinkerwire_generated.models import Datum, ModelInput, TensorData

wire_array = partial(tensors.wire_array, list_dtypes=LOSS_INPUT_DTYPES)


@pytest.fixture(autouse=True)
def nothing_said_yet() -> Iterator[None]:
    """Each test begins without warnings given."""
    tensors._warned.clear()
    yield
    tensors._warned.clear()


@pytest.mark.parametrize("dtype", ["float16", "float32", ">f4", "float64"])
def test_floats_become_float32(dtype: str) -> None:
    """Floats of every width and byte order are float32 on the wire."""
    array = wire_array("x", np.array([0.5, -2], dtype=dtype))
    assert array.dtype == np.float32 and wire_dtype(array) == "float32"
    assert array.tolist() == [0.5, -2]


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"])
def test_integers_and_bool_become_int64(dtype: str) -> None:
    """Integers of every width, and bool, are int64 on the wire; their values stay."""
    array = wire_array("x", np.array([0, 1], dtype=dtype))
    assert array.dtype == np.int64 and wire_dtype(array) == "int64"
    assert array.tolist() == [0, 1]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64"])
def test_limits_of_integers_are_exact(dtype: str) -> None:
    """The smallest and largest value of a dtype arrive as they are."""
    ends = [np.iinfo(dtype).min, np.iinfo(dtype).max]
    assert wire_array("x", np.array(ends, dtype=dtype)).tolist() == ends


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
@pytest.mark.parametrize("shape", [(), (0,), (6,), (2, 3)])
def test_wire_dtypes_are_not_copied(dtype: Any, shape: tuple[int, ...]) -> None:
    """float32 and int64 keep their memory, also as a TensorData and back."""
    array = np.zeros(shape, dtype)
    tensor = TensorData.from_numpy(array)
    assert wire_array("x", array) is array
    assert tensor.shape == list(shape)
    if array.size:
        assert np.shares_memory(array, tensor.raw) and np.shares_memory(array, tensor.to_numpy())
    assert tensor.to_numpy().shape == shape


def test_non_contiguous_arrays_are_copied() -> None:
    """Transposed and strided arrays become contiguous, with their values in place."""
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    for view in (array.T, array[:, ::2], array[::-1]):
        converted = wire_array("x", view)
        assert converted.flags.c_contiguous
        assert converted.tolist() == view.tolist()
        assert TensorData.from_numpy(view).tolist() == view.tolist()


def test_scalars_and_0d_arrays_have_the_empty_shape() -> None:
    """A numpy scalar is a tensor of no dimensions."""
    for value in (np.float32(2), np.array(2, np.float32)):
        tensor = TensorData.from_array("x", value)
        item: Any = tensor.tolist()
        assert (tensor.shape, tensor.to_numpy().shape, item) == ([], (), 2.0)


@pytest.mark.parametrize("array", [np.array([1 + 2j]), np.array(["a"]), np.array([None]), np.array([b"x"])])
def test_dtypes_without_a_wire_form_are_rejected(array: Any) -> None:
    """Complex, text and objects raise an error with key, dtype and remedy."""
    with pytest.raises(TypeError, match=rf"weights: dtype {array.dtype} has no wire form; cast it"):
        wire_array("weights", array)


@pytest.mark.parametrize("value", [{"data": [1]}, "abc", 5, None, range(3), {1, 2}, object()])
def test_other_objects_are_rejected_as_tensors(value: Any) -> None:
    """Dicts, text, single numbers and others raise an error that names key, type and the way out."""
    with pytest.raises(
        TypeError, match=rf"weights: expected an array, .*, got {type(value).__name__}; .*numpy.asarray"
    ):
        wire_array("weights", value)


def test_masked_arrays_are_rejected() -> None:
    """A mask would be lost without a word."""
    with pytest.raises(TypeError, match="masked arrays cannot be sent"):
        wire_array("weights", np.ma.masked_array([1.0, 2.0], mask=[True, False]))


def test_uint64_overflow_is_rejected() -> None:
    """A uint64 beyond int64 raises an error with its position."""
    array = np.array([[1, 2], [3, 2**63]], dtype=np.uint64)
    with pytest.raises(OverflowError, match=rf"target_tokens\[1, 1\]: {2**63} does not fit into int64"):
        wire_array("target_tokens", array)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_non_finite_values_pass_unless_rejected_explicitly(number: float, dtype: Any) -> None:
    """NaN and infinity do not change; the check for JSON names their position."""
    array = wire_array("weights", np.array([[0, 0], [number, 0]], dtype=dtype))
    assert array.dtype == np.float32 and np.array_equal(array[1, 0], np.float32(number), equal_nan=True)
    with pytest.raises(ValueError, match=rf"weights\[1, 0\]: {number} cannot be sent"):
        refuse_non_finite("weights", array)


def test_float32_overflow_is_rejected() -> None:
    """A float64 beyond float32 is an overflow, not infinity."""
    with pytest.raises(OverflowError, match=r"weights\[1\]: 1e\+39 does not fit into float32"):
        wire_array("weights", np.array([0, 1e39]))


def test_rounding_warns_once_per_name_at_the_callers_line() -> None:
    """A float64 that float32 cannot represent warns once per name, at the line of the caller."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for name in ("weights", "weights", "logprobs"):
            inputs: Any = {name: np.array([0.1])}
            Datum(model_input=ModelInput.from_ints([1]), loss_fn_inputs=inputs)
    assert [str(w.message).partition(":")[0] for w in caught] == ["weights", "logprobs"]
    assert all(issubclass(w.category, PrecisionWarning) and w.filename == __file__ for w in caught)


def test_rounding_warns_once_per_name() -> None:
    """The warning has the name, and the same name does not warn again."""
    for name in ("weights", "logprobs"):
        with pytest.warns(PrecisionWarning, match=rf"^{name}: float64 values are rounded to float32"):
            wire_array(name, np.array([0.1]))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            wire_array(name, np.array([0.1]))


def test_exact_conversion_is_silent() -> None:
    """A float64 that float32 holds exactly gives no warning; neither do the floats of a list."""
    assert wire_array("weights", np.array([0.5, 3.0])).dtype == np.float32
    assert wire_array("weights", [0.1, 0.2]).tolist() == np.array([0.1, 0.2], np.float32).tolist()


def test_arrays_keep_their_own_dtype_under_any_key() -> None:
    """Integers under a float key stay integers, and unknown keys take arrays."""
    assert wire_array("weights", np.array([1, 2])).dtype == np.int64
    assert wire_array("brand_new", np.array([1.0], np.float32)).dtype == np.float32


@settings(max_examples=40)
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=20))
def test_float32_survives_a_round_trip(values: list[float]) -> None:
    """Numbers that float32 can represent are exact both ways."""
    assert TensorData.from_array("weights", values).tolist() == values


def test_torch_is_used_if_loaded_and_never_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without torch in sys.modules nothing looks for it; with it, its tensors are read through numpy."""
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    wire_array("weights", [1.0])
    assert "torch" not in sys.modules

    class Tensor:
        layout, dtype, device = "strided", "float32", "cpu"

        def detach(self) -> Tensor:
            return self

        cpu = detach

        def numpy(self) -> Any:
            return np.array([1.5], np.float32)

    fake = SimpleNamespace(Tensor=Tensor, strided="strided", bfloat16="bfloat16")
    modules: Any = sys.modules
    monkeypatch.setitem(modules, "torch", fake)
    assert wire_array("weights", Tensor()).tolist() == [1.5]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64", "uint64", "bool", ">f4", ">i8"])
def test_arrays_in_column_order_become_contiguous(dtype: str) -> None:
    """The rows of an array in Fortran's order, or of a slice with gaps, are contiguous on the wire."""
    column_order = np.asfortranarray(np.array([[0, 1, 1], [1, 0, 0]], dtype))
    for source in (column_order, column_order[:, ::2]):
        array = wire_array("x", source)
        assert array.flags.c_contiguous
        assert array.dtype.isnative
        assert array.tolist() == source.tolist()


def test_wire_arrays_are_not_copied() -> None:
    """An array of a dtype of the wire stays the same object, and others of its width share no needless copy."""
    for dtype in ("float32", "int64"):
        array = np.array([[1, 2]], dtype)
        assert wire_array("x", array) is array
        assert is_wire_array(array, dtype)
        assert plain_array("x", array) is array
    assert not is_wire_array(np.array([1.0], np.float32), "int64")
    assert not is_wire_array(np.ones((2, 3), np.float32).T, "float32")
    assert not is_wire_array(np.zeros(4, np.float32)[::2], "float32")
    assert not is_wire_array([1.0], "float32")
    assert not is_wire_array(np.array([1.0], ">f4"), "float32")


def test_masked_arrays_are_rejected_by_name() -> None:
    """Masked arrays of values and of tokens raise an error with the name."""
    masked = np.ma.masked_array([1, 2], mask=[True, False])
    for function in (wire_array, token_ids, plain_array):
        with pytest.raises(TypeError, match=r"^weights: masked arrays cannot be sent"):
            function("weights", masked)


def test_other_values_are_rejected_by_name() -> None:
    """Text, None and arrays of other dtypes raise an error with the name and the type."""
    for value, kind in (("abc", "str"), (None, "NoneType"), ({1: 2}, "dict")):
        with pytest.raises(TypeError, match=f"^weights: expected an array, a tensor or a list of numbers, got {kind};"):
            wire_array("weights", value)
    for dtype in ("complex64", "U3", "object", "datetime64[s]"):
        with pytest.raises(TypeError, match=r"^weights: dtype .* has no wire form"):
            wire_array("weights", np.zeros(2, dtype))


def test_large_unsigned_value_is_named_with_its_position() -> None:
    """A uint64 array may hold the largest int64; the first larger number raises with its place."""
    assert wire_array("x", np.array([2**63 - 1], np.uint64)).tolist() == [2**63 - 1]
    assert wire_array("x", np.array([], np.uint64)).dtype == np.int64
    with pytest.raises(OverflowError, match=rf"^x\[1, 0\]: {2**63} does not fit into int64"):
        wire_array("x", np.array([[1, 2], [2**63, 2**63 + 1]], np.uint64))


def test_overflow_of_scalar_is_named_without_a_position() -> None:
    """A number without dimensions has no place in the error."""
    with pytest.raises(OverflowError, match=r"^weights: 1e\+39 does not fit into float32"):
        wire_array("weights", np.float64(1e39))
    assert wire_array("weights", np.array([np.inf, np.nan, 1.0])).dtype == np.float32


def test_plain_arrays_are_native_and_contiguous() -> None:
    """An array of another byte order keeps its values, and one that is plain is not copied."""
    values = np.array([1.5, -2.25, 3.0], np.float32)
    for array in (values[::2], values.astype(values.dtype.newbyteorder("S"))[::2]):
        plain = plain_array("weights", array)
        assert plain.dtype.isnative
        assert plain.flags.c_contiguous
        assert plain.tolist() == [1.5, 3.0]
        assert plain_array("weights", plain) is plain


def test_no_magnitude_exceeds_the_norm() -> None:
    """NaN is never smaller than a limit, and numbers beyond floats are infinite."""
    assert compute_norm([]) == 0
    assert compute_norm([3.0, -4]) == 5
    for numbers in ([3.5e38], [-3.5e38], [math.nan, 1.0], [math.inf], [FLOAT32_MAX], [10**400]):
        assert not compute_norm(numbers) < FLOAT32_MAX


def test_only_floats_are_searched_for_non_finite_values() -> None:
    """Integers and finite floats pass; the error has the first place, the value and the reason."""
    refuse_non_finite("x", np.array([1, 2]))
    refuse_non_finite("x", np.array([1.0, 2.0]))
    with pytest.raises(ValueError, match=r"^x\[2\]: inf cannot be sent, because JSON has only finite numbers$"):
        refuse_non_finite("x", np.array([1.0, 2.0, np.inf, np.nan]))
    with pytest.raises(ValueError, match=r"^x: nan cannot be sent, because of this$"):
        refuse_non_finite("x", np.array(np.nan), "of this")
