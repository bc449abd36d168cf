"""Examples, and the validation of their arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from tinkerwire._server.engine.arrays import AnyArray, FloatArray, IntArray
from tinkerwire._server.engine.config import PATCH_VALUES, ModelConfig
from tinkerwire._server.engine.errors import EngineError


def _input_arrays(inputs: Mapping[str, Any]) -> dict[str, AnyArray]:
    return {key: np.asarray(value) for key, value in inputs.items()}


def no_patches() -> FloatArray:
    """Return the patches of an input without images."""
    return np.empty((0, PATCH_VALUES), dtype=np.float32)


@attrs.frozen(eq=False)
class Example:
    """N tokens and the inputs of a loss: arrays (N,), or (N, K) for K targets per token.

    Args:
        tokens: input of the model; position t predicts ``inputs["target_tokens"][t]``. The value -1 - i is patch i.
        inputs: target_tokens and, depending on the loss, weights, logprobs, advantages, clip_low_threshold and
            clip_high_threshold.
        patches: patches of images, (any number, PATCH_VALUES).
    """

    tokens: AnyArray = attrs.field(converter=np.asarray)
    inputs: dict[str, AnyArray] = attrs.field(converter=_input_arrays)
    patches: FloatArray = attrs.field(factory=no_patches)


def require_length(where: str, length: int, config: ModelConfig) -> None:
    """Check the number of tokens of an input.

    Raises:
        EngineError: the input is empty or longer than the context.
    """
    if length == 0:
        raise EngineError(f"{where} must have at least one token")
    if length > config.max_context:
        raise EngineError(
            f"{where} must have at most {config.max_context} tokens for {config.name}, got {length}; "
            "shorten or split the sequence"
        )


def token_array(where: str, values: AnyArray, config: ModelConfig, patch_count: int = 0) -> IntArray:
    """Convert values to int64 token ids of the model's vocabulary.

    Args:
        where: name of the values in errors, such as ``forward: datum 3: tokens``.
        values: the values.
        config: config of the base model.
        patch_count: number of patches that negative values may stand for.

    Raises:
        EngineError: the values are not one-dimensional, empty, longer than the context, or not token ids.
    """
    if values.ndim != 1:
        raise EngineError(f"{where} must have one dimension, got shape {values.shape}")
    require_length(where, values.size, config)
    if not patch_count:
        return array_of_token_ids(where, values, config)
    is_patch = (values < 0) & (values >= -patch_count)
    array_of_token_ids(where, np.where(is_patch, 0, values), config)
    return values.astype(np.int64)


def array_of_token_ids(where: str, values: AnyArray, config: ModelConfig) -> IntArray:
    """Convert values, one dimension of any length, to int64 token ids.

    Raises:
        EngineError: a value is not in the vocabulary.
    """
    if values.dtype.kind not in "iuf":
        raise EngineError(f"{where} must have integers, got dtype {values.dtype}")
    bad = ~((values >= 0) & (values < config.vocab_size) & (values == np.floor(values)))
    if bad.any():
        at = int(bad.argmax())
        raise EngineError(
            f"{where}[{at}] must be a token id of {config.name} from 0 to {config.vocab_size - 1}, got {values[at]}; "
            "use the tokenizer of the model (one token per byte)"
        )
    return values.astype(np.int64)


def float_input(where: str, values: AnyArray, shape: tuple[int, ...]) -> FloatArray:
    """Convert values to float64 in the shape of the targets.

    Raises:
        EngineError: the values have another shape, or are not finite numbers.
    """
    if values.shape != shape:
        raise EngineError(f"{where} must have shape {shape}, one number per target, got shape {values.shape}")
    if values.dtype.kind not in "iufb":
        raise EngineError(f"{where} must have numbers, got dtype {values.dtype}")
    numbers: FloatArray = values.astype(np.float64)
    finite = np.isfinite(numbers)
    if not finite.all():
        at = int((~finite).argmax())
        raise EngineError(f"{where}[{at}] must be finite, got {numbers.reshape(-1)[at]}; use 0 for positions to ignore")
    return numbers
