"""Examples of any length as flat arrays, and their split into padded pieces of bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import attrs
import numpy as np
from numpy.typing import NDArray

from tinkerwire._server.engine.arrays import AnyArray, FloatArray, IntArray
from tinkerwire._server.engine.config import ModelConfig
from tinkerwire._server.engine.errors import EngineError
from tinkerwire._server.engine.example import Example, float_input, token_array, token_ids
from tinkerwire._server.engine.losses import Loss

__all__ = ["Batch", "Piece", "flatten", "pieces"]

T = TypeVar("T", bound=np.generic)

PIECE_TOKENS = 512
"""Most tokens of a piece, padding included, unless one sequence is longer."""

PIECE_SCORES = 8_000_000
"""Most attention scores a piece and layer, unless one sequence needs more."""

LEAST_FILL = 0.8
"""A piece takes a shorter sequence only while at least this part of it is no padding."""


@attrs.frozen(eq=False)
class Batch:
    """All examples end to end.

    Args:
        starts: the offsets, (examples + 1,).
        tokens: (positions,).
        targets: (positions, K) where K is the most targets that a position has; the others end with zeros.
        inputs: of the same shape, zero where there is no target.
        shapes: of each example's own targets.
    """

    starts: IntArray
    tokens: IntArray
    targets: IntArray
    inputs: Mapping[str, FloatArray]
    shapes: Sequence[tuple[int, ...]]

    def split(self, values: FloatArray) -> list[FloatArray]:
        """Values of all targets as one array an example, in the shape of its targets."""
        parts = zip(np.split(values, self.starts[1:-1]), self.shapes, strict=True)
        return [part[:, : shape[-1]] if len(shape) == 2 else part[:, 0] for part, shape in parts]

    def locate(self, position: int) -> tuple[int, int]:
        """The example of a flat position, and the position inside it."""
        example = int(np.searchsorted(self.starts, position, side="right")) - 1
        return example, position - int(self.starts[example])


@attrs.frozen(eq=False)
class Piece:
    """Some examples side by side.

    Args:
        tokens: (B, T); shorter examples are padded on the right, where causal attention cannot look back.
        real: (B, T), false on padding.
        positions: the flat positions of the real tokens, in the order of ``tokens[real]``.
    """

    tokens: IntArray
    real: np.ndarray[tuple[int, int], np.dtype[np.bool_]]
    positions: IntArray


def flatten(
    where: str, config: ModelConfig, examples: Sequence[Example], loss: Loss, settings: Mapping[str, float]
) -> Batch:
    """Check every example for this loss and lay them end to end.

    Args:
        where: the call, for error texts.

    Raises:
        EngineError: no example, or one that the loss cannot read; names the datum, the key and the position.
    """
    if not examples:
        raise EngineError(f"{where}: there is no datum; pass at least one")
    tokens, targets = [], []
    columns: dict[str, list[FloatArray]] = {key: [] for key in (*loss.required, *loss.optional)}
    for index, example in enumerate(examples):
        at = f"{where}: datum {index}"
        own = token_array(f"{at}: tokens", example.tokens, config)
        _check_keys(at, example, loss)
        target = _targets(f"{at}: target_tokens", example.inputs["target_tokens"], len(own), loss, config)
        tokens.append(own)
        targets.append(target)
        for key, column in columns.items():
            column.append(_column(at, key, example, target.shape, loss, settings))
    starts = np.cumsum([0, *(len(own) for own in tokens)], dtype=np.int64)
    inputs = {key: _stacked(column) for key, column in columns.items()}
    return Batch(starts, np.concatenate(tokens), _stacked(targets), inputs, [target.shape for target in targets])


def _targets(where: str, values: AnyArray, length: int, loss: Loss, config: ModelConfig) -> IntArray:
    """One target a token, or several where the loss can do with them."""
    if values.ndim != 2 or not loss.many_targets:
        target = token_array(where, values, config)
        if len(target) != length:
            raise EngineError(f"{where} has {len(target)} entries beside {length} tokens; pass one target a token")
        return target
    if len(values) != length or not values.size:
        raise EngineError(f"{where} has shape {values.shape} beside {length} tokens; pass one row a token")
    if values.shape[1] > config.vocab_size:
        # Each position of the batch gets as many as the one that has most.
        raise EngineError(
            f"{where} has {values.shape[1]} targets a token, more than the {config.vocab_size} that there are"
        )
    return token_ids(where, values.reshape(-1), config).reshape(values.shape)


def _stacked(parts: Sequence[NDArray[T]]) -> NDArray[T]:
    """Arrays (N,) or (N, K) of any N and K as one of two dimensions, with zeros at the end of the shorter rows."""
    columns = [part.reshape(len(part), -1) for part in parts]
    width = max(column.shape[1] for column in columns)
    return np.concatenate([np.pad(column, ((0, 0), (0, width - column.shape[1]))) for column in columns])


def _check_keys(at: str, example: Example, loss: Loss) -> None:
    required = ("target_tokens", *loss.required)
    for key in required:
        if key not in example.inputs:
            raise EngineError(f"{at}: {key!r} is missing; loss {loss.name} needs {', '.join(required)}")
    for key in example.inputs:
        if key not in required and key not in loss.optional:
            known = ", ".join((*required, *loss.optional))
            raise EngineError(f"{at}: {key!r} is unknown; loss {loss.name} reads {known}, leave the rest out")


def _column(
    at: str, key: str, example: Example, shape: tuple[int, ...], loss: Loss, settings: Mapping[str, float]
) -> FloatArray:
    """An example's input of that key, or its stand-in."""
    if key in example.inputs:
        return float_input(f"{at}: {key}", example.inputs[key], shape)
    return np.full(shape, settings.get(key, loss.optional.get(key, 0.0)))


def pieces(config: ModelConfig, batch: Batch) -> Iterator[Piece]:
    """The batch in pieces of examples of like length, longest first; the same batch always splits alike."""
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
        and filled >= LEAST_FILL * rows * longest
    )


def _piece(batch: Batch, lengths: IntArray, group: list[int]) -> Piece:
    real = np.arange(lengths[group[0]]) < lengths[group][:, None]
    positions = np.concatenate([np.arange(batch.starts[i], batch.starts[i + 1]) for i in group])
    tokens = np.zeros(real.shape, dtype=np.int64)
    tokens[real] = batch.tokens[positions]
    return Piece(tokens, real, positions)
