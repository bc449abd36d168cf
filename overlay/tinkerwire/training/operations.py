"""What is done to one model: in line, submitted under consecutive numbers, polled side by side."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import attrs

from tinkerwire_base.call import Call
from tinkerwire_base.checks import expect_metadata
from tinkerwire_base.errors import APIError, ClientClosedError, ConflictError, TinkerError
from tinkerwire_generated.models import Datum, ForwardBackwardInput, ForwardBackwardOutput, LossFnType, UntypedAPIFuture

from ..futures.future import APIFuture
from ..futures.tracking import current
from ..polling import Poll, Promise
from ..sending.backpressure import Traffic
from ..sending.connection import Connection
from ..usage import Meter, of_batch
from .chunking import ChunkLimits, split
from .combining import combine
from .losses import ArrayKind, CustomLoss, CustomLossFn
from .sequencing import Lane, is_refusal
from .submission import submit

T = TypeVar("T")
CallOf = Callable[[str, int], Call[UntypedAPIFuture]]
"""Makes the call of an operation from the model's id and the operation's seq_id."""
CallOfPart = Callable[[str, int, ForwardBackwardInput], Call[UntypedAPIFuture]]
"""The same for one chunk of a batch."""
Polls = list[asyncio.Task[ForwardBackwardOutput]]
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
        self._lane = Lane()
        self.meter = Meter(connection.meter)
        self._model_id: str | None = None
        self._creation_fault: Exception | None = None
        self.creation: APIFuture[str] = connection.start(lambda: self._create(create), "CreateModel")

    def start(self, kind: str, call: CallOf, result_type: type[T]) -> APIFuture[T]:
        """Run an operation now; ``kind`` is its name in the server's metrics."""
        return self._connection.start(lambda: self.run(kind, call, result_type), kind)

    async def run(
        self, kind: str, call: CallOf, result_type: type[T], not_here: tuple[type[TinkerError], ...] = ()
    ) -> T:
        """An operation from its place in the line to its result; faults of ``not_here`` are not sent again for."""
        async with self._lane.hold(self._lane.queue()):
            asked = await self._submit(self._created(), call, not_here)
        return await self.poll(asked, kind, result_type)

    def start_batch(
        self,
        kind: str,
        call: CallOfPart,
        data: Sequence[Datum],
        loss_fn: LossFnType,
        config: Mapping[str, float | str] | None,
    ) -> APIFuture[ForwardBackwardOutput]:
        """Run an operation on a batch now, in as many requests as the limits ask for, none other between them."""
        expect_metadata("loss_fn_config", config)
        whole = ForwardBackwardInput(
            data=checked(data), loss_fn=loss_fn, loss_fn_config=dict(config) if config else None
        )
        return self._connection.start(lambda: self._run_batch(kind, call, whole), kind)

    def start_custom(
        self,
        forward: CallOfPart,
        backward: CallOfPart,
        data: Sequence[Datum],
        loss_fn: CustomLossFn,
        arrays: ArrayKind | None,
    ) -> APIFuture[ForwardBackwardOutput]:
        """Run a forward and a backward operation with a loss of the user's between them, none other between those."""
        loss = CustomLoss(checked(data), loss_fn, arrays)
        return self._connection.start(lambda: self._run_custom(forward, backward, loss), "ForwardBackward")

    async def run_now(self, model_id: str, kind: str, call: CallOf, result_type: type[T]) -> T:
        """An operation that is part of the creation, whose place in the line it uses."""
        return await self.poll(await self._submit(model_id, call), kind, result_type)

    async def poll(
        self,
        asked: UntypedAPIFuture,
        kind: str,
        result_type: type[T],
        in_place_of_null: Mapping[str, Any] | None = None,
    ) -> T:
        """The result of a promise of the server."""
        retry = self._connection.retry
        promise = Promise(
            request_id=asked.request_id,
            request_type=kind,
            result_type=result_type,
            traffic=Traffic.TRAINING_FUTURES,
            deadline_s=retry.time_limit,
            in_place_of_null=in_place_of_null or {},
        )
        return await Poll(self._connection, promise, retry).result()

    async def _create(self, create: Callable[[Operations], Awaitable[str]]) -> str:
        async with self._lane.hold(self._lane.queue()):
            try:
                self._model_id = await create(self)
            except Exception as fault:
                self._creation_fault = fault
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
            fault = copy.copy(cause) if isinstance(cause, TinkerError) else TinkerError(text)
            fault.args, fault.message = (text,), text
            raise fault from cause
        return self._model_id

    async def _submit(
        self, model_id: str, call: CallOf, not_here: tuple[type[TinkerError], ...] = ()
    ) -> UntypedAPIFuture:
        """Send the request of an operation, to its end also when that is cancelled: half a request leaves a gap."""
        sending = asyncio.create_task(self._send(model_id, call, not_here))
        try:
            await asyncio.wait([sending])
        except asyncio.CancelledError:
            try:
                if not self._connection.closed:
                    await asyncio.wait([sending])
            finally:
                # Nobody hears how it ends.
                sending.add_done_callback(lambda task: None if task.cancelled() else task.exception())
                sending.cancel()
            raise
        return sending.result()

    async def _send(self, model_id: str, call: CallOf, not_here: tuple[type[TinkerError], ...]) -> UntypedAPIFuture:
        """Send it under the next number, which is free again only if the server certainly did not take it up."""
        seq_id = self._lane.take_id()
        second = self._lane.second_choice(seq_id)
        track, is_certain = current(), True

        def note(fault: TinkerError, _: float) -> None:
            nonlocal is_certain
            is_certain = is_certain and is_refusal(fault)
            track.may_be_taken = track.may_be_taken or not is_certain

        try:
            at_once = not_here if second is None else (ConflictError,)
            return await submit(self._connection, call(model_id, seq_id), note, at_once)
        except APIError as fault:
            if is_certain and second is not None and isinstance(fault, ConflictError):
                self._lane.go_to(second)
                return await self._send(model_id, call, not_here)
            if is_certain and is_refusal(fault):
                self._lane.give_back(seq_id)
            else:
                self._lane.doubt(seq_id)
            raise
        except ClientClosedError:
            raise
        except Exception:
            # It did not get as far as the wire this time.
            if is_certain:
                self._lane.give_back(seq_id)
            raise

    async def _run_batch(self, kind: str, call: CallOfPart, whole: ForwardBackwardInput) -> ForwardBackwardOutput:
        async with _polls() as polls:
            async with self._lane.hold(self._lane.queue()):
                await self._submit_batch(self._created(), kind, call, whole, polls)
            return combine(await asyncio.gather(*polls))

    async def _run_custom(self, forward: CallOfPart, backward: CallOfPart, loss: CustomLoss) -> ForwardBackwardOutput:
        async with _polls() as polls:
            # The place in the line is kept while the user's function runs: what was asked for later goes out later.
            async with self._lane.hold(self._lane.queue()):
                model_id = self._created()
                async with _polls() as first:
                    await self._submit_batch(model_id, "Forward", forward, loss.forward_input(), first)
                    evaluated = await loss.evaluate(combine(await asyncio.gather(*first)), self._lane)
                await self._submit_batch(model_id, "ForwardBackward", backward, loss.backward_input(evaluated), polls)
            return loss.result(evaluated, combine(await asyncio.gather(*polls)))

    async def _submit_batch(
        self, model_id: str, kind: str, call: CallOfPart, whole: ForwardBackwardInput, polls: Polls
    ) -> None:
        """Send a batch in order, and add the polls of its results; only while holding the turn."""
        limits = self._limits.within((await self._connection.dialect()).config)
        chunks = list(split(whole.data, limits))
        current().total = len(chunks)
        for chunk in chunks:
            part = attrs.evolve(whole, data=chunk)
            asked = await self._submit(model_id, lambda m, s, part=part: call(m, s, part))  # type: ignore[misc]
            polls.append(asyncio.create_task(self._poll_chunk(asked, kind, chunk)))

    async def _poll_chunk(self, asked: UntypedAPIFuture, kind: str, chunk: list[Datum]) -> ForwardBackwardOutput:
        output = await self.poll(asked, kind, ForwardBackwardOutput, NO_METRICS)
        self.meter.add(of_batch(chunk, backward=kind == "ForwardBackward"))
        return output


@asynccontextmanager
async def _polls() -> AsyncIterator[Polls]:
    """The polls of a batch, none of which outlives the block."""
    polls: Polls = []
    try:
        yield polls
    finally:
        for poll in polls:
            poll.cancel()
        await asyncio.gather(*polls, return_exceptions=True)


def checked(data: Sequence[Datum]) -> list[Datum]:
    """The datums of a batch. TypeError for what is none, ValueError without any."""
    if isinstance(data, Datum):
        raise TypeError("data: expected a list of datums, got one Datum")
    if not isinstance(data, Iterable):
        raise TypeError(f"data: expected a list of datums, got {type(data).__name__}")
    datums = list(data)
    if not datums:
        raise ValueError("data: no datums; give at least one")
    for position, datum in enumerate(datums):
        if not isinstance(datum, Datum):
            raise TypeError(f"data[{position}]: expected a Datum, got {type(datum).__name__}")
    return datums
