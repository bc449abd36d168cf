"""Conversion between models of the wire and arguments and results of the engine."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from tinkerwire._server import images
from tinkerwire._server.engine import EngineError, Example, LossResult, ModelConfig, require_length
from tinkerwire._server.engine.example import array_of_token_ids, no_patches
from tinkerwire_base.tensors import refuse_non_finite
from tinkerwire_generated.models import (
    Datum,
    EncodedTextChunk,
    ForwardBackwardOutput,
    ImageAssetPointerChunk,
    ImageChunk,
    ModelInput,
    TensorData,
)

MAX_DENSE_VALUES = 2**24
"""Maximum size of all sparse tensors of one request once they are dense; a few bytes can describe any size."""


@attrs.frozen(eq=False)
class Input:
    """The input of a model: token ids, and -1 - i for patch i of its images."""

    tokens: npt.NDArray[np.int64]
    patches: npt.NDArray[np.float32]


def to_input(where: str, model_input: ModelInput, config: ModelConfig) -> Input:
    """Convert an input to token ids and patches.

    Args:
        where: name of the input in errors.
        model_input: the input.
        config: config of the base model, whose context limits the images before their pixels are read.

    Raises:
        EngineError: a chunk is neither text nor a readable image, or the input is empty or too long.
    """
    require_length(f"{where}: tokens", count_tokens(where, model_input), config)
    tokens: list[npt.NDArray[np.int64]] = []
    patches: list[npt.NDArray[np.float32]] = [no_patches()]
    count = 0
    for index, chunk in enumerate(model_input.chunks):
        if isinstance(chunk, ImageChunk):
            with _name_image(where, index):
                patches.append(images.read_patches(chunk))
            tokens.append(-1 - np.arange(count, count + len(patches[-1])))
            count += len(patches[-1])
        elif isinstance(chunk, EncodedTextChunk):
            tokens.append(_text_tokens(f"{where}: tokens of chunks[{index}]", chunk, config))
    return Input(np.concatenate(tokens), np.concatenate(patches))


def count_tokens(where: str, model_input: ModelInput) -> int:
    """Return the number of tokens of an input, without reading the pixels of its images.

    Raises:
        EngineError: a chunk is neither text nor an image.
    """
    count = 0
    for index, chunk in enumerate(model_input.chunks):
        if isinstance(chunk, ImageChunk):
            with _name_image(where, index):
                count += math.prod(images.count_squares(*images.measure_image(chunk)))
        elif isinstance(chunk, EncodedTextChunk):
            count += chunk.length
        elif isinstance(chunk, ImageAssetPointerChunk):
            raise EngineError(
                f"{where}: chunks[{index}] must be text or an image for this server, which does not fetch the images "
                f"of {chunk.type} chunks; send the bytes as an image chunk"
            )
        else:
            raise EngineError(f"{where}: chunks[{index}] must be text or an image for this server, got {chunk.type}")
    return count


def _text_tokens(where: str, chunk: EncodedTextChunk, config: ModelConfig) -> npt.NDArray[np.int64]:
    tokens = np.asarray(chunk.raw, dtype=np.int64)
    # The engine would read negative numbers as patches.
    return tokens if not tokens.size or tokens.min() >= 0 else array_of_token_ids(where, tokens, config)


@contextmanager
def _name_image(where: str, index: int) -> Iterator[None]:
    """Name the chunk in errors of its image."""
    try:
        yield
    except images.ImageError as error:
        raise EngineError(f"{where}: chunks[{index}]: image: {error}") from None


def to_examples(data: Sequence[Datum], config: ModelConfig) -> list[Example]:
    """Convert datums to examples of the engine.

    Raises:
        EngineError: a datum is invalid; the error names it.
    """
    _check_dense_size("data", [tensor for datum in data for tensor in datum.loss_fn_inputs.values()])
    return [_to_example(f"datum {index}", datum, config) for index, datum in enumerate(data)]


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


def _to_example(where: str, datum: Datum, config: ModelConfig) -> Example:
    inputs = {name: to_array(f"{where}: {name}", tensor) for name, tensor in datum.loss_fn_inputs.items()}
    model_input = to_input(where, datum.model_input, config)
    return Example(model_input.tokens, inputs, model_input.patches)


def _check_dense_size(where: str, tensors: Iterable[TensorData]) -> None:
    count = sum(math.prod(tensor.shape or ()) for tensor in tensors if tensor.sparse_crow_indices is not None)
    if count > MAX_DENSE_VALUES:
        raise EngineError(
            f"{where}: sparse tensors must not exceed {MAX_DENSE_VALUES} values in dense form, got {count}; "
            "send fewer datums or narrower tensors"
        )
