"""One sequence of operations per training client: sent in the order in which they were asked for.

Wire ids are given out when an operation's turn comes, so that one that was cancelled, or that the server
refused without taking it up, leaves no gap behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs

from tinkerwire_base.errors import APIConnectionError, APIStatusError, TinkerError

from ..futures.tracking import current

DOUBTFUL = frozenset({408, 409})
"""User errors after which the request may have been taken up all the same."""


@attrs.define
class Turn:
    """An operation's place in the line; made when the user calls, on the loop thread, in call order."""

    before: asyncio.Future[None] | None
    done: asyncio.Future[None]


class Lane:
    """The line of operations on one model. Used on one event loop."""

    def __init__(self) -> None:
        self.next_seq_id = 1
        self._refused = self._doubted = 0
        self._last: asyncio.Future[None] | None = None

    def queue(self) -> Turn:
        """Take the next place in the line."""
        turn = Turn(before=self._last, done=asyncio.get_running_loop().create_future())
        self._last = turn.done
        return turn

    @asynccontextmanager
    async def hold(self, turn: Turn) -> AsyncIterator[None]:
        """Wait for everything before ``turn`` to be sent, and let the next one go when the block ends, however."""
        try:
            if turn.before is not None and not turn.before.done():
                track = current()
                track.line = self
                await asyncio.shield(turn.before)
                track.line = None
            yield
        finally:
            _pass_on(turn)

    def take_id(self) -> int:
        """The seq_id of the request that is about to be sent; only while holding the turn."""
        seq_id = self.next_seq_id
        self.next_seq_id += 1
        return seq_id

    def give_back(self, seq_id: int) -> None:
        """Free an id that the server certainly did not take up, for the next operation; only while holding the turn."""
        self.next_seq_id = self._refused = seq_id

    def doubt(self, seq_id: int) -> None:
        """Note that nobody here knows whether the server took up the operation of an id."""
        self._doubted = seq_id

    def second_choice(self, seq_id: int) -> int | None:
        """The other id that the server may expect: past one that it refused and counted, or one that never arrived."""
        if seq_id == self._refused:
            return seq_id + 1
        return self._doubted if self._doubted and seq_id == self._doubted + 1 else None

    def go_to(self, seq_id: int) -> None:
        """Go on with an id, after which there is no second choice; only while holding the turn."""
        self.next_seq_id = seq_id
        self._refused = self._doubted = 0


def is_refusal(fault: TinkerError) -> bool:
    """Whether the server certainly did not take a request up: it said so, or could not even be connected to."""
    if getattr(fault, "is_of_credential", False):
        return True
    if isinstance(fault, APIStatusError):
        return 300 <= fault.status_code < 500 and fault.status_code not in DOUBTFUL
    return isinstance(fault, APIConnectionError) and not getattr(fault, "may_be_sent", True)


def _pass_on(turn: Turn) -> None:
    """Mark a turn as over once all before it are: a cancelled one must not let the next overtake the previous."""
    if turn.before is None or turn.before.done():
        turn.done.set_result(None)
    else:
        turn.before.add_done_callback(lambda _: turn.done.set_result(None))
