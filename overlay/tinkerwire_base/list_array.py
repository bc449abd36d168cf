"""Fields that read as a list and as an array: lists suit most code, protobuf holds arrays.

A private slot keeps the form that the field was given. The first read of the other form converts it, and from then on
the slot holds both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from .collection_pause import without_collections
from .lazy_numpy import Array, np
from .packed_list import PackedList
from .pickling import accept_official_pickles
from .tensors import flat_array

EMPTY_TOKEN, EMPTY_LOGPROB = 0, -99999.0
"""Padding of top-k matrices; logprob in nats."""


@accept_official_pickles
@attrs.define(frozen=True, eq=False)
class TopkLogprobs:
    """The likeliest tokens at each position, best first, as two matrices of one row per position.

    Token 0 with logprob -99999.0 pads the rows of positions with fewer tokens.
    """

    token_ids: Array
    """Token ids, int32."""
    logprobs: Array
    """Logprobs (nats), float32."""


class ListCodec:
    """Converts an array to a list."""

    def to_list(self, array: Any) -> list[Any]:
        """Return the list of an array."""
        values: list[Any] = array.tolist()
        return values


class ArrayCodec(ListCodec):
    """Converts between a list of numbers and an array of one dtype; None in the list is NaN in the array.

    With ``gaps``, NaN in the array is None in the list.
    """

    def __init__(self, dtype: str, *, gaps: bool = False) -> None:
        """Set the dtype of the array."""
        self._dtype, self._gaps = dtype, gaps

    def to_array(self, values: Sequence[Any]) -> Any:
        """Return the array of a list."""
        return flat_array(values, self._dtype)

    def to_list(self, array: Any) -> list[Any]:
        """Return the list of an array."""
        values = super().to_list(array)
        if self._gaps:
            for position in np.flatnonzero(np.isnan(array)).tolist():
                values[position] = None
        return values


class TopKCodec(ListCodec):
    """Converts between one list of (token, logprob) pairs, or None, per position and two matrices."""

    def to_array(self, values: Sequence[Any]) -> TopkLogprobs:
        """Return the matrices of lists; they are as wide as the longest list."""
        shape = len(values), max((len(pairs) for pairs in values if pairs), default=0)
        tokens, logprobs = np.full(shape, EMPTY_TOKEN, np.int32), np.full(shape, EMPTY_LOGPROB, np.float32)
        for row, pairs in enumerate(values):
            if pairs:
                tokens[row, : len(pairs)], logprobs[row, : len(pairs)] = zip(*pairs, strict=True)
        return TopkLogprobs(tokens, logprobs)

    def to_list(self, array: TopkLogprobs) -> list[Any]:
        """Return the lists of matrices without their padding; None for a row that starts with padding."""
        if not array.token_ids.size:
            return []
        is_token = (array.token_ids != EMPTY_TOKEN) | (array.logprobs != EMPTY_LOGPROB)
        counts = np.where(is_token[:, 0], is_token.shape[1] - np.argmax(is_token[:, ::-1], axis=1), 0)
        with without_collections():
            pairs = list(zip(array.token_ids.ravel().tolist(), array.logprobs.ravel().tolist(), strict=True))
        starts = range(0, len(pairs), is_token.shape[1])
        return [pairs[start : start + n] or None for start, n in zip(starts, counts.tolist(), strict=True)]


@attrs.define
class DualValue:
    """The value of a slot that holds both forms."""

    values: Any = None
    array: Any = None


def read_list(model: Any, slot: str, codec: ListCodec) -> Any:
    """Return the list form of the value in a slot."""
    value = getattr(model, slot)
    if type(value) is tuple:
        value = list(value)
        object.__setattr__(model, slot, value)
    if value is None or type(value) is list or not isinstance(value, DualValue | TopkLogprobs | np.ndarray):
        return value
    dual = _hold_both(model, slot, value)
    if dual.values is None:
        dual.values = codec.to_list(dual.array)
    return dual.values


def read_array(model: Any, slot: str, codec: ArrayCodec | TopKCodec) -> Any:
    """Return the array form of the value in a slot."""
    value = getattr(model, slot)
    if value is None:
        return None
    dual = _hold_both(model, slot, value)
    if dual.array is None:
        dual.array = codec.to_array(dual.values)
    return dual.array


def stored_form(value: Any) -> Any:
    """Return the value of a slot in the form that takes the least time to encode: an array if it has one, or a list."""
    if type(value) is DualValue:
        return value.values if value.array is None else value.array
    return value.to_array() if type(value) is PackedList else value


def stored_length(model: Any, name: str) -> int | None:
    """Return the length of a field with two forms without a conversion; None for None."""
    value = stored_form(getattr(model, f"_{name}"))
    if isinstance(value, TopkLogprobs):
        value = value.token_ids
    return None if value is None else len(value)


def _hold_both(model: Any, slot: str, value: Any) -> DualValue:
    if isinstance(value, DualValue):
        return value
    dual = DualValue(array=value) if isinstance(value, np.ndarray | TopkLogprobs) else DualValue(values=value)
    object.__setattr__(model, slot, dual)
    return dual
