"""Queue of the operations of one training client: they are sent in call order, under consecutive seq_ids.

An operation gets its seq_id when its turn comes, so that a cancelled or rejected operation leaves no gap.

Servers count differently: some count an operation that they rejected, an operation that failed, or a load, and others
do not. After such an operation the queue is unsettled: the seq_id that the server expects is a guess. The next
operation keeps its turn until it has its result. If the server expects another seq_id, the operation is resent under
that seq_id.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs

from tinkerwire_base.errors import PrecedingOperationError

from .._futures.operation_record import OperationRecord, current_operation


@attrs.define
class Ticket:
    """An operation's place in the queue; issued when the user calls, on the loop thread, in call order."""

    position: int
    previous: asyncio.Future[None] | None
    """Done when the operation before it has released its turn."""
    released: asyncio.Future[None]


@attrs.frozen
class PrecedingFailure:
    """A failed operation that later operations depend on."""

    position: int
    error: BaseException
    record: OperationRecord


class OperationQueue:
    """First-in, first-out queue of the operations on one model, and the seq_ids of their requests.

    Used on one event loop. Methods about seq_ids are called only while an operation holds its turn, except
    :meth:`set_next`, which may also follow from a result that arrives late.
    """

    def __init__(self) -> None:
        self.next_seq_id = 1
        self.is_settled = True
        """True if the server certainly expects :attr:`next_seq_id`."""
        self._released_seq_id: int | None = None
        self._uncertain_seq_id: int | None = None
        self._sent = 0
        self._sent_at_last_set = 0
        self._last_released: asyncio.Future[None] | None = None
        self._position = 0
        self._rejected_until = 0
        self._failure: PrecedingFailure | None = None

    def enqueue(self) -> Ticket:
        """Take the next place in the queue."""
        self._position += 1
        ticket = Ticket(
            position=self._position, previous=self._last_released, released=asyncio.get_running_loop().create_future()
        )
        self._last_released = ticket.released
        if self._failure is not None and not self._failure.record.is_error_retrieved:
            # Until the error is retrieved, the user cannot know that later operations depend on a failed one.
            self._rejected_until = self._position
        return ticket

    def reject_queued(self, ticket: Ticket, error: BaseException) -> None:
        """Reject the operations after ``ticket`` that are started before its error is retrieved; only in its turn."""
        self._failure = PrecedingFailure(position=ticket.position, error=error, record=current_operation())
        self._rejected_until = self._position

    @asynccontextmanager
    async def acquire(self, ticket: Ticket) -> AsyncIterator[None]:
        """Wait until all operations before ``ticket`` are sent, and release the turn when the block ends.

        Raises:
            PrecedingOperationError: an operation that this one depends on failed.
        """
        try:
            if ticket.previous is not None and not ticket.previous.done():
                record = current_operation()
                record.queue = self
                await asyncio.shield(ticket.previous)
                record.queue = None
            failure = self._failure
            if failure is not None and failure.position < ticket.position <= self._rejected_until:
                raise PrecedingOperationError(
                    f"{current_operation().kind or 'the operation'} was not sent, because {failure.record.kind} before "
                    f"it failed: {failure.error!r:.300}; retrieve that error, then repeat both operations"
                ) from failure.error
            yield
        finally:
            _release(ticket)

    @property
    def sent(self) -> int:
        """Number of requests so far."""
        return self._sent

    def allocate_seq_id(self) -> int:
        """Return the seq_id of the next request."""
        seq_id = self.next_seq_id
        self.next_seq_id += 1
        self._sent += 1
        return seq_id

    def release_seq_id(self, seq_id: int) -> None:
        """Free the seq_id of an operation that the server certainly rejected, for the next operation."""
        self.next_seq_id = self._released_seq_id = seq_id
        self.is_settled = False

    def mark_uncertain(self, seq_id: int) -> None:
        """Note that the server may have accepted the operation of a seq_id."""
        self._uncertain_seq_id = seq_id
        self.is_settled = False

    def fallback_seq_id(self, seq_id: int) -> int | None:
        """Return the other seq_id that the server may expect, if there is a reason for one.

        The next seq_id if the server counted a rejected operation, the previous seq_id if an uncertain operation
        never arrived.
        """
        if seq_id == self._released_seq_id:
            return seq_id + 1
        if self._uncertain_seq_id is not None and seq_id == self._uncertain_seq_id + 1:
            return self._uncertain_seq_id
        return None

    def set_next(self, seq_id: int, sent: int) -> bool:
        """Continue with the seq_id that the server expects.

        Args:
            seq_id: the expected seq_id.
            sent: :attr:`sent` when the rejected request was sent.

        Returns:
            False, without any effect, if a request after that one has set the next seq_id before.
        """
        if sent <= self._sent_at_last_set:
            return False
        self.next_seq_id, self._sent_at_last_set = seq_id, self._sent
        self._released_seq_id = self._uncertain_seq_id = None
        self.is_settled = False
        return True


def _release(ticket: Ticket) -> None:
    """Release a turn once all turns before it are over: a cancelled operation must not let the next one overtake."""
    if ticket.previous is None or ticket.previous.done():
        ticket.released.set_result(None)
    else:
        ticket.previous.add_done_callback(lambda _: ticket.released.set_result(None))
