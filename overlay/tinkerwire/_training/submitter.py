"""Submission of operations one after the other, with recovery when the server expects another seq_id."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tinkerwire_base.call import Call
from tinkerwire_base.errors import ClientClosedError, ConflictError, SequenceConflictError, TinkerError
from tinkerwire_generated import models

from .._connection.connection import Connection
from .._futures.deadline import clamp_timeout, remaining_s
from .._futures.operation_record import current_operation
from .._wire.server_futures import Submission
from .operation_queue import OperationQueue
from .sequence_conflict import sequence_conflict
from .submission import submit
from .submission_outcome import SubmissionAttempts, SubmissionOutcome

T = TypeVar("T")
RequestBuilder = Callable[[str, int], Call["models.UntypedAPIFuture"]]
"""Builds the request of an operation from the model's id and the operation's seq_id."""
ResultPoller = Callable[[Submission], Coroutine[Any, Any, T]]
"""Polls the result of a submitted operation."""
SUBMISSION_GRACE_S = 5.0
"""Time after its deadline in which a request that is being sent may still complete."""


class OperationSubmitter:
    """Submits the operations on one model and starts to poll their results.

    Every submission ends in one row of the table. :meth:`SubmissionAttempts.classify` returns the outcome of a failed
    one. The expected seq_id is read from the server's response, or is :meth:`OperationQueue.fallback_seq_id`.

    | outcome   | expected seq_id | seq_id                                    | operation                     |
    |-----------|-----------------|-------------------------------------------|-------------------------------|
    | ACCEPTED  |                 | is used                                   | is polled                     |
    | REJECTED  | unknown         | is released for the next operation        | fails                         |
    | REJECTED  | known           | is replaced by the expected one           | is resent once                |
    | UNCERTAIN | unknown         | may be used, the next operation skips it  | fails                         |
    | UNCERTAIN | lower           | is replaced by the expected one           | is resent once                |
    | UNCERTAIN | higher          | the next operation uses the expected one  | fails: the server may run it  |
    """

    def __init__(self, connection: Connection, queue: OperationQueue) -> None:
        self._connection = connection
        self._queue = queue

    async def start(
        self,
        model_id: str,
        build: RequestBuilder,
        poll: ResultPoller[T],
        raise_immediately: tuple[type[TinkerError], ...] = (),
    ) -> asyncio.Task[T]:
        """Submit an operation and start to poll its result; only while holding the turn.

        In an unsettled queue, wait for the result: while the server may still reject the seq_id, no later operation
        is sent, so that this one can be resent in its place.

        Args:
            model_id: id of the model.
            build: builds the request.
            poll: polls the result.
            raise_immediately: errors that are not retried.
        """
        task = await self._submit(model_id, build, poll, raise_immediately)
        if not self._queue.is_settled:
            try:
                await task
            except SequenceConflictError as conflict:
                if conflict.expected_seq_id is None:
                    raise
                task = await self._submit(model_id, build, poll, raise_immediately)
                await task
            self._queue.is_settled = True
        return task

    async def _submit(
        self,
        model_id: str,
        build: RequestBuilder,
        poll: ResultPoller[T],
        raise_immediately: tuple[type[TinkerError], ...],
    ) -> asyncio.Task[T]:
        """Send the request of an operation; complete it even when cancelled, because half a request leaves a gap."""
        sending = asyncio.create_task(self._send(model_id, build, raise_immediately))
        try:
            await asyncio.wait([sending])
        except asyncio.CancelledError:
            try:
                if not self._connection.closed:
                    # A transport of the user need not respect its time limit.
                    await asyncio.wait([sending], timeout=clamp_timeout(remaining_s() + SUBMISSION_GRACE_S))
            finally:
                # Its result is not used.
                sending.add_done_callback(lambda task: None if task.cancelled() else task.exception())
                sending.cancel()
            raise
        seq_id, submission = sending.result()
        # The task calls poll: a task that is cancelled before it starts would drop a coroutine that exists already.
        return asyncio.create_task(self._poll(poll, submission, seq_id, self._queue.sent))

    async def _send(
        self, model_id: str, build: RequestBuilder, raise_immediately: tuple[type[TinkerError], ...]
    ) -> tuple[int, Submission]:
        """Send an operation by the table above; return its seq_id and its submission."""
        queue, is_resent = self._queue, False
        while True:
            seq_id = queue.allocate_seq_id()
            fallback = queue.fallback_seq_id(seq_id)
            attempts = SubmissionAttempts(current_operation())
            immediate = raise_immediately if fallback is None else (ConflictError,)
            try:
                return seq_id, await submit(self._connection, build(model_id, seq_id), seq_id, attempts.add, immediate)
            except ClientClosedError:
                raise
            except Exception as error:
                expected = _expected_seq_id(error, None if attempts.may_be_accepted else fallback)
                outcome = attempts.classify(error, expected)
                if expected is None:
                    if outcome is SubmissionOutcome.REJECTED:
                        queue.release_seq_id(seq_id)
                    else:
                        queue.mark_uncertain(seq_id)
                    raise
                queue.set_next(expected, queue.sent)
                if is_resent or (outcome is SubmissionOutcome.UNCERTAIN and expected > seq_id):
                    raise
                is_resent = True

    async def _poll(self, poll: ResultPoller[T], submission: Submission, seq_id: int, sent: int) -> T:
        """Poll a result; if the result is a conflict, continue with the seq_id that the server expects."""
        try:
            return await poll(submission)
        except TinkerError as error:
            self._queue.is_settled = False
            conflict = sequence_conflict(error, seq_id)
            if conflict is None:
                raise
            if conflict.expected_seq_id is not None:
                self._queue.set_next(conflict.expected_seq_id, sent)
            raise conflict from error


def _expected_seq_id(error: Exception, fallback: int | None) -> int | None:
    """Return the seq_id that the server expects, if it rejected the one of the request and it is known."""
    if isinstance(error, SequenceConflictError) and error.expected_seq_id is not None:
        return error.expected_seq_id
    return fallback if isinstance(error, ConflictError) else None
