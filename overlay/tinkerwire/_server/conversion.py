"""From the wire's datums and prompts to what the engine reads, and from its results to the wire's."""

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

MAX_FILLED = 2**24
"""Numbers that the sparse tensors of one request may stand for: a few bytes can ask for any number of them."""


def tokens(where: str, model_input: ModelInput) -> npt.NDArray[Any]:
    """The token ids of an input.

    Raises:
        EngineError: a chunk that is not text.
    """
    parts = []
    for index, chunk in enumerate(model_input.chunks):
        if not isinstance(chunk, EncodedTextChunk):
            raise EngineError(
                f"{where}: chunks[{index}] is no text but of type {chunk.type}; the models of this server read text"
            )
        parts.append(np.asarray(chunk.tokens, dtype=np.int64))
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def examples(data: Sequence[Datum]) -> list[Example]:
    """The engine's examples; EngineError for what it cannot read, naming the datum."""
    _check_filled("data", [tensor for datum in data for tensor in datum.loss_fn_inputs.values()])
    return [_example(f"datum {index}", datum) for index, datum in enumerate(data)]


def array(where: str, tensor: TensorData, pad_value: int = 0) -> npt.NDArray[Any]:
    """A tensor of the wire as an array of its shape, int64 or float32, with ``pad_value`` where a sparse one has none.

    Raises:
        EngineError: data that is not of its dtype, or a sparse tensor of more than :data:`MAX_FILLED` numbers.
    """
    _check_filled(where, [tensor])
    try:
        return tensor.to_numpy(pad_value)
    except (ValueError, TypeError, OverflowError) as error:
        raise EngineError(f"{where}: {error}") from None


def output(result: LossResult) -> ForwardBackwardOutput:
    """The wire's form of a loss and its outputs."""
    return ForwardBackwardOutput(
        loss_fn_output_type="ArrayRecord",
        loss_fn_outputs=[
            {name: _finite_tensor(name, array) for name, array in arrays.items()} for arrays in result.outputs
        ],
        metrics=finite(result.metrics),
    )


def _finite_tensor(name: str, array: npt.NDArray[Any]) -> TensorData:
    refuse_non_finite(name, array)
    return TensorData.from_array(name, array)


def finite(metrics: Mapping[str, float]) -> dict[str, float]:
    """The metrics themselves; EngineError when one of them is infinite or no number, which JSON cannot say."""
    for name, value in metrics.items():
        if not math.isfinite(value):
            raise EngineError(f"{name} became {value}; use smaller numbers, and go on from a checkpoint from before")
    return dict(metrics)


def _example(where: str, datum: Datum) -> Example:
    inputs = {name: array(f"{where}: {name}", tensor) for name, tensor in datum.loss_fn_inputs.items()}
    return Example(tokens(where, datum.model_input), inputs)


def _check_filled(where: str, tensors: Iterable[TensorData]) -> None:
    count = sum(math.prod(each.shape or ()) for each in tensors if each.sparse_crow_indices is not None)
    if count > MAX_FILLED:
        raise EngineError(
            f"{where}: sparse tensors stand for {count} numbers, this server fills in {MAX_FILLED} at most; "
            "send fewer datums, or narrower tensors"
        )
