"""One sequence of operations per training client: sent in the order in which they were asked for.

Each operation gets its seq_id when its turn comes, so that one that was cancelled, or that the server rejected
without running it, leaves no gap.

Servers count differently: some count an operation that they rejected, or that failed, or a load, and some do not. After
such an operation the lane is unsettled. The next operation then keeps its turn until its result is there, and if the
server expects another number, the operation is sent once more under that number.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs

from tinkerwire_base.errors import APIConnectionError, APIStatusError, PrecedingOperationError, TinkerError

from .._futures.operation_record import OperationRecord, current

DOUBTFUL = frozenset({408, 409})
"""User errors after which the request may have been taken up all the same."""


@attrs.define
class Ticket:
    """An operation's place in the line; made when the user calls, on the loop thread, in call order."""

    position: int
    before: asyncio.Future[None] | None
    done: asyncio.Future[None]


@attrs.frozen
class Failure:
    """A failed operation on which later ones build."""

    position: int
    error: BaseException
    track: OperationRecord


class OperationQueue:
    """The line of operations on one model. Used on one event loop."""

    def __init__(self) -> None:
        self.next_seq_id = 1
        self.is_settled = True
        """True if the server certainly expects :attr:`next_seq_id`."""
        self._refused = self._doubted = 0
        self._realigned_at = 0
        self._sent = 0
        self._last: asyncio.Future[None] | None = None
        self._position = 0
        self._rejected_until = 0
        self._failure: Failure | None = None

    def queue(self) -> Ticket:
        """Take the next place in the line."""
        self._position += 1
        turn = Ticket(position=self._position, before=self._last, done=asyncio.get_running_loop().create_future())
        self._last = turn.done
        if self._failure is not None and not self._failure.track.is_error_retrieved:
            # Until the error is retrieved, the user cannot know that later operations build on nothing.
            self._rejected_until = self._position
        return turn

    def reject_queued(self, turn: Ticket, error: BaseException) -> None:
        """Reject what was asked for after ``turn`` and before its error is retrieved; only while holding the turn."""
        self._failure = Failure(position=turn.position, error=error, track=current())
        self._rejected_until = self._position

    @asynccontextmanager
    async def hold(self, turn: Ticket) -> AsyncIterator[None]:
        """Wait for everything before ``turn`` to be sent, and let the next one go when the block ends, however."""
        try:
            if turn.before is not None and not turn.before.done():
                track = current()
                track.line = self
                await asyncio.shield(turn.before)
                track.line = None
            failure = self._failure
            if failure is not None and failure.position < turn.position <= self._rejected_until:
                raise PrecedingOperationError(
                    f"{current().kind or 'the operation'} was not sent, because {failure.track.kind} before it failed: "
                    f"{failure.error!r:.300}; retrieve that error, then repeat both"
                ) from failure.error
            yield
        finally:
            _pass_on(turn)

    def take_id(self) -> int:
        """The seq_id of the request that is about to be sent; only while holding the turn."""
        seq_id = self.next_seq_id
        self.next_seq_id += 1
        self._sent += 1
        return seq_id

    @property
    def sent(self) -> int:
        """The number of requests so far; :meth:`realign` wants that of the request that was rejected."""
        return self._sent

    def give_back(self, seq_id: int) -> None:
        """Free an id that the server certainly did not take up, for the next operation; only while holding the turn."""
        self.next_seq_id = self._refused = seq_id
        self.is_settled = False

    def doubt(self, seq_id: int) -> None:
        """Note that nobody here knows whether the server took up the operation of an id."""
        self._doubted = seq_id
        self.is_settled = False

    def second_choice(self, seq_id: int) -> int | None:
        """The other id that the server may expect: past one that it refused and counted, or one that never arrived."""
        if seq_id == self._refused:
            return seq_id + 1
        return self._doubted if self._doubted and seq_id == self._doubted + 1 else None

    def realign(self, seq_id: int, sent: int) -> bool:
        """Continue with the number that the server expects, unless a request after number ``sent`` did so before."""
        if sent <= self._realigned_at:
            return False
        self.next_seq_id, self._realigned_at = seq_id, self._sent
        self._refused = self._doubted = 0
        self.is_settled = False
        return True


def is_refusal(error: TinkerError) -> bool:
    """Whether the server certainly did not take a request up: it said so, or could not even be connected to."""
    if error.from_credential_refresh:
        return True
    if isinstance(error, APIStatusError):
        return 300 <= error.status_code < 500 and error.status_code not in DOUBTFUL
    return isinstance(error, APIConnectionError) and error.may_have_been_sent is False


def _pass_on(turn: Ticket) -> None:
    """Mark a turn as over once all before it are: a cancelled one must not let the next overtake the previous."""
    if turn.before is None or turn.before.done():
        turn.done.set_result(None)
    else:
        turn.before.add_done_callback(lambda _: turn.done.set_result(None))
