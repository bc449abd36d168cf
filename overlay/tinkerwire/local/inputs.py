"""From the wire's datums and prompts to what the engine reads, and from its results to the wire's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tinkerwire.local.engine import EngineError, Example, LossResult
from tinkerwire_generated.models import (
    Datum,
    EncodedTextChunk,
    ForwardBackwardOutput,
    ModelInput,
    TensorData,
)


def tokens(where: str, model_input: ModelInput) -> npt.NDArray[Any]:
    """The token ids of an input.

    Raises:
        EngineError: a chunk that is not text.
    """
    parts = []
    for index, chunk in enumerate(model_input.chunks):
        if not isinstance(chunk, EncodedTextChunk):
            raise EngineError(
                f"{where}: chunks[{index}] is an image ({chunk.type}); the models of this server read text only"
            )
        parts.append(np.asarray(chunk.tokens, dtype=np.int64))
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def examples(data: Sequence[Datum]) -> list[Example]:
    """The engine's examples; EngineError for what it cannot read, naming the datum."""
    return [_example(f"datum {index}", datum) for index, datum in enumerate(data)]


def output(result: LossResult) -> ForwardBackwardOutput:
    """The wire's form of a loss and its outputs."""
    return ForwardBackwardOutput(
        loss_fn_output_type="ArrayRecord",
        loss_fn_outputs=[
            {name: TensorData.from_array(name, array) for name, array in arrays.items()} for arrays in result.outputs
        ],
        metrics=finite(result.metrics),
    )


def finite(metrics: Mapping[str, float]) -> dict[str, float]:
    """The metrics themselves; EngineError when one of them is infinite or no number, which JSON cannot say."""
    for name, value in metrics.items():
        if not math.isfinite(value):
            raise EngineError(f"{name} became {value}; use smaller numbers, and go on from a checkpoint from before")
    return dict(metrics)


def _example(where: str, datum: Datum) -> Example:
    inputs = {}
    for name, tensor in datum.loss_fn_inputs.items():
        try:
            inputs[name] = tensor.to_numpy()
        except (ValueError, TypeError, OverflowError) as fault:
            raise EngineError(f"{where}: {name}: {fault}") from None
    return Example(tokens(where, datum.model_input), inputs)
