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
    FutureExpiredError,
    InternalServerError,
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
)

from .backpressure import InFlightLimit, Traffic
from .connection import Submission
from .futures import APIFuture
from .polling import Poll, Promise
from .retry import RetryConfig
from .session import Session
from .weights import refuse_path_of_kind

BACKPRESSURE = {"x-tinker-sampling-backpressure": "1"}
SERVICE_UNAVAILABLE = 503


class SamplingClient:
    """Samples from one set of weights. Made by a ServiceClient or a TrainingClient; awaiting it waits for that."""

    def __init__(self, session: Session, retry_config: RetryConfig | None) -> None:
        self._session = session
        self._connection = session.connection
        self._retry = retry_config or session.connection.retry
        self._limit = (
            session.connection.sampling_limit if retry_config is None else InFlightLimit(retry_config.max_connections)
        )
        self._seq_ids = itertools.count()
        self._creation: APIFuture[str]

    @classmethod
    def _create(
        cls,
        session: Session,
        model_path: str | None,
        base_model: str | None,
        retry_config: RetryConfig | None,
    ) -> Self:
        if (model_path is None) == (base_model is None):
            raise ValueError("give either model_path or base_model")
        if model_path is not None:
            refuse_path_of_kind("training", model_path, "be sampled from")
        client = cls(session, retry_config)
        client._creation = APIFuture.start(client._open(model_path, base_model))
        return client

    @classmethod
    def _from_saved(
        cls,
        session: Session,
        save: Callable[[], Awaitable[SaveWeightsForSamplerResponseInternal]],
        retry_config: RetryConfig | None,
    ) -> Self:
        client = cls(session, retry_config)

        async def create() -> str:
            saved = await save()
            if saved.sampling_session_id is not None:
                return saved.sampling_session_id
            if saved.path is None:
                raise TinkerError("save_weights_for_sampler: the server named neither a sampling session nor a path")
            return await client._open(saved.path, None)

        client._creation = APIFuture.start(create())
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
    ) -> APIFuture[SampleResponse]:
        """Sample continuations of a prompt.

        Args:
            prompt: what to continue.
            num_samples: how many continuations, at least 1.
            sampling_params: length, temperature, stop condition and so on.
            include_prompt_logprobs: also give the log probability of each prompt token, in nats.
            topk_prompt_logprobs: also give this many of the likeliest tokens at each prompt position.

        Raises:
            ValueError, TypeError: an argument that cannot be sent; nothing was sent.
        """
        if num_samples < 1:
            raise ValueError(f"num_samples: {num_samples} is below 1")
        if topk_prompt_logprobs < 0:
            raise ValueError(f"topk_prompt_logprobs: {topk_prompt_logprobs} is below 0")
        request = SampleRequest(
            num_samples=num_samples,
            prompt=prompt,
            sampling_params=sampling_params,
            prompt_logprobs=include_prompt_logprobs,
            topk_prompt_logprobs=topk_prompt_logprobs,
        )
        if not prompt.chunks:
            raise ValueError("prompt: it has no chunks; give at least one token")
        return APIFuture.start(self._sample(request))

    async def sample_async(
        self,
        prompt: ModelInput,
        num_samples: int,
        sampling_params: SamplingParams,
        include_prompt_logprobs: bool = False,
        topk_prompt_logprobs: int = 0,
    ) -> SampleResponse:
        """:meth:`sample`, awaited."""
        return await self.sample(prompt, num_samples, sampling_params, include_prompt_logprobs, topk_prompt_logprobs)

    def compute_logprobs(self, prompt: ModelInput) -> APIFuture[list[float | None]]:
        """The log probability of each prompt token given those before it, in nats; None for the first."""
        request = SampleRequest(
            num_samples=1, prompt=prompt, sampling_params=SamplingParams(max_tokens=1), prompt_logprobs=True
        )
        if not prompt.chunks:
            raise ValueError("prompt: it has no chunks; give at least one token")
        return APIFuture.start(self._logprobs(request))

    async def compute_logprobs_async(self, prompt: ModelInput) -> list[float | None]:
        """:meth:`compute_logprobs`, awaited."""
        return await self.compute_logprobs(prompt)

    def get_base_model(self) -> str:
        """The name of the base model."""
        return self._base_model().result()

    async def get_base_model_async(self) -> str:
        """:meth:`get_base_model`, awaited."""
        return await self._base_model()

    def _base_model(self) -> APIFuture[str]:
        async def ask() -> str:
            found = await self._connection.call(get_sampler(await self._ready()), Traffic.REST)
            return found.base_model

        return APIFuture.start(ask())

    async def _open(self, model_path: str | None, base_model: str | None) -> str:
        request = CreateSamplingSessionRequest(
            session_id=await self._session.id(),
            sampling_session_seq_id=self._session.next_sampling_session_seq_id(),
            base_model=base_model,
            model_path=model_path,
        )
        created = await self._connection.call(create_sampling_session(body=request), Traffic.SESSION)
        return created.sampling_session_id

    async def _ready(self) -> str:
        return await asyncio.shield(asyncio.wrap_future(self._creation.future()))

    async def _sample(self, request: SampleRequest) -> SampleResponse:
        session_id = await self._ready()
        started = time.monotonic()
        async with self._limit:
            attempt = 0
            while True:
                attempt += 1
                left = self._retry.progress_timeout - (time.monotonic() - started)
                seq_id = next(self._seq_ids)
                try:
                    return await self._attempt(
                        attrs.evolve(request, sampling_session_id=session_id, seq_id=seq_id), left
                    )
                except FutureExpiredError:
                    # A lost sample costs nothing to draw again, unlike a lost training step.
                    if attempt >= self._retry.max_attempts or not self._retry.enable_retry_logic:
                        raise

    async def _attempt(self, request: SampleRequest, deadline_s: float) -> SampleResponse:
        started = time.monotonic()
        asked = await self._connection.call(
            asample(body=request),
            Traffic.SAMPLING,
            retry=self._retry,
            submission=Submission(headers=BACKPRESSURE),
            on_fault=self._on_fault,
        )
        promise = Promise(
            request_id=asked.request_id,
            request_type="Sample",
            result_type=SampleResponse,
            traffic=Traffic.SAMPLING_FUTURES,
            deadline_s=deadline_s - (time.monotonic() - started),
        )
        return await Poll(self._connection, promise, self._retry).result()

    def _on_fault(self, fault: TinkerError, wait: float) -> None:
        overloaded = isinstance(fault, InternalServerError) and fault.status_code == SERVICE_UNAVAILABLE
        if isinstance(fault, RateLimitError) or overloaded:
            self._limit.push_back(wait)

    async def _logprobs(self, request: SampleRequest) -> list[float | None]:
        response = await self._sample(request)
        found = response.prompt_logprobs
        length = request.prompt.length
        if found is None or len(found) not in (length, length - 1):
            raise APIResponseValidationError(
                f"compute_logprobs: the server gave {'no' if found is None else len(found)} prompt logprobs "
                f"for {length} tokens",
                response=ResponseInfo(status_code=200),
            )
        # Some servers leave out the first token, of which there is nothing to say.
        return list(found) if len(found) == length else [None, *found]
