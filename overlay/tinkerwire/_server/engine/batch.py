"""Batches: examples of any length as flat arrays, split into padded pieces of bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import attrs
import numpy as np
from numpy.typing import NDArray

from tinkerwire._server.engine.arrays import AnyArray, FloatArray, IntArray
from tinkerwire._server.engine.config import ModelConfig
from tinkerwire._server.engine.errors import EngineError
from tinkerwire._server.engine.example import Example, array_of_token_ids, float_input, token_array
from tinkerwire._server.engine.losses import Loss

T = TypeVar("T", bound=np.generic)

PIECE_TOKENS = 512
"""Maximum number of tokens in a piece with padding, unless one sequence is longer."""

PIECE_SCORES = 8_000_000
"""Maximum number of attention scores per piece and layer, unless one sequence needs more."""

MIN_FILL = 0.8
"""Minimum fraction of a piece that is not padding."""


@attrs.frozen(eq=False)
class Batch:
    """The concatenated examples.

    Args:
        starts: offsets of the examples, (examples + 1,).
        tokens: token ids, (positions,); the value -1 - i is patch i.
        targets: target ids, (positions, K), where K is the maximum number of targets per position; zero-padded.
        inputs: inputs of the loss in the shape of the targets, zero-padded.
        shapes: shape of each example's targets.
        patches: patches of images, (any number, PATCH_VALUES).
    """

    starts: IntArray
    tokens: IntArray
    targets: IntArray
    inputs: Mapping[str, FloatArray]
    shapes: Sequence[tuple[int, ...]]
    patches: FloatArray

    def split(self, values: FloatArray) -> list[FloatArray]:
        """Split values of all targets into one array per example, in the shape of its targets."""
        parts = zip(np.split(values, self.starts[1:-1]), self.shapes, strict=True)
        return [part[:, : shape[-1]] if len(shape) == 2 else part[:, 0] for part, shape in parts]

    def locate(self, position: int) -> tuple[int, int]:
        """Return the example of a flat position, and the position within the example."""
        example = int(np.searchsorted(self.starts, position, side="right")) - 1
        return example, position - int(self.starts[example])


@attrs.frozen(eq=False)
class Piece:
    """Examples padded to one length.

    Args:
        tokens: token ids and patches, (B, T), padded on the right, which causal attention ignores.
        real: mask, (B, T), false on padding.
        positions: flat positions of the real tokens, in the order of ``tokens[real]``.
    """

    tokens: IntArray
    real: np.ndarray[tuple[int, int], np.dtype[np.bool_]]
    positions: IntArray


def flatten(
    where: str, config: ModelConfig, examples: Sequence[Example], loss: Loss, settings: Mapping[str, float]
) -> Batch:
    """Validate the examples for a loss and concatenate them.

    Args:
        where: name of the call in errors.
        config: config of the base model.
        examples: the examples.
        loss: the loss.
        settings: settings of the loss.

    Raises:
        EngineError: the batch is empty or an example is invalid; the error names datum, key and position.
    """
    if not examples:
        raise EngineError(f"{where}: must have at least one datum")
    tokens, targets, patch_count = [], [], 0
    columns: dict[str, list[FloatArray]] = {key: [] for key in (*loss.required, *loss.optional)}
    for index, example in enumerate(examples):
        at = f"{where}: datum {index}"
        example_tokens = token_array(f"{at}: tokens", example.tokens, config, len(example.patches))
        _check_keys(at, example, loss)
        target = _targets(f"{at}: target_tokens", example.inputs["target_tokens"], len(example_tokens), loss, config)
        if len(example.patches):
            # The patches of all examples form one array.
            example_tokens = np.where(example_tokens < 0, example_tokens - patch_count, example_tokens)
            patch_count += len(example.patches)
        tokens.append(example_tokens)
        targets.append(target)
        for key, column in columns.items():
            column.append(_column(at, key, example, target.shape, loss, settings))
    starts = np.cumsum([0, *(len(example_tokens) for example_tokens in tokens)], dtype=np.int64)
    inputs = {key: _stack(column) for key, column in columns.items()}
    patches = np.concatenate([example.patches for example in examples])
    return Batch(starts, np.concatenate(tokens), _stack(targets), inputs, [target.shape for target in targets], patches)


def _targets(where: str, values: AnyArray, length: int, loss: Loss, config: ModelConfig) -> IntArray:
    """Return one target per token, or several if the loss supports it."""
    if values.ndim != 2 or not loss.many_targets:
        target = token_array(where, values, config)
        if len(target) != length:
            raise EngineError(f"{where} must have one target per token ({length}), got {len(target)}")
        return target
    if len(values) != length or not values.size:
        raise EngineError(f"{where} must have one row per token ({length}), got shape {values.shape}")
    if values.shape[1] > config.vocab_size:
        # All positions of the batch are padded to the widest one.
        raise EngineError(f"{where} must have at most {config.vocab_size} targets per token, got {values.shape[1]}")
    return array_of_token_ids(where, values.reshape(-1), config).reshape(values.shape)


def _stack(parts: Sequence[NDArray[T]]) -> NDArray[T]:
    """Stack arrays (N,) or (N, K) of any N and K into one array of two dimensions, with zero-padded rows."""
    columns = [part.reshape(len(part), -1) for part in parts]
    width = max(column.shape[1] for column in columns)
    return np.concatenate([np.pad(column, ((0, 0), (0, width - column.shape[1]))) for column in columns])


def _check_keys(at: str, example: Example, loss: Loss) -> None:
    required = ("target_tokens", *loss.required)
    for key in required:
        if key not in example.inputs:
            raise EngineError(f"{at}: {key!r} is missing; loss {loss.name} requires {', '.join(required)}")
    for key in example.inputs:
        if key not in required and key not in loss.optional:
            keys = ", ".join((*required, *loss.optional))
            raise EngineError(f"{at}: {key!r} is unknown; loss {loss.name} supports {keys}; omit the rest")


def _column(
    at: str, key: str, example: Example, shape: tuple[int, ...], loss: Loss, settings: Mapping[str, float]
) -> FloatArray:
    """Return an input of an example, or its default."""
    if key in example.inputs:
        return float_input(f"{at}: {key}", example.inputs[key], shape)
    return np.full(shape, settings.get(key, loss.optional.get(key, 0.0)))


def pieces(config: ModelConfig, batch: Batch) -> Iterator[Piece]:
    """Split the batch into pieces of examples of similar length, longest first; the split is deterministic."""
    lengths = np.diff(batch.starts)
    group: list[int] = []
    for index in np.argsort(-lengths, kind="stable"):
        if group and not _fits(config, lengths, group, int(index)):
            yield _piece(batch, lengths, group)
            group = []
        group.append(int(index))
    yield _piece(batch, lengths, group)


def _fits(config: ModelConfig, lengths: IntArray, group: list[int], index: int) -> bool:
    longest, rows = int(lengths[group[0]]), len(group) + 1
    filled = int(lengths[group].sum() + lengths[index])
    return (
        rows * longest <= PIECE_TOKENS
        and rows * longest * longest * config.n_heads <= PIECE_SCORES
        and filled >= MIN_FILL * rows * longest
    )


def _piece(batch: Batch, lengths: IntArray, group: list[int]) -> Piece:
    real = np.arange(lengths[group[0]]) < lengths[group][:, None]
    positions = np.concatenate([np.arange(batch.starts[i], batch.starts[i + 1]) for i in group])
    tokens = np.zeros(real.shape, dtype=np.int64)
    tokens[real] = batch.tokens[positions]
    return Piece(tokens, real, positions)
