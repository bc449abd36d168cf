"""Drawing one sample: in its turn, again when the server is too busy or has lost it, and polled to its end."""

from __future__ import annotations

import asyncio

import attrs

from tinkerwire_base.errors import APIStatusError, TinkerError
from tinkerwire_generated.api.sampling import asample
from tinkerwire_generated.models import SampleRequest, SampleResponse

from .._connection.retry import RetryConfig
from .._connection.retry_rules import Decision, Loop, error_types, find_rule
from .._futures.deadline import remaining_s
from .._futures.operation_record import current_operation
from .._polling.batched_poller import BatchedPoller
from .._polling.poller import PendingResult, Poll
from .._session.session import Session
from .._transport.backpressure import InFlightLimit, Traffic
from .._usage import UsageCounter
from .._wire.dialect import Dialect
from .._wire.server_futures import ImmediateResult, Submission
from . import response_checks as sample_answer
from .sample_seq_ids import SampleSeqIds

BACKPRESSURE = {"x-tinker-sampling-backpressure": "1"}
SERVICE_UNAVAILABLE = 503


class SampleRunner:
    """What all samples of one client have in common. Used on the loop thread."""

    def __init__(self, session: Session, retry: RetryConfig, limit: InFlightLimit, numbers: SampleSeqIds) -> None:
        self._connection = session.connection
        self._cancellations = session.cancellations
        self._retry = retry
        self.limit = limit
        self.usage_counter = UsageCounter(session.connection.usage_counter)
        self.numbers = numbers
        self._completions: BatchedPoller | None = None
        self._is_prepared = False

    async def sample(self, request: SampleRequest, sampling_session_id: str) -> SampleResponse:
        """Draw until the server has not lost the sample: it costs nothing to draw again, unlike a training step."""
        draw = 0
        while True:
            draw += 1
            seq_id = await self.numbers.next()
            try:
                drawn = await self._draw(attrs.evolve(request, sampling_session_id=sampling_session_id, seq_id=seq_id))
            except TinkerError as error:
                if find_rule(Loop.SAMPLE, error).decision is not Decision.RESAMPLE:
                    raise
                is_last = draw >= self._retry.max_attempts or not self._retry.enable_retry_logic
                if is_last or self._retry.user_decision(error) is False:
                    raise
                await asyncio.sleep(self._retry.delay(draw))
            else:
                self.usage_counter.add_sample(request.prompt, drawn)
                missing = " and ".join(sample_answer.missing(request, drawn))
                if missing:
                    text = "the server gave no %s, though it was asked for them"
                    self._connection.throttled_log.warn("missing", text, missing)
                return sample_answer.fitted(request, drawn)

    async def _draw(self, request: SampleRequest) -> SampleResponse:
        """One sample, under one number and one key however often the server is too busy for it."""
        call = asample(body=request)
        dialect = await self._connection.dialect()
        self._prepare(request, dialect)
        encoded = self._connection.codec.encode(call, dialect, BACKPRESSURE)
        refusals = 0
        while True:
            async with self.limit.slot() as slot:
                try:
                    asked = await self._connection.send(
                        encoded,
                        self._connection.codec.submission_reader(call, encoded),
                        Traffic.SAMPLING,
                        self._retry,
                        raise_immediately=error_types(Loop.SAMPLE, Decision.REQUEUE),
                        on_retry=self._on_retry,
                    )
                except TinkerError as error:
                    if find_rule(Loop.SAMPLE, error).decision is not Decision.REQUEUE:
                        raise
                    # The sample gives its place in flight back and stands in line anew, for as long as it takes.
                    refusals += 1
                    wait = self._retry.delay_after(error, refusals)
                    is_late = wait > remaining_s()
                    if is_late or not self._retry.should_retry(error) or not self._retry.enable_retry_logic:
                        raise
                    self._back_off(wait)
                    current_operation().step = str(error)
                else:
                    slot.sent()
                    return await self._result(asked)

    async def _result(self, submission: Submission) -> SampleResponse:
        promise = PendingResult(
            submission=submission,
            request_type="Sample",
            result_type=SampleResponse,
            traffic=Traffic.SAMPLING_FUTURES,
            is_repeatable=True,
        )
        completions = self._completions
        ready = None if completions is None else completions.ended
        poll = Poll(self._connection, promise, self._retry, ready=ready)
        if isinstance(submission, ImmediateResult):
            return await poll.result()
        try:
            return _numbered(await poll.result(), submission.sample_sequence_ids)
        except asyncio.CancelledError:
            self._cancellations.add(submission.request_id)
            raise
        finally:
            if completions is not None:
                completions.fetched(submission.request_id)

    def _prepare(self, request: SampleRequest, dialect: Dialect) -> None:
        """Before the first sample: find out how to hear of ends."""
        if not self._is_prepared:
            assert request.sampling_session_id is not None
            assert self.numbers.clone_id is not None
            self._completions = BatchedPoller.where_wanted(
                self._connection, dialect, self._retry, request.sampling_session_id, self.numbers.clone_id
            )
            self._is_prepared = True

    def _on_retry(self, error: TinkerError, wait: float) -> None:
        if isinstance(error, APIStatusError) and error.status_code == SERVICE_UNAVAILABLE:
            self._back_off(wait)

    def _back_off(self, wait: float) -> None:
        self.limit.push_back(wait)
        self._connection.throttled_log.warn(
            "push-back",
            "the server is too busy to sample; nothing new for %.1f s, %d samples in flight, %d waiting",
            wait,
            self.limit.in_flight,
            self.limit.waiting,
        )


def _numbered(response: SampleResponse, sequence_ids: list[str] | None) -> SampleResponse:
    """The response with the names that its sequences got when they were asked for, by servers that name them."""
    if not sequence_ids:
        return response
    named = [
        sequence.model_copy(update={"sequence_id": sequence_id})
        for sequence, sequence_id in zip(response.sequences, sequence_ids, strict=False)
    ]
    return response.model_copy(update={"sequences": [*named, *response.sequences[len(named) :]]})
