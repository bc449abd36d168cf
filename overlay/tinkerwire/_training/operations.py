"""Operations on one model: queued in call order, submitted one after the other, awaited concurrently."""

from __future__ import annotations

import asyncio
import copy
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from tinkerwire_base.errors import CancelledSubmissionError, ClientClosedError, TinkerError
from tinkerwire_generated import models

from .._connection.connection import Connection
from .._futures.deadline import deadline_error, is_deadline_passed
from .._futures.future import APIFuture
from .._futures.logger import log
from .._futures.operation_record import OperationRecord, current_operation
from .._futures.operation_trace import OperationTrace
from .._transport.address import is_tinker_service
from .._usage import UsageCounter
from .._wire.server_futures import Submission
from .batch_submission import BatchSubmitter, ChunkRequestBuilder
from .chunking import ChunkLimits
from .losses.client_loss import CustomLoss
from .metrics import MetricWarnings
from .operation_queue import OperationQueue
from .result_polling import PollTasks, cancel_polls_at_exit, poll_training_result
from .submitter import OperationSubmitter, RequestBuilder

MAX_REMEMBERED = 100
MAX_LISTED_FAILURES = 5


class UnretrievedFailures:
    """The failed training steps of one model since its weights were last saved. Used on the loop thread."""

    def __init__(self) -> None:
        self._failed: OrderedDict[OperationRecord, str] = OrderedDict()

    def add(self, record: OperationRecord, error: Exception) -> None:
        """Record a failed step, and log its error if no caller waits for the result.

        A caller may keep the future and never read it; nothing else would report the missing step then.
        """
        if isinstance(error, ClientClosedError | CancelledSubmissionError):
            return
        name = " ".join((record.kind, *record.request_ids[-1:]))
        self._failed[record] = f"{name}: {error!s:.300}"
        if len(self._failed) > MAX_REMEMBERED:
            self._failed.popitem(last=False)
        if not record.waiters and not record.is_error_retrieved:
            record.is_error_logged = True
            log.error("%s failed, and no caller waits for its result: %s", name, error, exc_info=error)

    def warn_of_save(self, name: str) -> None:
        """Log the failed steps with unretrieved errors that the saved weights lack."""
        lacking = [text for record, text in self._failed.items() if not record.is_error_retrieved]
        self._failed.clear()
        if not lacking:
            return
        shown = "; ".join(lacking[:MAX_LISTED_FAILURES])
        more = f"; and {len(lacking) - MAX_LISTED_FAILURES} more" if len(lacking) > MAX_LISTED_FAILURES else ""
        log.warning("the weights saved as %s lack %d training steps that failed: %s%s", name, len(lacking), shown, more)

    def clear(self) -> None:
        """Drop the failed steps, because other weights were loaded."""
        self._failed.clear()


T = TypeVar("T")
TRAINING_STEPS = frozenset({"ForwardBackward", "OptimStep"})


class Operations:
    """The operations on one model; the first one creates the model.

    Submissions go out one after the other, in call order. Results are awaited concurrently, so that a slow or failed
    one delays no other.

    Args:
        connection: the connection to the server.
        limits: limits of one request with a batch.
        create: creates the model and returns its id.
    """

    def __init__(
        self, connection: Connection, limits: ChunkLimits, create: Callable[[Operations], Awaitable[str]]
    ) -> None:
        self._connection = connection
        self._queue = OperationQueue()
        self._submitter = OperationSubmitter(connection, self._queue)
        self._metric_warnings = MetricWarnings()
        self.usage_counter = UsageCounter(connection.usage_counter)
        self._batches = BatchSubmitter(connection, limits, self._submitter, self.usage_counter, self._metric_warnings)
        self.failures = UnretrievedFailures()
        self._model_id: str | None = None
        self._creation_error: Exception | None = None
        self.creation: APIFuture[str] = connection.start(lambda: self._create(create), "CreateModel")

    def start(self, kind: str, build: RequestBuilder, result_type: type[T]) -> APIFuture[T]:
        """Start an operation; ``kind`` is its name in the server's metrics."""
        return self._connection.start(lambda: self.record_failure(self.run(kind, build, result_type)), kind)

    async def run(
        self,
        kind: str,
        build: RequestBuilder,
        result_type: type[T],
        raise_immediately: tuple[type[TinkerError], ...] = (),
    ) -> T:
        """Queue an operation and return its result.

        Args:
            kind: its name in the server's metrics.
            build: builds its request.
            result_type: type of its result.
            raise_immediately: errors that are not retried.
        """

        async def poll(submission: Submission) -> T:
            return await self.poll(submission, kind, result_type)

        polls: PollTasks[T]
        async with cancel_polls_at_exit() as polls:
            async with self._queue.acquire(self._queue.enqueue()):
                polls.append(await self._submitter.start(self._created_model_id(), build, poll, raise_immediately))
                if kind == "LoadWeights" and not is_tinker_service(self._connection.base_url):
                    # Some servers do not count loads.
                    self._queue.is_settled = False
            return await polls[0]

    def start_batch(
        self,
        kind: str,
        build: ChunkRequestBuilder,
        batch: models.ForwardBackwardInput,
    ) -> APIFuture[models.ForwardBackwardOutput]:
        """Start an operation on a batch, in as many requests as the limits require, with no others between them."""
        return self._connection.start(lambda: self.record_failure(self._run_batch(kind, build, batch)), kind)

    def start_custom(
        self,
        forward: ChunkRequestBuilder,
        backward: ChunkRequestBuilder,
        loss: CustomLoss,
    ) -> APIFuture[models.ForwardBackwardOutput]:
        """Start a forward and a backward operation with a loss of the user between them, and no others."""
        return self._connection.start(
            lambda: self.record_failure(self._run_custom(forward, backward, loss)), "ForwardBackward"
        )

    async def run_in_creation(self, model_id: str, kind: str, build: RequestBuilder, result_type: type[T]) -> T:
        """Run an operation that is part of the model's creation, in the turn of the creation."""

        async def poll(submission: Submission) -> T:
            return await self.poll(submission, kind, result_type)

        return await (await self._submitter.start(model_id, build, poll))

    async def poll(self, submission: Submission, kind: str, result_type: type[T]) -> T:
        """Return the result of a submitted operation."""
        return await poll_training_result(self._connection, submission, kind, result_type, self._metric_warnings)

    async def _create(self, create: Callable[[Operations], Awaitable[str]]) -> str:
        async with self._queue.acquire(self._queue.enqueue()):
            try:
                self._model_id = await create(self)
            except asyncio.CancelledError:
                if is_deadline_passed():
                    self._creation_error = deadline_error()
                raise
            except Exception as error:
                self._creation_error = error
                raise
        trace = current_operation().trace
        if trace is not None:
            self._mark_model(trace, self._model_id)
        return self._model_id

    def _created_model_id(self) -> str:
        """Return the model's id once its creation is over; raise the creation's error if it failed."""
        if self._model_id is None:
            self.creation.mark_retrieved()
            cause = self._creation_error
            text = f"the model of this client was not created: {cause or 'its creation was cancelled'}"
            # An error of the cause's class, so that code that catches that class catches it here, too.
            error = copy.copy(cause) if isinstance(cause, TinkerError) else TinkerError(text)
            error.args, error.message = (text,), text
            raise error from cause
        trace = current_operation().trace
        if trace is not None:
            trace.add("turn")
            self._mark_model(trace, self._model_id)
        return self._model_id

    def _mark_model(self, trace: OperationTrace, model_id: str) -> None:
        """Record which model an operation works on."""
        trace.model_id, trace.model = model_id, self._connection.known_models.base_models.get(model_id, "")

    async def record_failure(self, work: Coroutine[Any, Any, T]) -> T:
        """Run an operation, and record its failure if it trains the model."""
        try:
            result = await work
        except Exception as error:
            if current_operation().kind in TRAINING_STEPS:
                self.failures.add(current_operation(), error)
            raise
        if current_operation().kind == "LoadWeights":
            self.failures.clear()
        return result

    async def _run_batch(
        self, kind: str, build: ChunkRequestBuilder, batch: models.ForwardBackwardInput
    ) -> models.ForwardBackwardOutput:
        async with cancel_polls_at_exit() as polls:
            async with self._queue.acquire(self._queue.enqueue()):
                chunks = await self._batches.submit(self._created_model_id(), kind, build, batch, polls)
            return self._batches.merge(chunks, await asyncio.gather(*polls))

    async def _run_custom(
        self, forward: ChunkRequestBuilder, backward: ChunkRequestBuilder, loss: CustomLoss
    ) -> models.ForwardBackwardOutput:
        batches = self._batches
        async with cancel_polls_at_exit() as polls:
            # The operation keeps its turn while the user's function runs, so that later operations go out later.
            ticket = self._queue.enqueue()
            async with self._queue.acquire(ticket):
                model_id = self._created_model_id()
                try:
                    async with cancel_polls_at_exit() as forward_polls:
                        inputs = loss.forward_input()
                        chunks = await batches.submit(model_id, "Forward", forward, inputs, forward_polls)
                        logprobs = batches.merge(chunks, await asyncio.gather(*forward_polls))
                        evaluation = await loss.evaluate(logprobs, self._queue)
                    gradients = loss.backward_input(evaluation)
                    chunks = await batches.submit(model_id, "ForwardBackward", backward, gradients, polls)
                except BaseException as error:
                    # The operations queued behind it depend on gradients that do not exist.
                    self._queue.reject_queued(ticket, error)
                    raise
            return loss.result(evaluation, batches.merge(chunks, await asyncio.gather(*polls)))
