"""Runs samples: submits each within the limit in flight, polls its result, and resamples if the server lost it."""

from __future__ import annotations

import asyncio
from functools import partial

import attrs

from tinkerwire_base.call import Call, WireRequest
from tinkerwire_base.errors import APIStatusError, TinkerError
from tinkerwire_generated import models
from tinkerwire_generated.api.sampling import asample

from .._connection.retry import RetryConfig
from .._connection.retry_rules import Decision, Loop, error_types, find_rule
from .._connection.start_queue import StartQueue
from .._futures.deadline import remaining_s
from .._futures.future import APIFuture
from .._futures.operation_record import current_operation
from .._futures.operation_trace import error_name
from .._futures.single_flight import SingleFlight
from .._polling.batched_poller import BatchedPoller
from .._polling.pending_result import PendingResult
from .._polling.poller import Poller
from .._session.session import Session
from .._transport.backpressure import InFlightLimit, Traffic
from .._transport.poll_connections import PollConnections
from .._usage import UsageCounter
from .._wire.server_futures import ImmediateResult, Submission
from .response_checks import align_prompt_logprobs, missing_fields
from .sample_seq_ids import SampleSeqIds

BACKPRESSURE_HEADERS = {"x-tinker-sampling-backpressure": "1"}
SERVICE_UNAVAILABLE = 503


class SampleRunner:
    """Runs all samples of one client. Used on the loop thread."""

    def __init__(self, session: Session, retry: RetryConfig, limit: InFlightLimit, seq_ids: SampleSeqIds) -> None:
        self._connection = session.connection
        self._cancellations = session.sample_canceller
        self._retry = retry
        self.limit = limit
        self.start_queue = StartQueue(limit)
        self.usage_counter = UsageCounter(session.connection.usage_counter)
        self.seq_ids = seq_ids
        self._preparation: SingleFlight[None] | None = None
        """The preparation, until it has succeeded and no sample waits for it."""
        self._preparing = 0
        """Number of samples that wait for the preparation."""
        self._is_prepared = False
        self._batched_poller: BatchedPoller | None = None

    async def prepare(self, creation: APIFuture[str]) -> str:
        """Return the id of the sampling session, once a sample can be submitted.

        Samples return in the order of their calls, and take seq_ids and slots in that order: a sample that begins when
        the client is ready stays behind those that have waited for it.

        Args:
            creation: the creation of the client, the same in all calls.

        Raises:
            TinkerError: the client could not be created, or its copy could not join the session.
        """
        if self._preparing or not self._is_prepared:
            if self._preparation is None:
                self._preparation = SingleFlight(partial(self._prepare_once, creation))
            self._preparing += 1
            try:
                await self._preparation.get()
            finally:
                self._preparing -= 1
                if self._is_prepared and not self._preparing:
                    # It refers to this runner.
                    self._preparation = None
        return await creation.watch()

    async def _prepare_once(self, creation: APIFuture[str]) -> None:
        # The samples retrieve its error; if all of them were cancelled, it is logged.
        await creation.wait_done()
        if creation.state != "done":
            return
        await self.seq_ids.join()
        dialect = await self._connection.dialect()
        assert self.seq_ids.copy_number is not None
        self._batched_poller = BatchedPoller.if_supported(
            self._connection, dialect, self._retry, creation.result(), self.seq_ids.copy_number
        )
        self._is_prepared = True

    async def sample(self, request: models.SampleRequest, sampling_session_id: str) -> models.SampleResponse:
        """Sample, and resample if the server lost the result; resampling has no side effects.

        Raises:
            APIResponseValidationError: the response does not fit the request.
            TinkerError: the request failed.
        """
        attempt = 0
        while True:
            attempt += 1
            seq_id = self.seq_ids.next()
            try:
                response = await self._submit(request, sampling_session_id, seq_id)
            except TinkerError as error:
                if find_rule(Loop.SAMPLE, error).decision is not Decision.RESAMPLE:
                    raise
                is_last = attempt >= self._retry.max_attempts or not self._retry.enable_retry_logic
                if is_last or self._retry.user_decision(error) is False:
                    raise
                await asyncio.sleep(self._retry.delay(attempt))
            else:
                self.usage_counter.add_sample(request.prompt, response, current_operation().trace)
                missing = " and ".join(missing_fields(request, response))
                if missing:
                    text = "the server returned no %s, although the request asks for them"
                    self._connection.throttled_log.warn("missing", text, missing)
                return align_prompt_logprobs(request, response)

    async def _submit(
        self, request: models.SampleRequest, sampling_session_id: str, seq_id: int
    ) -> models.SampleResponse:
        """Run one sample; every resend after a push-back has the same seq_id and the same idempotency key."""
        codec = self._connection.codec
        call: Call[models.UntypedAPIFuture] | None = None
        encoded: WireRequest | None = None
        dialect = await self._connection.dialect()
        rejections = 0
        while True:
            async with self.limit.slot(self._reserved_polls()) as slot:
                record = current_operation()
                self.start_queue.mark_started(record)
                trace = record.trace
                if trace is not None:
                    trace.add("slot", self.limit.in_flight, self.limit.ceiling)
                if call is None or encoded is None:
                    # Not before: thousands of samples may wait for a slot.
                    call = asample(body=attrs.evolve(request, sampling_session_id=sampling_session_id, seq_id=seq_id))
                    encoded = codec.encode(call, dialect, BACKPRESSURE_HEADERS)
                try:
                    submission = await self._connection.send(
                        encoded,
                        codec.submission_reader(call, encoded),
                        Traffic.SAMPLING,
                        self._retry,
                        raise_immediately=error_types(Loop.SAMPLE, Decision.REQUEUE),
                        on_retry=self._on_retry,
                    )
                except TinkerError as error:
                    if find_rule(Loop.SAMPLE, error).decision is not Decision.REQUEUE:
                        raise
                    # The sample releases its slot and queues for another one, until its deadline.
                    rejections += 1
                    wait = self._retry.delay_after(error, rejections)
                    exceeds_deadline = wait > remaining_s()
                    if exceeds_deadline or not self._retry.should_retry(error) or not self._retry.enable_retry_logic:
                        raise
                    self._back_off(wait)
                    record.step = str(error)
                    if trace is not None:
                        trace.add_repeated("retry", trace.sends, error_name(error), wait)
                else:
                    slot.sent()
                    # Thousands of samples may be in flight, and the server has their prompts.
                    del call, encoded
                    return await self._result(submission)

    async def _result(self, submission: Submission) -> models.SampleResponse:
        pending = PendingResult(
            submission=submission,
            request_type="Sample",
            result_type=models.SampleResponse,
            traffic=Traffic.SAMPLING_FUTURES,
            is_repeatable=True,
        )
        batched_poller = self._batched_poller
        ready = None if batched_poller is None else batched_poller.wait_until_finished
        poller = Poller(self._connection, pending, self._retry, ready=ready)
        if isinstance(submission, ImmediateResult):
            return await poller.result()
        try:
            return _with_sequence_ids(await poller.result(), submission.sample_sequence_ids)
        except asyncio.CancelledError:
            self._cancellations.add(submission.request_id)
            raise
        finally:
            if batched_poller is not None:
                batched_poller.mark_fetched(submission.request_id)

    def _reserved_polls(self) -> PollConnections | None:
        """Return the connections of which the next sample reserves one; None if one request polls for all samples."""
        if self._batched_poller is not None and not self._batched_poller.is_disabled:
            return None
        return self._connection.poll_connections

    def _on_retry(self, error: TinkerError, wait: float) -> None:
        if isinstance(error, APIStatusError) and error.status_code == SERVICE_UNAVAILABLE:
            self._back_off(wait)

    def _back_off(self, wait: float) -> None:
        self.limit.push_back(wait)
        self._connection.throttled_log.warn(
            "push-back",
            "the server is too busy to sample; no new samples for %.1f s; %d samples in flight, %d waiting",
            wait,
            self.limit.in_flight,
            self.limit.waiting,
        )


def _with_sequence_ids(response: models.SampleResponse, sequence_ids: list[str] | None) -> models.SampleResponse:
    """Return the response with the sequence ids of its submission, if the server sent any."""
    if not sequence_ids:
        return response
    identified = [
        sequence.model_copy(update={"sequence_id": sequence_id})
        for sequence, sequence_id in zip(response.sequences, sequence_ids, strict=False)
    ]
    return response.model_copy(update={"sequences": [*identified, *response.sequences[len(identified) :]]})
