"""Sampling from a base model or from saved weights: many requests at once, as many as the server bears."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Generator
from typing import Any

import attrs
from typing_extensions import Self

from tinkerwire_base.errors import (
    APIResponseValidationError,
    APIStatusError,
    FutureExpiredError,
    RateLimitError,
    ResponseInfo,
    TinkerError,
)
from tinkerwire_generated.api.sampling import asample, create_sampling_session, get_sampler
from tinkerwire_generated.models import (
    CreateSamplingSessionRequest,
    ModelInput,
    SampleRequest,
    SampleResponse,
    SamplingParams,
    SaveWeightsForSamplerResponseInternal,
    TensorData,
    UntypedAPIFuture,
)

from .backpressure import InFlightLimit, Traffic
from .connection import Submission
from .futures import APIFuture
from .polling import Poll, Promise
from .retry import RetryConfig, is_retryable
from .session import Session
from .weights import refuse_path_of_kind

BACKPRESSURE = {"x-tinker-sampling-backpressure": "1"}
SERVICE_UNAVAILABLE = 503


class SamplingClient:
    """Samples from one set of weights. Made by a ServiceClient or a TrainingClient; awaiting it waits for that."""

    def __init__(
        self, session: Session, retry_config: RetryConfig | None, *, record_stability_info: bool = False
    ) -> None:
        self._session = session
        self._connection = session.connection
        self._retry = retry_config or session.connection.retry
        self._limit = (
            session.connection.sampling_limit if retry_config is None else InFlightLimit(retry_config.max_connections)
        )
        # Servers whose wire has no such thing record nothing, which is what leaving it out asks for.
        self._record_stability_info = True if record_stability_info else None
        self._seq_ids = itertools.count()
        self._creation: APIFuture[str]

    @classmethod
    def _create(
        cls,
        session: Session,
        model_path: str | None,
        base_model: str | None,
        retry_config: RetryConfig | None,
        *,
        record_stability_info: bool = False,
    ) -> Self:
        if (model_path is None) == (base_model is None):
            raise ValueError("give either model_path or base_model")
        if model_path is not None:
            refuse_path_of_kind("training", model_path, "be sampled from")
        client = cls(session, retry_config, record_stability_info=record_stability_info)
        client._creation = client._connection.start(client._open(model_path, base_model))
        return client

    @classmethod
    def _from_saved(
        cls,
        session: Session,
        save: Callable[[], Awaitable[SaveWeightsForSamplerResponseInternal]],
        retry_config: RetryConfig | None,
        *,
        record_stability_info: bool = False,
    ) -> Self:
        client = cls(session, retry_config, record_stability_info=record_stability_info)

        async def create() -> str:
            saved = await save()
            if saved.sampling_session_id is not None:
                return saved.sampling_session_id
            if saved.path is None:
                raise TinkerError("save_weights_for_sampler: the server named neither a sampling session nor a path")
            return await client._open(saved.path, None)

        client._creation = client._connection.start(create())
        return client

    def __await__(self) -> Generator[Any, None, Self]:
        yield from self._creation.__await__()
        return self

    def result(self, timeout: float | None = None) -> Self:
        """Wait until it is known that there is something to sample from; the client itself."""
        self._creation.result(timeout)
        return self

    async def result_async(self, timeout: float | None = None) -> Self:
        """:meth:`result` for coroutines."""
        await self._creation.result_async(timeout)
        return self

    @property
    def sampling_session_id(self) -> str:
        """The sampling session's id; waits for its creation."""
        return self._creation.result()

    def sample(
        self,
        prompt: ModelInput,
        num_samples: int,
        sampling_params: SamplingParams,
        include_prompt_logprobs: bool = False,
        topk_prompt_logprobs: int = 0,
        topk_sample_logprobs: int = 0,
        target_prompt_logprobs: TensorData | None = None,
        prompt_alt_tokens_k: int = 0,
        prompt_logprobs_last_n: int | None = None,
    ) -> APIFuture[SampleResponse]:
        """Sample continuations of a prompt.

        Args:
            prompt: what to continue.
            num_samples: how many continuations, at least 1.
            sampling_params: length, temperature, stop condition and so on.
            include_prompt_logprobs: also give the log probability of each prompt token, in nats.
            topk_prompt_logprobs: also give this many of the likeliest tokens at each prompt position.
            topk_sample_logprobs: the same for the samples; wire 0.29.1 and later.
            target_prompt_logprobs: also give the log probabilities of these tokens, an int64 tensor [positions, k],
                at each prompt position; wire 0.30.4 and later.
            prompt_alt_tokens_k: also give this many drawn alternatives at each prompt position; wire 0.31.0 and later.
            prompt_logprobs_last_n: give prompt logprobs of only the last n tokens; wire 0.33.1 and later.

        Raises:
            ValueError, TypeError: an argument that cannot be sent; nothing was sent.
        """
        if num_samples < 1:
            raise ValueError(f"num_samples: {num_samples} is below 1")
        for name, count in (
            ("topk_prompt_logprobs", topk_prompt_logprobs),
            ("topk_sample_logprobs", topk_sample_logprobs),
            ("prompt_alt_tokens_k", prompt_alt_tokens_k),
        ):
            if count < 0:
                raise ValueError(f"{name}: {count} is below 0")
        _check_last_n(prompt_logprobs_last_n, is_asked=include_prompt_logprobs)
        if target_prompt_logprobs is not None and (
            target_prompt_logprobs.dtype != "int64" or len(target_prompt_logprobs.shape or ()) != 2
        ):
            raise ValueError(
                "target_prompt_logprobs: expected an int64 tensor of two dimensions, got "
                f"{target_prompt_logprobs.dtype} of shape {target_prompt_logprobs.shape}"
            )
        if not isinstance(sampling_params, SamplingParams):
            raise TypeError(f"sampling_params: expected SamplingParams, got {type(sampling_params).__name__}")
        request = SampleRequest(
            num_samples=num_samples,
            prompt=_checked(prompt),
            sampling_params=sampling_params,
            prompt_logprobs=include_prompt_logprobs,
            topk_prompt_logprobs=topk_prompt_logprobs,
            topk_sample_logprobs=topk_sample_logprobs,
            target_prompt_logprobs=target_prompt_logprobs,
            prompt_alt_tokens_k=prompt_alt_tokens_k,
            prompt_logprobs_last_n=prompt_logprobs_last_n,
            record_stability_info=self._record_stability_info,
        )
        return self._connection.start(self._sample(request))

    async def sample_async(
        self,
        prompt: ModelInput,
        num_samples: int,
        sampling_params: SamplingParams,
        include_prompt_logprobs: bool = False,
        topk_prompt_logprobs: int = 0,
        topk_sample_logprobs: int = 0,
        target_prompt_logprobs: TensorData | None = None,
        prompt_alt_tokens_k: int = 0,
        prompt_logprobs_last_n: int | None = None,
    ) -> SampleResponse:
        """:meth:`sample`, awaited."""
        return await self.sample(
            prompt,
            num_samples,
            sampling_params,
            include_prompt_logprobs,
            topk_prompt_logprobs,
            topk_sample_logprobs,
            target_prompt_logprobs,
            prompt_alt_tokens_k,
            prompt_logprobs_last_n,
        )

    def compute_logprobs(
        self, prompt: ModelInput, prompt_logprobs_last_n: int | None = None
    ) -> APIFuture[list[float | None]]:
        """The log probability of each prompt token given those before it, in nats; None for the first.

        With ``prompt_logprobs_last_n`` only the last n tokens have one, and the others None; wire 0.33.1 and later.
        """
        _check_last_n(prompt_logprobs_last_n, is_asked=True)
        request = SampleRequest(
            num_samples=1,
            prompt=_checked(prompt),
            sampling_params=SamplingParams(max_tokens=1),
            prompt_logprobs=True,
            prompt_logprobs_last_n=prompt_logprobs_last_n,
            record_stability_info=self._record_stability_info,
        )
        return self._connection.start(self._logprobs(request))

    async def compute_logprobs_async(
        self, prompt: ModelInput, prompt_logprobs_last_n: int | None = None
    ) -> list[float | None]:
        """:meth:`compute_logprobs`, awaited."""
        return await self.compute_logprobs(prompt, prompt_logprobs_last_n)

    def get_base_model(self) -> str:
        """The name of the base model."""
        return self._base_model().result()

    async def get_base_model_async(self) -> str:
        """:meth:`get_base_model`, awaited."""
        return await self._base_model()

    def _base_model(self) -> APIFuture[str]:
        async def ask() -> str:
            found = await self._connection.call(get_sampler(await self._creation.watch()), Traffic.REST)
            return found.base_model

        return self._connection.start(ask())

    async def _open(self, model_path: str | None, base_model: str | None) -> str:
        request = CreateSamplingSessionRequest(
            session_id=await self._session.id(),
            sampling_session_seq_id=self._session.next_sampling_session_seq_id(),
            base_model=base_model,
            model_path=model_path,
        )
        created = await self._connection.call(create_sampling_session(body=request), Traffic.SAMPLING)
        return created.sampling_session_id

    async def _sample(self, request: SampleRequest) -> SampleResponse:
        """Draw until the server has not lost the sample: it costs nothing to draw again, unlike a training step."""
        session_id = await self._creation.watch()
        draw = 0
        while True:
            draw += 1
            seq_id = next(self._seq_ids)
            try:
                return await self._draw(attrs.evolve(request, sampling_session_id=session_id, seq_id=seq_id))
            except FutureExpiredError:
                if draw >= self._retry.max_attempts or not self._retry.enable_retry_logic:
                    raise
                await asyncio.sleep(self._retry.delay(draw))

    async def _draw(self, request: SampleRequest) -> SampleResponse:
        """One sample, under one number and one key however often the server is too busy for it."""
        call = asample(body=request)
        dialect = await self._connection.dialect()
        encoded = self._connection.encode(call, Submission(headers=BACKPRESSURE), dialect)
        first_refusal: float | None = None
        refusals = 0
        while True:
            async with self._limit.slot() as slot:
                try:
                    asked = await self._connection.send(
                        encoded,
                        self._connection.reader(call, encoded),
                        Traffic.SAMPLING,
                        self._retry,
                        not_here=(RateLimitError,),
                        on_fault=self._on_fault,
                    )
                except RateLimitError as fault:
                    # The sample gives its place in flight back and stands in line anew, for as long as it takes.
                    refusals += 1
                    wait = self._retry.wait_after(fault, refusals)
                    now = time.monotonic()
                    first_refusal = now if first_refusal is None else first_refusal
                    is_late = now + wait - first_refusal > self._retry.progress_timeout
                    if is_late or not is_retryable(fault) or not self._retry.enable_retry_logic:
                        raise
                    self._back_off(wait)
                else:
                    slot.sent()
                    return _numbered(await self._poll(asked), asked.sample_sequence_ids)

    async def _poll(self, asked: UntypedAPIFuture) -> SampleResponse:
        promise = Promise(
            request_id=asked.request_id,
            request_type="Sample",
            result_type=SampleResponse,
            traffic=Traffic.SAMPLING_FUTURES,
            deadline_s=self._retry.progress_timeout,
        )
        return await Poll(self._connection, promise, self._retry).result()

    def _on_fault(self, fault: TinkerError, wait: float) -> None:
        if isinstance(fault, APIStatusError) and fault.status_code == SERVICE_UNAVAILABLE:
            self._back_off(wait)

    def _back_off(self, wait: float) -> None:
        self._limit.push_back(wait)
        self._connection.say(
            "push-back",
            "the server is too busy to sample; nothing new for %.1f s, %d samples in flight, %d waiting",
            wait,
            self._limit.in_flight,
            self._limit.waiting,
        )

    async def _logprobs(self, request: SampleRequest) -> list[float | None]:
        response = await self._sample(request)
        found = response.prompt_logprobs
        try:
            length = request.prompt.length
        except ValueError:
            # Only the server knows how many tokens an image is.
            length = len(found or ())
        if found is None or len(found) not in (length, length - 1):
            raise APIResponseValidationError(
                f"compute_logprobs: the server gave {'no' if found is None else len(found)} prompt logprobs "
                f"for {length} tokens",
                response=ResponseInfo(status_code=200),
            )
        # Some servers leave out the first token, of which there is nothing to say.
        return list(found) if len(found) == length else [None, *found]


def _numbered(response: SampleResponse, sequence_ids: list[str] | None) -> SampleResponse:
    """The response with the names that its sequences got when they were asked for, by servers that name them."""
    if not sequence_ids:
        return response
    named = [
        sequence.model_copy(update={"sequence_id": sequence_id})
        for sequence, sequence_id in zip(response.sequences, sequence_ids, strict=False)
    ]
    return response.model_copy(update={"sequences": [*named, *response.sequences[len(named) :]]})


def _checked(prompt: ModelInput) -> ModelInput:
    if not isinstance(prompt, ModelInput):
        raise TypeError(f"prompt: expected a ModelInput, got {type(prompt).__name__}; ModelInput.from_ints makes one")
    if not prompt.chunks:
        raise ValueError("prompt: it has no chunks; give at least one token")
    return prompt


def _check_last_n(last_n: int | None, *, is_asked: bool) -> None:
    if last_n is None:
        return
    if last_n < 1:
        raise ValueError(f"prompt_logprobs_last_n: {last_n} is below 1")
    if not is_asked:
        raise ValueError("prompt_logprobs_last_n: set include_prompt_logprobs, too; there are none without")
