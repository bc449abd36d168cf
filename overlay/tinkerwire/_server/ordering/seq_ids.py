"""The order of a model's operations, and what is a resend rather than a second order."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import attrs

from tinkerwire._server.http.responses import HttpError, conflict
from tinkerwire._server.ordering.reorder_buffer import Job, ReorderBuffer
from tinkerwire._server.storage.bounded import BoundedTable


@attrs.frozen
class Accepted:
    """A request that was accepted, and the id that it was given: of the request, or of what it created."""

    key: str | None
    fingerprint: bytes
    given_id: str


NumberedRequests: TypeAlias = BoundedTable[tuple[str, int], Accepted]
"""Accepted requests of all counters, by the counter's owner and the number."""


class Deduplicator:
    """Recognizes requests by a number: same number and same key or bytes, same id.

    Args:
        counter: what the number counts, for the text of conflicts.
        owner: whose counter it is: the id of a session, model or sampling session.
        requests: where accepted requests are kept.
    """

    def __init__(self, counter: str, owner: str, requests: NumberedRequests) -> None:
        self._counter = counter
        self._owner = f"{counter} {owner}"
        self._requests = requests

    def find(self, number: int, key: str | None, fingerprint: bytes) -> str | None:
        """Return the id that the request was given if it was accepted before, None for a new number.

        Raises:
            Refusal: 409 when another request was accepted under the number.
        """
        earlier = self._requests.get((self._owner, number))
        if earlier is None:
            return None
        if earlier.fingerprint != fingerprint and (key is None or earlier.key != key):
            raise self.conflict(number)
        return earlier.given_id

    def accept(self, number: int, key: str | None, fingerprint: bytes, given_id: str) -> None:
        """Keep a request under its number."""
        size = len(key or "") + len(fingerprint) + len(given_id)
        self._requests.put((self._owner, number), Accepted(key, fingerprint, given_id), size)

    def conflict(self, number: int) -> HttpError:
        """Return the refusal of a number that was used."""
        return conflict(f"{self._counter} {number} was used by another request; take the next free one")


class SeqIdLog:
    """The seq_ids of one model: each is one operation, and operations run in their order.

    Args:
        go: takes a job whose turn it is.
        resends: recognizes the model's requests by seq_id.
        strict: whether each seq_id must follow the one before it at once; else one that is ahead is held back.
        gap_wait_s: seconds for which it is; see :class:`~tinkerwire._server.ordering.reorder_buffer.Turns`.
    """

    def __init__(self, go: Callable[[Job], None], resends: Deduplicator, *, strict: bool, gap_wait_s: float) -> None:
        self._strict = strict
        self._resends = resends
        self.turns = ReorderBuffer(go, 0.0 if strict else gap_wait_s)

    def find(self, seq_id: int, key: str | None, fingerprint: bytes) -> str | None:
        """Return the request id of a resend, None for a request that may be accepted now.

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

    def accept(self, seq_id: int, key: str | None, fingerprint: bytes, request_id: str) -> None:
        """Keep a request under its seq_id."""
        self._resends.accept(seq_id, key, fingerprint, request_id)
