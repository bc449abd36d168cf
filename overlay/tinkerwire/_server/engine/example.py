"""One sequence to train on, and the checks that name what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from tinkerwire._server.engine.arrays import AnyArray, FloatArray, IntArray
from tinkerwire._server.engine.config import ModelConfig
from tinkerwire._server.engine.errors import EngineError

__all__ = ["Example", "float_input", "token_array", "token_ids"]


def _input_arrays(inputs: Mapping[str, Any]) -> dict[str, AnyArray]:
    return {key: np.asarray(value) for key, value in inputs.items()}


@attrs.frozen(eq=False)
class Example:
    """N tokens, and the arrays of N numbers, or (N, K) for K targets a token, that a loss reads beside them.

    Args:
        tokens: the model's input; position t predicts ``inputs["target_tokens"][t]``.
        inputs: target_tokens, and by loss: weights, logprobs, advantages, clip_low_threshold,
            clip_high_threshold.
    """

    tokens: AnyArray = attrs.field(converter=np.asarray)
    inputs: dict[str, AnyArray] = attrs.field(converter=_input_arrays)


def token_array(where: str, values: AnyArray, config: ModelConfig) -> IntArray:
    """values as int64 token ids of the model's vocabulary.

    Args:
        where: what to call the values in an error, such as ``forward: datum 3: tokens``.

    Raises:
        EngineError: not one dimension, empty, longer than the context, not whole numbers, out of vocabulary.
    """
    if values.ndim != 1:
        raise EngineError(f"{where} has shape {values.shape}; pass one dimension")
    if values.size == 0:
        raise EngineError(f"{where} is empty; pass at least one token")
    if values.size > config.max_context:
        raise EngineError(
            f"{where} has {values.size} tokens but {config.name} reads at most {config.max_context}; "
            "shorten it or split it"
        )
    return token_ids(where, values, config)


def token_ids(where: str, values: AnyArray, config: ModelConfig) -> IntArray:
    """values, one dimension of any length, as int64 token ids; EngineError for what is none of the vocabulary."""
    if values.dtype.kind not in "iuf":
        raise EngineError(f"{where} has dtype {values.dtype}; pass integers")
    bad = ~((values >= 0) & (values < config.vocab_size) & (values == np.floor(values)))
    if bad.any():
        at = int(bad.argmax())
        raise EngineError(
            f"{where}[{at}] is {values[at]}; token ids of {config.name} are whole numbers from 0 to "
            f"{config.vocab_size - 1}, use its own tokenizer (one token a byte)"
        )
    return values.astype(np.int64)


def float_input(where: str, values: AnyArray, shape: tuple[int, ...]) -> FloatArray:
    """values as float64 of the targets' shape.

    Raises:
        EngineError: another shape, not numbers, or a NaN or infinity among them.
    """
    if values.shape != shape:
        raise EngineError(
            f"{where} has shape {values.shape} beside {shape[0]} tokens; pass shape {shape}, one number a target"
        )
    if values.dtype.kind not in "iufb":
        raise EngineError(f"{where} has dtype {values.dtype}; pass numbers")
    numbers: FloatArray = values.astype(np.float64)
    finite = np.isfinite(numbers)
    if not finite.all():
        at = int((~finite).argmax())
        raise EngineError(f"{where}[{at}] is {numbers.reshape(-1)[at]}; pass finite numbers, 0 where nothing counts")
    return numbers
