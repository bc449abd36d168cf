"""Numbers of a batch as arrays: the request and the errors are those of the lists."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinkerwire._server.http.number_arrays import parse_number_lists
from tinkerwire._server.http.openapi import load_contract
from tinkerwire._server.http.responses import HttpError
from tinkerwire._server.http.validation import Validator
from tinkerwire._wire.protobuf import encode_request
from tinkerwire_base.call import JSON
from tinkerwire_generated.operations import OPERATIONS

VALIDATOR = Validator(load_contract("0.16.1"))
JSON_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False), st.text(), st.integers()),
    lambda inner: st.one_of(
        st.lists(inner),
        st.dictionaries(st.sampled_from(["tokens", "data", "dtype", "a[", "", "a", "\x00", "a\x00", "a\x00b"]), inner),
        st.builds(
            lambda item, count: {"data": [item] * count, "dtype": "int64"},
            st.one_of(st.none(), st.floats(-9, 9), st.integers()),
            st.integers(60, 70),
        ),
    ),
)
ODD_ITEMS: tuple[Any, ...] = (0, -1, 1.5, -0.0, 0.1, True, None, "1", [1], 2**31, 2**40, -(2**63), 1e39, 1e-50)


@pytest.fixture(autouse=True, params=["pysimdjson", "orjson"], scope="module")
def parser(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run each test with both parsers."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "orjson":
            patch.setattr("tinkerwire._server.http.number_arrays.simdjson", None)
        elif find_spec("simdjson") is None:
            pytest.skip("pysimdjson has no wheel for this Python")
        else:
            # Small texts, too.
            patch.setattr("tinkerwire._server.http.number_arrays.MIN_BYTES_PER_CONTAINER", 0)
        yield


def read(body: Any, *, packs_numbers: bool) -> Any:
    """Return the request as protobuf, or the text of the error."""
    try:
        request = VALIDATOR.parse_body(
            OPERATIONS["forward_backward"], orjson.dumps(body), {"content-type": JSON}, packs_numbers=packs_numbers
        )
        return encode_request(request, "0.38.0")
    except HttpError as error:
        return error.status, error.detail
    except (ValueError, TypeError, OverflowError) as error:
        return str(error)


def batch(tokens: list[Any], values: list[Any], dtype: str) -> Any:
    """Return the body of a batch of one datum."""
    tensor = {"data": values, "dtype": dtype, "shape": [len(values)]}
    datum = {"model_input": {"chunks": [{"tokens": tokens}]}, "loss_fn_inputs": {"x": tensor}}
    return {"model_id": "m", "forward_backward_input": {"loss_fn": "cross_entropy", "data": [datum]}}


@pytest.mark.parametrize("dtype", ["int64", "float32"])
@pytest.mark.parametrize("usual", [1, 0.1])
@pytest.mark.parametrize("odd", ODD_ITEMS)
def test_odd_numbers_are_read_and_refused_as_in_a_list(dtype: str, usual: float, odd: Any) -> None:
    values = [usual] * 100
    values[70] = odd
    body = batch([1] * 100, values, dtype)
    assert read(body, packs_numbers=True) == read(body, packs_numbers=False)


@pytest.mark.parametrize("odd", ODD_ITEMS[:-3])
def test_odd_tokens_are_read_and_refused_as_in_a_list(odd: Any) -> None:
    body = batch([*[1] * 70, odd, *[2] * 30], [1.0] * 100, "float32")
    assert read(body, packs_numbers=True) == read(body, packs_numbers=False)


@given(
    st.lists(st.floats(width=64, allow_nan=False, allow_infinity=False), min_size=60, max_size=70),
    st.lists(st.integers(-(2**33), 2**33), min_size=60, max_size=70),
)
def test_numbers_have_the_same_bits(floats: list[float], integers: list[int]) -> None:
    for values, dtype in ((floats, "float32"), (integers, "int64"), (integers, "float32")):
        body = batch([1] * 70, values, dtype)
        assert read(body, packs_numbers=True) == read(body, packs_numbers=False)


def parse(text: bytes) -> Any:
    """Return a value with lists in place of its arrays."""
    value, arrays = parse_number_lists(text, orjson.loads)
    for numbers in arrays:
        numbers.parent[numbers.key] = numbers.array.tolist()
    return value


@given(JSON_VALUES)
def test_all_values_are_read_as_without_arrays(value: Any) -> None:
    text = json.dumps({"value": value}).encode()
    try:
        expected = orjson.loads(text)
    except orjson.JSONDecodeError:
        with pytest.raises(orjson.JSONDecodeError):
            parse(text)
    else:
        assert repr(parse(text)) == repr(expected)


def nest(levels: int, width: int) -> bytes:
    """Return an object whose keys are equal up to a NUL, and whose first value is another such object."""
    inner = b"0"
    for _ in range(levels):
        inner = b'{"a":' + inner + b"".join(b',"a\\u0000%d":%d' % (n, n) for n in range(width)) + b"}"
    return inner


@pytest.mark.parametrize(
    "text",
    [
        nest(8, 90),
        b'{"a":[' + b"{}," * 30_000 + b"{}]," + b",".join([b'"a":1'] * 99) + b"}",
        b'{"tokens":[' + b"1," * 100 + b'1],"tokens":2}',
        b'{"tokens":2,"tokens":[' + b"1," * 100 + b"1]}",
        b'{"tokens":[' + b"[1]," * 100 + b"[1]]}",
        b'{"tokens":[' + b"1," * 100 + b'1],"x":"["}',
        b'{"data":[' + b"-0," * 100 + b'18446744073709551616],"dtype":"float32"}',
        b'{"a":' * 20 + b"1" + b"}" * 20,
        b"{" + b",".join(b'"%d":%d' % (n, n) for n in range(200)) + b"}",
        b'{"a":[' + b"[]," * 2**17 + b"1]}",
        b' {"a":1} ',
        b"[1]",
    ],
)
def test_unusual_texts_are_read_as_without_arrays(text: bytes) -> None:
    assert repr(parse(text)) == repr(orjson.loads(text))


@pytest.mark.parametrize(
    "text", [b"", b"{", b'\xef\xbb\xbf{"a":1}', b'{"a":NaN}', b'{"a":"\xff"}', b'{"a":"\\ud800"}', b"{}x"]
)
def test_texts_that_are_not_json_are_refused(text: bytes) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        parse(text)


def test_long_lists_become_arrays() -> None:
    request = VALIDATOR.parse_body(
        OPERATIONS["forward_backward"],
        orjson.dumps(batch([1] * 100, [0.5] * 100, "float32")),
        {"content-type": JSON},
        packs_numbers=True,
    )
    (datum,) = request.forward_backward_input.data
    assert isinstance(datum.loss_fn_inputs["x"].raw, np.ndarray)
    assert isinstance(datum.model_input.chunks[0].raw, np.ndarray)


def test_shapes_that_do_not_fit_are_refused() -> None:
    body = batch([1] * 100, [0.5] * 100, "float32")
    body["forward_backward_input"]["data"][0]["loss_fn_inputs"]["x"]["shape"] = [99]
    assert read(body, packs_numbers=True) == read(body, packs_numbers=False)
