"""What is done to one model: in line, submitted under consecutive numbers, polled side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from tinkerwire_base.call import Call
from tinkerwire_base.errors import TinkerError
from tinkerwire_generated.models import Datum, ForwardBackwardInput, ForwardBackwardOutput, LossFnType, UntypedAPIFuture

from .backpressure import Traffic
from .chunking import ChunkLimits, split
from .combining import combine
from .connection import Connection, Submission
from .futures import APIFuture
from .polling import Poll, Promise
from .sequencing import Lane, is_refusal

T = TypeVar("T")
CallOf = Callable[[str, int], Call[UntypedAPIFuture]]
"""Makes the call of an operation from the model's id and the operation's seq_id."""
CallOfPart = Callable[[str, int, ForwardBackwardInput], Call[UntypedAPIFuture]]
"""The same for one chunk of a batch."""
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
        self._model_id: str | None = None
        self._creation_fault: Exception | None = None
        self.creation: APIFuture[str] = connection.start(self._create(create))

    def start(self, kind: str, call: CallOf, result_type: type[T]) -> APIFuture[T]:
        """Run an operation now; ``kind`` is its name in the server's metrics."""
        return self._connection.start(self.run(kind, call, result_type))

    async def run(self, kind: str, call: CallOf, result_type: type[T]) -> T:
        """An operation from its place in the line to its result."""
        async with self._lane.hold(self._lane.queue()):
            asked = await self._submit(self._created(), call)
        return await self.poll(asked, kind, result_type)

    def start_batch(
        self,
        kind: str,
        call: CallOfPart,
        data: Sequence[Datum],
        loss_fn: LossFnType,
        config: Mapping[str, float] | None,
    ) -> APIFuture[ForwardBackwardOutput]:
        """Run an operation on a batch now, in as many requests as the limits ask for, none other between them."""
        parts = [
            ForwardBackwardInput(data=chunk, loss_fn=loss_fn, loss_fn_config=dict(config) if config else None)
            for chunk in split(_checked(data), self._limits)
        ]
        return self._connection.start(self._run_batch(kind, call, parts))

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
            deadline_s=retry.progress_timeout,
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
        """The model's id once its creation is over. Raises TinkerError when that failed."""
        if self._model_id is None:
            why = self._creation_fault or "that was cancelled"
            raise TinkerError(f"the model of this client was not created: {why}") from self._creation_fault
        return self._model_id

    async def _submit(self, model_id: str, call: CallOf) -> UntypedAPIFuture:
        """Send the request of an operation; its number is free again only if the server certainly did not take it."""
        seq_id = self._lane.take_id()
        is_certain = True

        def note(fault: TinkerError, _: float) -> None:
            nonlocal is_certain
            is_certain = is_certain and is_refusal(fault)

        try:
            made = call(model_id, seq_id)
            request = self._connection.encode(made, Submission())
        except Exception:
            self._lane.give_back(seq_id)
            raise
        try:
            return await self._connection.send(
                request, lambda answer: self._connection.parse(made, answer), Traffic.TRAINING, on_fault=note
            )
        except TinkerError as fault:
            if is_certain and is_refusal(fault):
                self._lane.give_back(seq_id)
            raise

    async def _run_batch(self, kind: str, call: CallOfPart, parts: list[ForwardBackwardInput]) -> ForwardBackwardOutput:
        polls: list[asyncio.Task[ForwardBackwardOutput]] = []
        try:
            async with self._lane.hold(self._lane.queue()):
                model_id = self._created()
                for part in parts:
                    asked = await self._submit(model_id, lambda m, s, part=part: call(m, s, part))  # type: ignore[misc]
                    polls.append(asyncio.create_task(self.poll(asked, kind, ForwardBackwardOutput, NO_METRICS)))
            return combine(await asyncio.gather(*polls))
        finally:
            for poll in polls:
                poll.cancel()
            await asyncio.gather(*polls, return_exceptions=True)


def _checked(data: Sequence[Datum]) -> Sequence[Datum]:
    if isinstance(data, Datum):
        raise TypeError("data: expected a list of datums, got one Datum")
    datums = list(data)
    if not datums:
        raise ValueError("data: no datums; give at least one")
    for position, datum in enumerate(datums):
        if not isinstance(datum, Datum):
            raise TypeError(f"data[{position}]: expected a Datum, got {type(datum).__name__}")
    return datums
