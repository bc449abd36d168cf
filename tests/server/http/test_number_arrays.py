"""Numbers of a batch as arrays: the request and the errors are those of the lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinkerwire._server.http.openapi import load_contract
from tinkerwire._server.http.responses import HttpError
from tinkerwire._server.http.validation import Validator
from tinkerwire._wire.protobuf import encode_request
from tinkerwire_base.call import JSON
from tinkerwire_generated.operations import OPERATIONS

VALIDATOR = Validator(load_contract("0.16.1"))
ODD_ITEMS: tuple[Any, ...] = (0, -1, 1.5, -0.0, 0.1, True, None, "1", [1], 2**31, 2**40, -(2**63), 1e39, 1e-50)


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
