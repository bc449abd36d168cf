"""What is done to one model: in line, submitted under consecutive numbers, polled side by side."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import attrs

from tinkerwire_base.call import Call
from tinkerwire_base.errors import APIError, ClientClosedError, ConflictError, SequenceConflictError, TinkerError
from tinkerwire_base.validators import require_optional_metadata
from tinkerwire_generated.models import (
    Datum,
    ForwardBackwardInput,
    ForwardBackwardOutput,
    LossFnType,
    OptimStepResponse,
    UntypedAPIFuture,
)

from .._connection.connection import Connection
from .._futures.deadline import deadline_error, is_late, library_seconds, time_left
from .._futures.future import APIFuture
from .._futures.operation_record import current
from .._polling.poller import PendingResult, Poll
from .._transport.address import is_tinker_service
from .._transport.backpressure import Traffic
from .._usage import UsageCounter
from .._wire.server_futures import Submission
from .batch_data import check_data
from .chunking import ChunkLimits, split
from .failures import UnretrievedFailures
from .losses.client_loss import ArrayKind, CustomLoss, CustomLossFn
from .metrics import MetricWarnings, read_metrics
from .operation_queue import OperationQueue, is_refusal
from .output_checks import check_all_or_none, check_outputs
from .request_size import request_size, size_around
from .result_merging import combine
from .sequence_conflict import sequence_conflict
from .submission import submit

T = TypeVar("T")
CallOf = Callable[[str, int], Call[UntypedAPIFuture]]
"""Makes the call of an operation from the model's id and the operation's seq_id."""
CallOfPart = Callable[[str, int, ForwardBackwardInput], Call[UntypedAPIFuture]]
"""The same for one chunk of a batch."""
LATE_S = 5.0
"""Time after its deadline in which a request that is being sent may still end by itself."""
Polls = list[asyncio.Task[T]]
TRAINING_STEPS = frozenset({"ForwardBackward", "OptimStep"})
CALL_NAMES: Mapping[str, str] = {"Forward": "forward", "ForwardBackward": "forward_backward"}
"""The call that each kind of batch is."""
NO_METRICS: Mapping[str, Any] = {"metrics": {}}
"""Some servers send null in place of metrics."""


class Operations:
    """The operations on one model, of which its creation is the first.

    Submissions go out one after the other, in the order in which they were asked for. Results are awaited side
    by side, so that a slow or failed one holds up nothing.
    """

    def __init__(
        self, connection: Connection, limits: ChunkLimits, create: Callable[[Operations], Awaitable[str]]
    ) -> None:
        self._connection = connection
        self._limits = limits
        self._lane = OperationQueue()
        self.meter = UsageCounter(connection.meter)
        self._metric_warnings = MetricWarnings()
        self.failures = UnretrievedFailures()
        self._model_id: str | None = None
        self._creation_fault: Exception | None = None
        self.creation: APIFuture[str] = connection.start(lambda: self._create(create), "CreateModel")

    def start(self, kind: str, call: CallOf, result_type: type[T]) -> APIFuture[T]:
        """Run an operation now; ``kind`` is its name in the server's metrics."""
        return self._connection.start(lambda: self._observed(self.run(kind, call, result_type)), kind)

    async def run(
        self, kind: str, call: CallOf, result_type: type[T], raise_immediately: tuple[type[TinkerError], ...] = ()
    ) -> T:
        """An operation from its place in the line to its result; faults of ``not_here`` are not sent again for."""

        async def poll(asked: Submission) -> T:
            return await self.poll(asked, kind, result_type)

        polls: Polls[T]
        async with _polls() as polls:
            async with self._lane.hold(self._lane.queue()):
                polls.append(await self._begin(self._created(), call, poll, raise_immediately))
                if kind == "LoadWeights" and not is_tinker_service(self._connection.base_url):
                    # Some servers do not count loads.
                    self._lane.is_settled = False
            return await polls[0]

    def start_batch(
        self,
        kind: str,
        call: CallOfPart,
        data: Sequence[Datum],
        loss_fn: LossFnType,
        config: Mapping[str, float | str] | None,
    ) -> APIFuture[ForwardBackwardOutput]:
        """Run an operation on a batch now, in as many requests as the limits ask for, none other between them."""
        require_optional_metadata("loss_fn_config", config)
        whole = ForwardBackwardInput(
            data=check_data(data), loss_fn=loss_fn, loss_fn_config=dict(config) if config else None
        )
        return self._connection.start(lambda: self._observed(self._run_batch(kind, call, whole)), kind)

    def start_custom(
        self,
        forward: CallOfPart,
        backward: CallOfPart,
        data: Sequence[Datum],
        loss_fn: CustomLossFn,
        arrays: ArrayKind | None,
    ) -> APIFuture[ForwardBackwardOutput]:
        """Run a forward and a backward operation with a loss of the user's between them, none other between those."""
        loss = CustomLoss(check_data(data), loss_fn, arrays)
        return self._connection.start(
            lambda: self._observed(self._run_custom(forward, backward, loss)), "ForwardBackward"
        )

    async def run_now(self, model_id: str, kind: str, call: CallOf, result_type: type[T]) -> T:
        """An operation that is part of the creation, whose place in the line it uses."""

        async def poll(asked: Submission) -> T:
            return await self.poll(asked, kind, result_type)

        return await (await self._begin(model_id, call, poll))

    async def poll(
        self,
        asked: Submission,
        kind: str,
        result_type: type[T],
        null_defaults: Mapping[str, Any] | None = None,
    ) -> T:
        """Return the result of an operation that was submitted."""
        retry = self._connection.retry
        promise = PendingResult(
            submission=asked,
            request_type=kind,
            result_type=result_type,
            traffic=Traffic.TRAINING_FUTURES,
            null_defaults=null_defaults or {},
        )
        result = await Poll(self._connection, promise, retry).result()
        if isinstance(result, OptimStepResponse) and result.metrics:
            metrics = read_metrics(result.metrics, self._metric_warnings.warn)
            return result.model_copy(update={"metrics": metrics})
        return result

    async def _create(self, create: Callable[[Operations], Awaitable[str]]) -> str:
        async with self._lane.hold(self._lane.queue()):
            try:
                self._model_id = await create(self)
            except asyncio.CancelledError:
                if is_late():
                    self._creation_fault = deadline_error()
                raise
            except Exception as error:
                self._creation_fault = error
                raise
        return self._model_id

    def _created(self) -> str:
        """The model's id once its creation is over. Raises its error when that failed."""
        if self._model_id is None:
            self.creation.heard()
            why = self._creation_fault or "that was cancelled"
            text = f"the model of this client was not created: {why}"
            # Of the class of the cause, so that whoever catches that class catches it here, too.
            cause = self._creation_fault
            error = copy.copy(cause) if isinstance(cause, TinkerError) else TinkerError(text)
            error.args, error.message = (text,), text
            raise error from cause
        return self._model_id

    async def _observed(self, work: Coroutine[Any, Any, T]) -> T:
        """Run an operation, and note its failure if it is one that trains the model."""
        try:
            result = await work
        except Exception as error:
            if current().kind in TRAINING_STEPS:
                self.failures.add(current(), error)
            raise
        if current().kind == "LoadWeights":
            self.failures.clear()
        return result

    async def _begin(
        self,
        model_id: str,
        call: CallOf,
        poll: Callable[[Submission], Coroutine[Any, Any, T]],
        raise_immediately: tuple[type[TinkerError], ...] = (),
    ) -> asyncio.Task[T]:
        """Submit an operation, and start to poll its result; only while holding the turn.

        In an unsettled lane this returns with the result: no later operation is on its way while the server may still
        reject the number of this one, so that the operation can be sent again in its place.
        """
        task = await self._submit(model_id, call, poll, raise_immediately)
        if not self._lane.is_settled:
            try:
                await task
            except SequenceConflictError as conflict:
                if conflict.expected_seq_id is None:
                    raise
                task = await self._submit(model_id, call, poll, raise_immediately)
                await task
            self._lane.is_settled = True
        return task

    async def _polled(
        self, poll: Callable[[Submission], Coroutine[Any, Any, T]], asked: Submission, seq_id: int, sent: int
    ) -> T:
        """Poll a result. If the server rejects the number of the operation only now, later ones take the right one."""
        try:
            return await poll(asked)
        except TinkerError as error:
            self._lane.is_settled = False
            conflict = sequence_conflict(error, seq_id)
            if conflict is None:
                raise
            if conflict.expected_seq_id is not None:
                self._lane.realign(conflict.expected_seq_id, sent)
            raise conflict from error

    async def _submit(
        self,
        model_id: str,
        call: CallOf,
        poll: Callable[[Submission], Coroutine[Any, Any, T]],
        raise_immediately: tuple[type[TinkerError], ...],
    ) -> asyncio.Task[T]:
        """Send the request of an operation, to its end also when that is cancelled: half a request leaves a gap."""
        sending = asyncio.create_task(self._send(model_id, call, raise_immediately))
        try:
            await asyncio.wait([sending])
        except asyncio.CancelledError:
            try:
                if not self._connection.closed:
                    # A transport of the user's need not keep to the time that it is given.
                    await asyncio.wait([sending], timeout=library_seconds(time_left() + LATE_S))
            finally:
                # Its result is not used.
                sending.add_done_callback(lambda task: None if task.cancelled() else task.exception())
                sending.cancel()
            raise
        seq_id, asked = sending.result()
        # The poll is called within the task: a task that is cancelled before it starts would drop its coroutine.
        return asyncio.create_task(self._polled(poll, asked, seq_id, self._lane.sent))

    async def _send(
        self, model_id: str, call: CallOf, raise_immediately: tuple[type[TinkerError], ...]
    ) -> tuple[int, Submission]:
        """Send it under the next number, and once more under the one that the server expects instead.

        Returns:
            The number that the server took, and its promise.

        | the server          | attempts before it | the number                          | the operation        |
        |---------------------|--------------------|-------------------------------------|----------------------|
        | accepts it          | any                | is used                             | is polled            |
        | rejects the request | all rejected       | is free again                       | fails                |
        | expects another     | all rejected       | is replaced by the expected one     | is sent once more    |
        | expects a lower one | some uncertain     | is replaced by the expected one     | is sent once more    |
        | expects a higher one| some uncertain     | the next operation uses the expected| fails: it may have run|
        | fails in other ways | any                | may be used, the next one is fresh  | fails                |
        """
        lane, track, is_resent = self._lane, current(), False
        while True:
            seq_id = lane.take_id()
            other = lane.second_choice(seq_id)
            is_certain = True

            def note(error: TinkerError, _: float) -> None:
                nonlocal is_certain
                is_certain = is_certain and is_refusal(error)
                track.may_be_taken = track.may_be_taken or not is_certain

            at_once = raise_immediately if other is None else (ConflictError,)
            try:
                return seq_id, await submit(self._connection, call(model_id, seq_id), seq_id, note, at_once)
            except SequenceConflictError as error:
                expected = error.expected_seq_id
                if expected is None and is_certain:
                    expected = other
                if expected is None:
                    lane.doubt(seq_id)
                    raise
                lane.realign(expected, lane.sent)
                if is_resent or not (is_certain or expected < seq_id):
                    raise
                is_resent = True
            except APIError as error:
                if is_certain and other is not None and isinstance(error, ConflictError) and not is_resent:
                    lane.realign(other, lane.sent)
                    is_resent = True
                    continue
                if is_certain and is_refusal(error):
                    lane.give_back(seq_id)
                else:
                    lane.doubt(seq_id)
                raise
            except ClientClosedError:
                raise
            except Exception:
                # It did not get as far as the wire this time.
                if is_certain:
                    lane.give_back(seq_id)
                else:
                    lane.doubt(seq_id)
                raise

    async def _run_batch(self, kind: str, call: CallOfPart, whole: ForwardBackwardInput) -> ForwardBackwardOutput:
        async with _polls() as polls:
            async with self._lane.hold(self._lane.queue()):
                chunks = await self._submit_batch(self._created(), kind, call, whole, polls)
            return self._combine(chunks, await asyncio.gather(*polls))

    async def _run_custom(self, forward: CallOfPart, backward: CallOfPart, loss: CustomLoss) -> ForwardBackwardOutput:
        async with _polls() as polls:
            # The place in the line is kept while the user's function runs: what was asked for later goes out later.
            turn = self._lane.queue()
            async with self._lane.hold(turn):
                model_id = self._created()
                try:
                    async with _polls() as first:
                        inputs = loss.forward_input()
                        chunks = await self._submit_batch(model_id, "Forward", forward, inputs, first)
                        logprobs = self._combine(chunks, await asyncio.gather(*first))
                        evaluated = await loss.evaluate(logprobs, self._lane)
                    gradients = loss.backward_input(evaluated)
                    chunks = await self._submit_batch(model_id, "ForwardBackward", backward, gradients, polls)
                except BaseException as error:
                    # The operations queued behind it depend on gradients that do not exist.
                    self._lane.reject_queued(turn, error)
                    raise
            return loss.result(evaluated, self._combine(chunks, await asyncio.gather(*polls)))

    async def _submit_batch(
        self,
        model_id: str,
        kind: str,
        call: CallOfPart,
        whole: ForwardBackwardInput,
        polls: Polls[ForwardBackwardOutput],
    ) -> list[list[Datum]]:
        """Send a batch in order, and add the polls of its results; return its chunks. Only while holding the turn."""
        name, around = CALL_NAMES[kind], size_around(model_id, whole)
        dialect, rest = None, whole.data
        planned: list[list[Datum]] = []
        chunks: list[list[Datum]] = []
        first = 0
        while rest:
            known = await self._connection.dialect()
            if known is not dialect:
                # The first chunk may have shown in which form the server takes the others.
                dialect, size = known, request_size(known, name, whole.data)
                planned = list(split(rest, self._limits.within(known.config), size, around))
                current().total = len(chunks) + len(planned)
            chunk = planned.pop(0)
            rest = rest[len(chunk) :]
            chunks.append(chunk)
            part = attrs.evolve(whole, data=chunk)

            def call_chunk(model_id: str, seq_id: int, part: ForwardBackwardInput = part) -> Call[UntypedAPIFuture]:
                return call(model_id, seq_id, part)

            def poll(
                asked: Submission, chunk: list[Datum] = chunk, first: int = first
            ) -> Coroutine[Any, Any, ForwardBackwardOutput]:
                return self._poll_chunk(asked, kind, chunk, first)

            polls.append(await self._begin(model_id, call_chunk, poll))
            first += len(chunk)
        return chunks

    def _combine(
        self, chunks: Sequence[Sequence[Datum]], results: Sequence[ForwardBackwardOutput]
    ) -> ForwardBackwardOutput:
        """Combine the results of a batch's chunks."""
        check_all_or_none(chunks, results)
        return combine(results, [len(chunk) for chunk in chunks], self._metric_warnings.warn)

    async def _poll_chunk(self, asked: Submission, kind: str, chunk: list[Datum], first: int) -> ForwardBackwardOutput:
        output = await self.poll(asked, kind, ForwardBackwardOutput, NO_METRICS)
        check_outputs(chunk, first, output)
        if kind == "Forward" and not output.loss_fn_outputs:
            self._connection.throttled_log.warn(
                "no outputs", "Forward: the server gave no outputs for %d datums", len(chunk)
            )
        self.meter.add_batch(chunk, backward=kind == "ForwardBackward")
        return output


@asynccontextmanager
async def _polls() -> AsyncIterator[Polls[Any]]:
    """The polls of an operation, none of which outlives the block."""
    polls: Polls[Any] = []
    try:
        yield polls
    finally:
        for poll in polls:
            poll.cancel()
        await asyncio.gather(*polls, return_exceptions=True)
