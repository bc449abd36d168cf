"""The order of a model's operations, and what is a resend rather than a second order."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

import attrs

from tinkerwire.local.answers import conflict

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
    """The seq_ids of one model.

    Args:
        strict: whether each seq_id must follow the one before it at once; else gaps upward are accepted.
    """

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict
        self._resends: Resends[T] = Resends("seq_id")
        self.last = 0
        """Highest seq_id accepted; clients count from 1."""

    def find(self, seq_id: int, key: str | None, fingerprint: bytes) -> T | None:
        """The result of a resend, None for a request that may be accepted now.

        Raises:
            Refusal: 409 for a seq_id out of order, or one that another request has.
        """
        expected = self.last + 1
        if seq_id >= expected:
            if self._strict and seq_id > expected:
                raise conflict(f"seq_id {seq_id} is too high: expected {expected}; send the operations in order")
            return None
        earlier = self._resends.find(seq_id, key, fingerprint) if seq_id > 0 else None
        if earlier is None:
            raise conflict(f"seq_id {seq_id} is too low: expected {expected} or higher; seq_ids only go up")
        return earlier

    def accept(self, seq_id: int, key: str | None, fingerprint: bytes, result: T) -> None:
        """Count a request that runs now."""
        self.last = seq_id
        self._resends.accept(seq_id, key, fingerprint, result)
