"""The order of a model's operations, and what is a resend rather than a second order."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

import attrs

from tinkerwire.local.answers import conflict
from tinkerwire.local.turns import Job, Turns

T = TypeVar("T")
MOST_REMEMBERED = 4096


@attrs.frozen
class _Accepted(Generic[T]):
    key: str | None
    fingerprint: bytes
    result: T


class Resends(Generic[T]):
    """Knows requests again by a number: same number and same key or bytes, same result.

    Args:
        counter: what the number counts, for the text of conflicts.
    """

    def __init__(self, counter: str) -> None:
        self._counter = counter
        self._accepted: OrderedDict[int, _Accepted[T]] = OrderedDict()

    def find(self, number: int, key: str | None, fingerprint: bytes) -> T | None:
        """The result of the request if it was accepted before, None for a new number.

        Raises:
            Refusal: 409 when another request was accepted under the number.
        """
        earlier = self._accepted.get(number)
        if earlier is None:
            return None
        if earlier.fingerprint != fingerprint and (key is None or earlier.key != key):
            raise conflict(f"{self._counter} {number} was used by another request; take the next free one")
        return earlier.result

    def accept(self, number: int, key: str | None, fingerprint: bytes, result: T) -> None:
        """Remember a request under its number."""
        self._accepted[number] = _Accepted(key, fingerprint, result)
        if len(self._accepted) > MOST_REMEMBERED:
            self._accepted.popitem(last=False)


class Sequence(Generic[T]):
    """The seq_ids of one model: each is one operation, and operations run in their order.

    Args:
        go: takes a job whose turn it is.
        strict: whether each seq_id must follow the one before it at once; else one that is ahead is held back.
        gap_wait_s: seconds for which it is; see :class:`~tinkerwire.local.turns.Turns`.
    """

    def __init__(self, go: Callable[[Job], None], *, strict: bool, gap_wait_s: float) -> None:
        self._strict = strict
        self._resends: Resends[T] = Resends("seq_id")
        self.turns = Turns(go, 0.0 if strict else gap_wait_s)

    def find(self, seq_id: int, key: str | None, fingerprint: bytes) -> T | None:
        """The result of a resend, None for a request that may be accepted now.

        Raises:
            Refusal: 409 for a seq_id that comes too late, one that another request has, and in strict sequences one
                that is ahead.
        """
        earlier = self._resends.find(seq_id, key, fingerprint) if seq_id > 0 else None
        expected = self.turns.passed + 1
        if earlier is not None or expected == seq_id:
            return earlier
        if seq_id < expected:
            raise conflict(f"seq_id {seq_id} is too low: expected {expected} or higher; seq_ids only go up")
        if self._strict:
            raise conflict(f"seq_id {seq_id} is too high: expected {expected}; send the operations in order")
        return None

    def accept(self, seq_id: int, key: str | None, fingerprint: bytes, result: T) -> None:
        """Remember a request under its seq_id."""
        self._resends.accept(seq_id, key, fingerprint, result)
