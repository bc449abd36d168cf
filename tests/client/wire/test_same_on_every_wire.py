"""Tests that numbers of a batch arrive as the same values, as JSON and as protobuf."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinkerwire as tw
from tinkerwire._server.http import protobuf as served
from tinkerwire._wire import codec
from tinkerwire._wire.dialect import Dialect
from tinkerwire_base.tensors import PrecisionWarning
from tinkerwire_generated import models as m
from tinkerwire_generated.api.training import forward_backward

JSON, PROTOBUF = Dialect.for_version("0.18.2"), Dialect.for_version("0.38.0")
pytestmark = pytest.mark.filterwarnings("ignore::tinkerwire_base.tensors.PrecisionWarning")


def request_of(datum: tw.Datum, config: Any = None) -> m.ForwardBackwardRequest:
    """Return a request of one example."""
    batch = m.ForwardBackwardInput(data=[datum], loss_fn="ppo", loss_fn_config=config)
    return m.ForwardBackwardRequest(model_id="m", seq_id=1, forward_backward_input=batch)


def receive(datum: tw.Datum, dialect: Any, config: Any = None) -> m.Datum:
    """Return the example as the embedded server decodes it."""
    content = codec.encode(forward_backward(body=request_of(datum, config)), dialect).content
    assert content is not None
    if dialect is PROTOBUF:
        request = served.decode_request(content)
    else:
        request = dialect.converter.structure(orjson.loads(content), m.ForwardBackwardRequest)
    assert isinstance(request, m.ForwardBackwardRequest)
    return request.forward_backward_input.data[0]


def strided(array: Any, order: str) -> Any:
    """Return the same values in another memory layout."""
    if order == "big-endian":
        return array.astype(array.dtype.newbyteorder(">"))
    if order == "every second":
        return np.repeat(array, 2)[::2]
    if order == "backwards":
        return array[::-1].copy()[::-1]
    if order == "read-only":
        found = array.copy()
        found.flags.writeable = False
        return found
    if order == "unaligned":
        return np.frombuffer(b"x" + array.tobytes(), np.uint8)[1:].view(array.dtype)
    return array


ORDERS = st.sampled_from(["native", "big-endian", "every second", "backwards", "read-only", "unaligned"])
FLOATS = st.lists(st.floats(width=16, allow_nan=False, allow_infinity=False), max_size=8)
INTS = st.lists(st.integers(-128, 127), max_size=8)
FLOAT_DTYPES = st.sampled_from(["float16", "float32", "float64", "longdouble"])
INT_DTYPES = st.sampled_from(["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"])


@given(FLOATS, FLOAT_DTYPES, ORDERS, st.booleans())
def test_floats(values: list[float], dtype: str, order: str, is_tensor: bool) -> None:
    """Every float dtype in every layout, as an array and as a TensorData."""
    array = strided(np.array(values, dtype), order)
    check("weights", tw.TensorData(data=array, dtype="float32") if is_tensor else array, values, "float32")


@given(INTS, INT_DTYPES, ORDERS, st.booleans())
def test_integers(values: list[int], dtype: str, order: str, is_tensor: bool) -> None:
    """Every integer dtype, and bool, in every layout."""
    array = strided(np.abs(np.array(values, np.int64)).astype(dtype), order)
    expected = [int(value) for value in array]
    check("target_tokens", tw.TensorData(data=array, dtype="int64") if is_tensor else array, expected, "int64")


@given(FLOATS, INTS)
def test_numpy_scalars_in_lists(floats: list[float], ints: list[int]) -> None:
    """Scalars of numpy in lists, as a list and as a TensorData."""
    for kind in (np.float16, np.float32, np.float64, np.longdouble):
        scalars: Any = [kind(value) for value in floats]
        check("weights", scalars, floats, "float32")
        check("weights", tw.TensorData(data=scalars, dtype="float32"), floats, "float32")
    for whole in (np.int8, np.int64):
        scalars = [whole(value) for value in ints]
        check("target_tokens", scalars, ints, "int64")
        check("target_tokens", tw.TensorData(data=scalars, dtype="int64"), ints, "int64")


def check(name: str, given_value: Any, expected: Any, dtype: str) -> None:
    """Compare the receive values of both wires with the original values."""
    datum = tw.Datum(model_input=tw.ModelInput.from_ints([1]), loss_fn_inputs={name: given_value})
    for dialect in (JSON, PROTOBUF):
        found = receive(datum, dialect).loss_fn_inputs[name]
        assert found.dtype == dtype
        assert found.to_numpy().dtype == np.dtype(dtype)
        assert found.to_numpy().reshape(-1).tolist() == list(expected)


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
def test_shapes(array: Any) -> None:
    """Arrays of any shape and order in memory keep their shape and the place of each value."""
    datum = tw.Datum(model_input=tw.ModelInput.from_ints([1]), loss_fn_inputs={"weights": array})
    for dialect in (JSON, PROTOBUF):
        found = receive(datum, dialect).loss_fn_inputs["weights"].to_numpy()
        assert found.shape == array.shape
        assert found.tolist() == array.tolist()


@pytest.mark.parametrize("dtype", [">i4", ">i8", "<i2", "uint64"])
def test_tokens_and_sparse_indices_in_any_byte_order(dtype: str) -> None:
    """Token ids and the indices of sparse tensors, in any dtype and byte order."""
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
        found = receive(datum, dialect)
        assert found.model_input.to_ints() == [1, 2, 3]
        assert found.loss_fn_inputs["weights"].tolist() == [[0, 0, 0, 0.5], [0, 0.25, 0, 0]]


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (np.array([1, 2**63], np.uint64), OverflowError, r"target_tokens\[1\]: 9223372036854775808"),
        (np.array([1, 2**63], ">u8"), OverflowError, r"target_tokens\[1\]: 9223372036854775808"),
        (np.array([1 + 2j]), TypeError, "target_tokens: dtype complex128 has no wire form"),
        (np.array([1, None]), TypeError, "target_tokens: dtype object has no wire form"),
        (np.array(["1"]), TypeError, "target_tokens: dtype <U1 has no wire form"),
        (np.array(["2026-01-01"], "datetime64[D]"), TypeError, r"target_tokens: dtype datetime64\[D\]"),
        (np.ma.masked_array([1, 2], mask=[True, False]), TypeError, "target_tokens: the wire has no masks"),
        (memoryview(b"12"), TypeError, "target_tokens: memoryview is not an array"),
    ],
)
def test_what_no_wire_carries_is_refused_when_the_datum_is_made(value: Any, error: type[Exception], words: str) -> None:
    """The error names the key, and the position of a wrong value."""
    with pytest.raises(error, match=words):
        tw.Datum(model_input=tw.ModelInput.from_ints([1]), loss_fn_inputs={"target_tokens": value})


def test_masked_data_of_a_tensor_is_refused() -> None:
    """A TensorData does not drop a mask silently."""
    with pytest.raises(TypeError, match=r"TensorData\.data: the wire has no masks"):
        tw.TensorData(data=np.ma.masked_array([1.0, 2.0], mask=[True, False]), dtype="float32")


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("as_array", [True, False])
def test_non_finite_numbers_go_out_where_the_wire_has_them(bad: float, as_array: bool) -> None:
    """Protobuf carries them in tensors and in loss_fn_config; JSON rejects them with position and reason."""
    values: Any = np.array([0.5, bad]) if as_array else [0.5, bad]
    datum = tw.Datum(model_input=tw.ModelInput.from_ints([1, 2]), loss_fn_inputs={"logprobs": values})
    found = receive(datum, PROTOBUF).loss_fn_inputs["logprobs"].to_numpy()
    assert np.array_equal(found, np.array([0.5, bad], np.float32), equal_nan=True)
    words = rf"data\[0\]\.loss_fn_inputs\['logprobs'\]\[1\]: {bad} cannot be sent, JSON has only finite .*0\.18\.2"
    with pytest.raises(ValueError, match=words):
        receive(datum, JSON)
    plain = tw.Datum(model_input=tw.ModelInput.from_ints([1]), loss_fn_inputs={})
    sent = served.decode_request(
        codec.encode(forward_backward(body=request_of(plain, {"clip": bad})), PROTOBUF).content or b""
    )
    assert isinstance(sent, m.ForwardBackwardRequest)
    config = sent.forward_backward_input.loss_fn_config or {}
    assert np.array_equal(float(config["clip"]), bad, equal_nan=True)
    with pytest.raises(ValueError, match=rf"loss_fn_config\['clip'\]: {bad} cannot be sent, JSON has only"):
        receive(plain, JSON, {"clip": bad})


def test_rounding_still_warns() -> None:
    """A float64 array that float32 cannot hold exactly warns under its key, beside infinities as well."""
    with pytest.warns(PrecisionWarning, match="test-key"):
        tw.Datum(
            model_input=tw.ModelInput.from_ints([1]), loss_fn_inputs={"test-key": np.array([0.1, -np.inf, np.nan])}
        )
