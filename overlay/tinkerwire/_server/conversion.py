"""Conversion between models of the wire and arguments and results of the engine."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tinkerwire._server.engine import EngineError, Example, LossResult
from tinkerwire_base.tensors import refuse_non_finite
from tinkerwire_generated.models import (
    Datum,
    EncodedTextChunk,
    ForwardBackwardOutput,
    ModelInput,
    TensorData,
)

MAX_DENSE_VALUES = 2**24
"""Maximum size of all sparse tensors of one request once they are dense; a few bytes can describe any size."""


def to_token_array(where: str, model_input: ModelInput) -> npt.NDArray[Any]:
    """Return the token ids of an input.

    Args:
        where: name of the input in errors.
        model_input: the input.

    Raises:
        EngineError: a chunk is not text.
    """
    parts = []
    for index, chunk in enumerate(model_input.chunks):
        if not isinstance(chunk, EncodedTextChunk):
            raise EngineError(
                f"{where}: chunks[{index}] must be text for the models of this server, got type {chunk.type}"
            )
        parts.append(np.asarray(chunk.raw, dtype=np.int64))
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def to_examples(data: Sequence[Datum]) -> list[Example]:
    """Convert datums to examples of the engine.

    Raises:
        EngineError: a datum is invalid; the error names it.
    """
    _check_dense_size("data", [tensor for datum in data for tensor in datum.loss_fn_inputs.values()])
    return [_to_example(f"datum {index}", datum) for index, datum in enumerate(data)]


def to_array(where: str, tensor: TensorData, pad_value: int = 0) -> npt.NDArray[Any]:
    """Convert a tensor to an array, int64 or float32.

    Args:
        where: name of the tensor in errors.
        tensor: the tensor.
        pad_value: the value of positions that a sparse tensor does not define.

    Raises:
        EngineError: the data does not fit the dtype, or the dense size exceeds :data:`MAX_DENSE_VALUES`.
    """
    _check_dense_size(where, [tensor])
    try:
        return tensor.to_numpy(pad_value)
    except (ValueError, TypeError, OverflowError) as error:
        raise EngineError(f"{where}: {error}") from None


def to_output(result: LossResult) -> ForwardBackwardOutput:
    """Convert a result of the engine to a response.

    Raises:
        EngineError: a value is not finite.
    """
    return ForwardBackwardOutput(
        loss_fn_output_type="ArrayRecord",
        loss_fn_outputs=[
            {name: _to_finite_tensor(name, array) for name, array in arrays.items()} for arrays in result.outputs
        ],
        metrics=require_finite(result.metrics),
    )


def _to_finite_tensor(name: str, array: npt.NDArray[Any]) -> TensorData:
    refuse_non_finite(name, array)
    return TensorData.from_array(name, array)


def require_finite(metrics: Mapping[str, float]) -> dict[str, float]:
    """Return the metrics unchanged.

    Raises:
        EngineError: a metric is infinite or NaN, which JSON cannot represent.
    """
    for name, value in metrics.items():
        if not math.isfinite(value):
            raise EngineError(f"{name} became {value}; lower the learning rate and resume from an earlier checkpoint")
    return dict(metrics)


def _to_example(where: str, datum: Datum) -> Example:
    inputs = {name: to_array(f"{where}: {name}", tensor) for name, tensor in datum.loss_fn_inputs.items()}
    return Example(to_token_array(where, datum.model_input), inputs)


def _check_dense_size(where: str, tensors: Iterable[TensorData]) -> None:
    count = sum(math.prod(tensor.shape or ()) for tensor in tensors if tensor.sparse_crow_indices is not None)
    if count > MAX_DENSE_VALUES:
        raise EngineError(
            f"{where}: sparse tensors must not exceed {MAX_DENSE_VALUES} values in dense form, got {count}; "
            "send fewer datums or narrower tensors"
        )
