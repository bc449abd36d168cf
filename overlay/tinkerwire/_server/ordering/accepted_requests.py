"""Accepted requests by number, also in the journal."""

from __future__ import annotations

import attrs

from tinkerwire._server.bounded_table import BoundedTable
from tinkerwire._server.ordering.seq_ids import AcceptedRequest
from tinkerwire._server.storage.journal import Journal


class JournaledRequests(BoundedTable[tuple[str, int], AcceptedRequest]):
    """A table of accepted requests, each recorded in the journal while the table has it.

    Args:
        max_bytes: maximum memory of all entries.
        kind: name of the table in the journal.
        journal: the journal.
    """

    def __init__(self, max_bytes: int, kind: str, journal: Journal) -> None:
        super().__init__(max_bytes, lambda key, _: journal.remove_accepted(kind, *key), lambda key, value: value)
        self._kind = kind
        self._journal = journal

    def put(self, key: tuple[str, int], value: AcceptedRequest, content_bytes: int = 0) -> None:
        """Add a request as the newest and record it."""
        self._journal.add_accepted(self._kind, *key, attrs.astuple(value))
        super().put(key, value, content_bytes)

    def restore(self) -> None:
        """Add the requests of the journal."""
        for owner, number, key, fingerprint, assigned_id in self._journal.read_accepted(self._kind):
            accepted = AcceptedRequest(key, fingerprint, assigned_id)
            super().put((owner, number), accepted, accepted.content_bytes)
