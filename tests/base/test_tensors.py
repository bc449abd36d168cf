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
    PrecisionWarning,
    fits_float32,
    flat_array,
    is_number_list,
    is_wire_array,
    plain_array,
    refuse_non_finite,
    text_length,
    token_ids,
    wire_dtype,
    wire_list,
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


@pytest.mark.parametrize(("key", "dtype"), LOSS_INPUT_DTYPES.items())
def test_lists_are_typed_by_key(key: str, dtype: str) -> None:
    """Every key of the wire has the dtype of its plain lists, empty, nested and of tuples too."""
    assert wire_array(key, [1, 0]).dtype == dtype
    assert wire_array(key, []).dtype == dtype
    assert wire_array(key, ((1, 0), (0, 1))).shape == (2, 2)
    assert wire_array(key, [[], []]).shape == (2, 0)
    assert wire_array(key, [True, False]).tolist() == [1, 0]


def test_arrays_keep_their_own_dtype_under_any_key() -> None:
    """Integers under a float key stay integers, and unknown keys take arrays."""
    assert wire_array("weights", np.array([1, 2])).dtype == np.int64
    assert wire_array("brand_new", np.array([1.0], np.float32)).dtype == np.float32


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


@settings(max_examples=40)
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=20))
def test_float32_survives_a_round_trip(values: list[float]) -> None:
    """Numbers that float32 can represent are exact both ways."""
    assert TensorData.from_array("weights", values).tolist() == values


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


@pytest.mark.parametrize("tokens", [[0, 2**53 - 1], [2**53], [2**63 - 1, -(2**63)]])
def test_tokens_of_all_sizes_are_accepted(tokens: list[int]) -> None:
    """Those that are too large for the fast check are looked at one by one."""
    assert token_ids("tokens", tokens) == tokens


@pytest.mark.parametrize("tokens", [[1, 2], (1, 2), range(1, 3), np.array([1, 2], np.int32), [np.int64(1), 2]])
def test_tokens_are_accepted_in_every_form(tokens: Any) -> None:
    """Lists, tuples, ranges, integer arrays and numpy integers are token ids."""
    assert ModelInput.from_ints(tokens).to_ints() == [1, 2]
    assert isinstance(token_ids("x", tokens), list | tuple | np.ndarray)


def test_token_arrays_are_not_copied() -> None:
    """An array of tokens stays the same memory."""
    tokens = np.array([1, 2])
    assert np.shares_memory(ModelInput.from_ints(tokens).chunks[0].tokens, tokens)


@pytest.mark.parametrize(
    ("tokens", "kind", "pattern"),
    [
        ([1, 2.0], TypeError, r"\[1\]: expected an int, got 2.0 \(float\)"),
        ([True], TypeError, r"\[0\]: expected an int, got True \(bool\)"),
        ([1, None], TypeError, r"\[1\]: expected an int, got None"),
        ([[1]], TypeError, r"\[0\]: expected an int, got \[1\]"),
        ([0, 2**63], OverflowError, rf"\[1\]: {2**63} does not fit into 64 bits"),
        ([-(2**63) - 1], OverflowError, r"\[0\]: -9223372036854775809 does not fit"),
        ("abc", TypeError, "expected a list of token ids, got str"),
        (b"abc", TypeError, "expected a list of token ids, got bytes"),
        (5, TypeError, "expected a list of token ids, got int"),
        ((i for i in [1]), TypeError, "expected a list of token ids, got generator"),
        (np.array([[1]]), TypeError, "expected a 1-D array of integers, got 2-D int64; flatten it"),
        (np.array([1.0]), TypeError, "got 1-D float64; flatten it or cast it"),
        (np.array([2**63], np.uint64), OverflowError, rf"\[0\]: {2**63} does not fit into int64"),
    ],
)
def test_invalid_tokens_raise_errors_with_position(tokens: Any, kind: type[Exception], pattern: str) -> None:
    """An invalid token id raises an error with its position and value."""
    with pytest.raises(kind, match=r"EncodedTextChunk.tokens.*" + pattern):
        ModelInput.from_ints(tokens)


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


def test_text_length_is_that_of_the_json_text() -> None:
    """The text has brackets, digits and commas."""
    assert text_length([]) == 2
    assert text_length([1, 22, 333]) == len("[1,22,333]")
    assert text_length([2**53 - 1]) == 18
    for other in ([-1], [1.5], ["1"], [None], [[1]], [2**53], [{"1": 1}]):
        assert text_length(other) is None


def test_fast_check_of_float32_is_safe() -> None:
    """Numbers near or beyond the limit, NaN and infinity are left to the slow check."""
    assert fits_float32([])
    assert fits_float32([1e38, -1e38])
    for numbers in ([3.5e38], [-3.5e38], [math.nan], [math.inf], [3.4028234663852886e38], [10**400]):
        assert not fits_float32(numbers)


def test_only_floats_are_searched_for_non_finite_values() -> None:
    """Integers and finite floats pass; the error has the first place, the value and the reason."""
    refuse_non_finite("x", np.array([1, 2]))
    refuse_non_finite("x", np.array([1.0, 2.0]))
    with pytest.raises(ValueError, match=r"^x\[2\]: inf cannot be sent, because JSON has only finite numbers$"):
        refuse_non_finite("x", np.array([1.0, 2.0, np.inf, np.nan]))
    with pytest.raises(ValueError, match=r"^x: nan cannot be sent, because of this$"):
        refuse_non_finite("x", np.array(np.nan), "of this")


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


class FakeTensor:
    """Tensor with the methods of torch that the conversion uses; it records the ones that were called."""

    def __init__(self, array: Any, dtype: str = "any", layout: str = "strided") -> None:
        self.array, self.dtype, self.layout, self.device = array, dtype, layout, "cpu"
        self.calls: list[object] = []

    def detach(self) -> FakeTensor:
        """Return the tensor without gradients."""
        self.calls.append("detach")
        return self

    def to_dense(self) -> FakeTensor:
        """Return the dense form."""
        self.calls.append("to_dense")
        return self

    def to(self, dtype: object) -> FakeTensor:
        """Return the tensor in another dtype."""
        self.calls.append(dtype)
        return self

    def cpu(self) -> FakeTensor:
        """Return the tensor in main memory."""
        self.calls.append("cpu")
        return self

    def numpy(self) -> Any:
        """Return the array, or raise the error in its place."""
        if isinstance(self.array, Exception):
            raise self.array
        return self.array


@pytest.fixture
def fake_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Load a torch whose only tensors are fake."""
    modules: Any = sys.modules
    module = SimpleNamespace(Tensor=FakeTensor, strided="strided", bfloat16="bfloat16", float32="float32")
    monkeypatch.setitem(modules, "torch", module)


@pytest.mark.usefixtures("fake_torch")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.int64])
def test_transposed_tensor_becomes_contiguous(dtype: Any) -> None:
    """Torch returns a view in column order, whose rows are contiguous on the wire."""
    converted = wire_array("weights", FakeTensor(np.array([[1, 2, 3], [4, 5, 6]], dtype).T))
    assert converted.flags.c_contiguous
    assert converted.tolist() == [[1, 4], [2, 5], [3, 6]]


@pytest.mark.usefixtures("fake_torch")
def test_tensor_is_detached_dense_and_readable_by_numpy() -> None:
    """Sparse tensors become dense, and bfloat16, which numpy lacks, float32; an unreadable tensor is named."""
    array = np.array([1.0], np.float32)
    for tensor, calls in (
        (FakeTensor(array), ["detach", "cpu"]),
        (FakeTensor(array, layout="sparse"), ["detach", "to_dense", "cpu"]),
        (FakeTensor(array, "bfloat16"), ["detach", "float32", "cpu"]),
    ):
        assert wire_array("weights", tensor).tolist() == [1.0]
        assert tensor.calls == calls
    for error in (TypeError("quantized"), NotImplementedError("meta"), RuntimeError("conjugated")):
        with pytest.raises(TypeError, match=rf"^weights: qint8 on cpu cannot be read \({error}\); cast it"):
            wire_array("weights", FakeTensor(error, "qint8"))


@pytest.mark.usefixtures("fake_torch")
def test_tokens_of_a_tensor_are_checked_like_arrays() -> None:
    """The error has the name of the tokens."""
    assert token_ids("x", FakeTensor(np.array([1, 2]))).tolist() == [1, 2]
    with pytest.raises(TypeError, match=r"^x: expected a 1-D array of integers, got 1-D float32"):
        token_ids("x", FakeTensor(np.array([1.0], np.float32)))
    with pytest.raises(TypeError, match=r"^x: meta on cpu cannot be read"):
        token_ids("x", FakeTensor(RuntimeError("no"), "meta"))


def test_torch_is_found_loaded_or_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loaded torch counts as installed; otherwise the import system decides."""
    modules: Any = sys.modules
    monkeypatch.setitem(modules, "torch", SimpleNamespace())
    monkeypatch.setattr(tensors, "find_spec", lambda name: None)
    assert tensors.is_torch_installed()
    monkeypatch.delitem(sys.modules, "torch")
    assert not tensors.is_torch_installed()
    monkeypatch.setattr(tensors, "find_spec", lambda name: name if name == "torch" else None)
    assert tensors.is_torch_installed()
