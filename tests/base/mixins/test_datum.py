"""Datum: loss inputs become tensors."""

from __future__ import annotations

import json
from typing import Any

import attrs
import numpy as np
import pytest

from tinkerwire_base.conversion.converter import Converter
from tinkerwire_generated.models import (
    Datum,
    ModelInput,
    TensorData,
)

CONVERTER = Converter()
TEXT = ModelInput.from_ints([1, 2, 3])


def make_tensor(values: list[Any]) -> TensorData:
    return TensorData(data=values, dtype="float32")


def test_loss_inputs_become_tensors() -> None:
    """Arrays and lists in loss_fn_inputs become TensorData; TensorData does not change."""
    tensor = TensorData(data=[0.5, 1], dtype="float32")
    datum = Datum(
        model_input=TEXT,
        loss_fn_inputs={"target_tokens": [2, 3], "weights": np.ones(2, np.float32), "advantages": tensor},  # type: ignore[dict-item]
    )
    assert all(isinstance(tensor, TensorData) for tensor in datum.loss_fn_inputs.values())
    assert datum.loss_fn_inputs["advantages"] is tensor
    assert datum.loss_fn_inputs["target_tokens"].tolist() == [2, 3]
    assert attrs.evolve(datum, model_input=ModelInput.empty()).loss_fn_inputs == datum.loss_fn_inputs


def test_datum_does_not_change_the_callers_dict() -> None:
    """The dict of the caller does not change."""
    inputs: dict[str, Any] = {"weights": [1.0]}
    Datum(model_input=TEXT, loss_fn_inputs=inputs)
    assert inputs == {"weights": [1.0]}


@pytest.mark.parametrize(
    ("inputs", "kind", "pattern"),
    [
        ([1], TypeError, "Datum.loss_fn_inputs: expected a dict of name to tensor, got list"),
        ({5: [1.0]}, TypeError, "loss_fn_inputs key: expected a str, got 5"),
        ({"weights": {"data": [1.0]}}, TypeError, "weights: expected an array, .*, got dict"),
        (
            {"weights": TensorData(data=list[Any]([1.0, "x"]), dtype="float32")},
            TypeError,
            r"weights\[1\]: expected a number",
        ),
        (
            {"weights": TensorData(data=[True], dtype="float32")},
            TypeError,
            r"weights\[0\]: expected a number, got True",
        ),
        (
            {"weights": TensorData(data=list[Any]([1.0, None]), dtype="float32")},
            TypeError,
            r"weights\[1\]: expected a number",
        ),
        (
            {"weights": TensorData(data=[0.5, 1e39, -1e39], dtype="float32")},
            OverflowError,
            r"weights\[1\]: 1e\+39 does not fit into float32",
        ),
        (
            {"weights": TensorData(data=[0.5, 2**70, -(10**39)], dtype="float32")},
            OverflowError,
            r"weights\[2\]: -1000.*000 does not fit into float32",
        ),
        (
            {"weights": TensorData(data=np.array([0.5, 1e39]), dtype="float32")},
            OverflowError,
            r"weights\[1\]: 1e\+39 does not fit into float32",
        ),
        (
            {"target_tokens": TensorData(data=np.array([1, 2**63], np.uint64), dtype="int64")},
            OverflowError,
            r"target_tokens\[1\]: 9223372036854775808 does not fit into int64",
        ),
        ({"target_tokens": TensorData(data=[1.5], dtype="int64")}, TypeError, r"target_tokens\[0\]: expected an int"),
        ({"target_tokens": TensorData(data=[2**63], dtype="int64")}, OverflowError, r"target_tokens\[0\]: .* 64 bits"),
    ],
)
def test_invalid_loss_inputs_raise_errors_with_key_and_position(
    inputs: Any, kind: type[Exception], pattern: str
) -> None:
    """A value that cannot be sent raises an error with its key when the datum is made."""
    with pytest.raises(kind, match=pattern):
        Datum(model_input=TEXT, loss_fn_inputs=inputs)


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, 2**64, -(2**63) - 1, 2**70, -(2**127)])
@pytest.mark.parametrize("others", [[], [0.5], [-1], [float("inf")], [0.5] * 70])
def test_ints_beyond_64_bits_are_floats(number: int, others: list[Any]) -> None:
    """An int in a list of floats may be as large as a float32, in a TensorData as in a plain list."""
    values = [*others, number]
    inputs: dict[str, Any] = {"weights": make_tensor(values), "advantages": values}
    datum = Datum(model_input=TEXT, loss_fn_inputs=inputs)
    tensor, plain = datum.loss_fn_inputs["weights"], datum.loss_fn_inputs["advantages"]
    assert tensor.to_numpy().tolist() == plain.to_numpy().tolist() == [*others, float(np.float32(number))]
    assert json.loads(CONVERTER.encode(tensor))["data"][-1] == pytest.approx(number, rel=1e-15, abs=0)


def test_numpy_scalars_in_a_list_are_numbers() -> None:
    """A flat list of numpy scalars is equivalent to a list of Python numbers."""
    tensor = make_tensor([np.float32(0.5), np.int64(2)])
    datum = Datum(model_input=TEXT, loss_fn_inputs={"weights": tensor})
    assert b'"data":[0.5,2]' in CONVERTER.encode(datum)


def test_model_input_of_a_datum_must_be_a_model_input() -> None:
    """A list of tokens in place of a ModelInput raises TypeError."""
    with pytest.raises(TypeError, match=r"Datum.model_input: expected ModelInput, got \[1, 2\] \(list\)"):
        Datum(model_input=[1, 2], loss_fn_inputs={})  # type: ignore[arg-type]
