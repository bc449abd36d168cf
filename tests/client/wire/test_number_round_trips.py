"""Tests that the server receives the same numbers of a batch as JSON and as protobuf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

import tinkerwire as tw
from tinkerwire._server.http.protobuf import decode_request
from tinkerwire._wire import codec
from tinkerwire._wire.dialect import Dialect
from tinkerwire_base.tensors import PrecisionWarning
from tinkerwire_generated import models as m
from tinkerwire_generated.api.training import forward_backward

JSON, PROTOBUF = Dialect.for_version("0.18.2"), Dialect.for_version("0.38.0")
pytestmark = pytest.mark.filterwarnings("ignore::tinkerwire_base.tensors.PrecisionWarning")


def make_batch_request(datum: tw.Datum, config: dict[str, float | str] | None = None) -> m.ForwardBackwardRequest:
    """Return a request with one example."""
    batch = m.ForwardBackwardInput(data=[datum], loss_fn="ppo", loss_fn_config=config)
    return m.ForwardBackwardRequest(model_id="m", seq_id=1, forward_backward_input=batch)


def receive(datum: tw.Datum, dialect: Dialect, config: dict[str, float | str] | None = None) -> m.Datum:
    """Return the example as the embedded server decodes it."""
    content = codec.encode(forward_backward(body=make_batch_request(datum, config)), dialect).content
    assert content is not None
    if dialect is PROTOBUF:
        request = decode_request(content)
    else:
        request = dialect.converter.structure(orjson.loads(content), m.ForwardBackwardRequest)
    assert isinstance(request, m.ForwardBackwardRequest)
    return request.forward_backward_input.data[0]


def change_layout(array: NDArray[Any], layout: str) -> NDArray[Any]:
    """Return the same values in another memory layout."""
    if layout == "big-endian":
        return array.astype(array.dtype.newbyteorder(">"))
    if layout == "every second":
        return np.repeat(array, 2)[::2]
    if layout == "backwards":
        return array[::-1].copy()[::-1]
    if layout == "read-only":
        copy = array.copy()
        copy.flags.writeable = False
        return copy
    if layout == "unaligned":
        return np.frombuffer(b"x" + array.tobytes(), np.uint8)[1:].view(array.dtype)
    return array


LAYOUTS = st.sampled_from(["native", "big-endian", "every second", "backwards", "read-only", "unaligned"])
FLOATS = st.lists(st.floats(width=16, allow_nan=False, allow_infinity=False), max_size=8)
INTS = st.lists(st.integers(-128, 127), max_size=8)
FLOAT_DTYPES = st.sampled_from(["float16", "float32", "float64", "longdouble"])
INT_DTYPES = st.sampled_from(["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"])


@given(FLOATS, FLOAT_DTYPES, LAYOUTS, st.booleans())
def test_floats_arrive_unchanged(values: list[float], dtype: str, layout: str, is_tensor: bool) -> None:
    """The server receives every float dtype in every layout, as an array and as a TensorData."""
    array = change_layout(np.array(values, dtype), layout)
    check_arrival("weights", tw.TensorData(data=array, dtype="float32") if is_tensor else array, values, "float32")


@given(INTS, INT_DTYPES, LAYOUTS, st.booleans())
def test_integers_arrive_unchanged(values: list[int], dtype: str, layout: str, is_tensor: bool) -> None:
    """The server receives every integer dtype, and bool, in every layout."""
    array = change_layout(np.abs(np.array(values, np.int64)).astype(dtype), layout)
    expected = [int(value) for value in array]
    check_arrival("target_tokens", tw.TensorData(data=array, dtype="int64") if is_tensor else array, expected, "int64")


@given(FLOATS, INTS)
def test_numpy_scalars_in_lists_arrive_unchanged(floats: list[float], ints: list[int]) -> None:
    """The server receives the scalars as a list and as a TensorData."""
    for float_type in (np.float16, np.float32, np.float64, np.longdouble):
        scalars: Any = [float_type(value) for value in floats]
        check_arrival("weights", scalars, floats, "float32")
        check_arrival("weights", tw.TensorData(data=scalars, dtype="float32"), floats, "float32")
    for int_type in (np.int8, np.int64):
        scalars = [int_type(value) for value in ints]
        check_arrival("target_tokens", scalars, ints, "int64")
        check_arrival("target_tokens", tw.TensorData(data=scalars, dtype="int64"), ints, "int64")


def check_arrival(name: str, value: tw.TensorData | ArrayLike, expected: Sequence[float], dtype: str) -> None:
    """Compare the values that the server receives in both forms with the original values."""
    datum = tw.Datum(model_input=tw.ModelInput.from_ints([1]), loss_fn_inputs={name: value})
    for dialect in (JSON, PROTOBUF):
        tensor = receive(datum, dialect).loss_fn_inputs[name]
        assert tensor.dtype == dtype
        assert tensor.to_numpy().dtype == np.dtype(dtype)
        assert tensor.to_numpy().reshape(-1).tolist() == list(expected)


@pytest.mark.parametrize(
    "array",
    [
        np.array(1.5),
        np.float64(1.5),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(24, dtype=">f4").reshape(2, 3, 4).transpose(2, 0, 1),
        np.array([[1.0, 2.0], [3.0, 4.0]]).view(np.recarray),
        np.empty((0, 3), np.float32),
        np.broadcast_to(np.float32(2.0), (3, 2)),
    ],
    ids=["0-d", "scalar", "Fortran", "transposed", "subclass", "empty", "broadcast"],
)
def test_arrays_keep_shape_and_order(array: NDArray[Any]) -> None:
    """Arrays of any shape and memory order keep their shape and the position of each value."""
    datum = tw.Datum(model_input=tw.ModelInput.from_ints([1]), loss_fn_inputs={"weights": array})
    for dialect in (JSON, PROTOBUF):
        tensor = receive(datum, dialect).loss_fn_inputs["weights"].to_numpy()
        assert tensor.shape == array.shape
        assert tensor.tolist() == array.tolist()


@pytest.mark.parametrize("dtype", [">i4", ">i8", "<i2", "uint64"])
def test_byte_order_does_not_change_tokens_and_sparse_indices(dtype: str) -> None:
    """Token ids and the indices of sparse tensors arrive from any dtype and byte order."""
    sparse = tw.TensorData(
        data=np.array([0.5, 0.25], ">f8"),
        dtype="float32",
        shape=[2, 4],
        sparse_crow_indices=np.array([0, 1, 2], dtype),
        sparse_col_indices=np.array([3, 1, 9], dtype)[:2],
    )
    tokens = np.array([1, 9, 2, 9, 3], dtype)[::2]
    datum = tw.Datum(model_input=tw.ModelInput.from_ints(tokens), loss_fn_inputs={"weights": sparse})
    for dialect in (JSON, PROTOBUF):
        received = receive(datum, dialect)
        assert received.model_input.to_ints() == [1, 2, 3]
        assert received.loss_fn_inputs["weights"].tolist() == [[0, 0, 0, 0.5], [0, 0.25, 0, 0]]


@pytest.mark.parametrize(
    ("value", "error", "pattern"),
    [
        (np.array([1, 2**63], np.uint64), OverflowError, r"target_tokens\[1\]: 9223372036854775808"),
        (np.array([1, 2**63], ">u8"), OverflowError, r"target_tokens\[1\]: 9223372036854775808"),
        (np.array([1 + 2j]), TypeError, "target_tokens: dtype complex128 has no wire form"),
        (np.array([1, None]), TypeError, "target_tokens: dtype object has no wire form"),
        (np.array(["1"]), TypeError, "target_tokens: dtype <U1 has no wire form"),
        (np.array(["2026-01-01"], "datetime64[D]"), TypeError, r"target_tokens: dtype datetime64\[D\]"),
        (np.ma.masked_array([1, 2], mask=[True, False]), TypeError, "target_tokens: masked arrays cannot be sent"),
        (memoryview(b"12"), TypeError, "target_tokens: expected an array, .*, got memoryview"),
    ],
)
def test_array_without_wire_form_is_rejected_at_construction(
    value: ArrayLike, error: type[Exception], pattern: str
) -> None:
    """The error names the key, and the position of a wrong value."""
    with pytest.raises(error, match=pattern):
        tw.Datum(model_input=tw.ModelInput.from_ints([1]), loss_fn_inputs={"target_tokens": value})


def test_masked_array_is_rejected_at_construction() -> None:
    """A TensorData does not silently ignore a mask."""
    with pytest.raises(TypeError, match=r"TensorData\.data: masked arrays cannot be sent"):
        tw.TensorData(data=np.ma.masked_array([1.0, 2.0], mask=[True, False]), dtype="float32")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("as_array", [True, False])
def test_non_finite_number_is_sent_as_protobuf_only(number: float, as_array: bool) -> None:
    """Protobuf has them in tensors and in loss_fn_config; as JSON they raise an error with position and reason."""
    values: Any = np.array([0.5, number]) if as_array else [0.5, number]
    datum = tw.Datum(model_input=tw.ModelInput.from_ints([1, 2]), loss_fn_inputs={"logprobs": values})
    received = receive(datum, PROTOBUF).loss_fn_inputs["logprobs"].to_numpy()
    assert np.array_equal(received, np.array([0.5, number], np.float32), equal_nan=True)
    place = r"data\[0\]\.loss_fn_inputs\['logprobs'\]\[1\]"
    pattern = rf"{place}: {number} cannot be sent, because JSON has only finite .*0\.18\.2"
    with pytest.raises(ValueError, match=pattern):
        receive(datum, JSON)
    empty = tw.Datum(model_input=tw.ModelInput.from_ints([1]), loss_fn_inputs={})
    request = decode_request(
        codec.encode(forward_backward(body=make_batch_request(empty, {"clip": number})), PROTOBUF).content or b""
    )
    assert isinstance(request, m.ForwardBackwardRequest)
    config = request.forward_backward_input.loss_fn_config or {}
    assert np.array_equal(float(config["clip"]), number, equal_nan=True)
    with pytest.raises(ValueError, match=rf"loss_fn_config\['clip'\]: {number} cannot be sent, because JSON has only"):
        receive(empty, JSON, {"clip": number})


def test_float64_that_becomes_infinite_is_rejected_as_json() -> None:
    """An array that is put into a datum later is checked as the float32 numbers that servers read."""
    datum = tw.Datum(model_input=tw.ModelInput.from_ints([1]), loss_fn_inputs={})
    datum.loss_fn_inputs["logprobs"] = tw.TensorData(data=np.array([0.5, 1e300]), dtype="float32")
    with pytest.raises(ValueError, match=r"loss_fn_inputs\['logprobs'\]\[1\]: inf cannot be sent"):
        receive(datum, JSON)


def test_rounding_beside_infinity_warns() -> None:
    """The warning about float64 numbers that float32 cannot hold exactly names the key."""
    with pytest.warns(PrecisionWarning, match="test-key"):
        tw.Datum(
            model_input=tw.ModelInput.from_ints([1]), loss_fn_inputs={"test-key": np.array([0.1, -np.inf, np.nan])}
        )
