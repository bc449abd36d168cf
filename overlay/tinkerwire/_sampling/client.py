"""Sampling from a base model or from saved weights: many requests at once, as many as the server bears."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

import attrs
from typing_extensions import Self

from tinkerwire_base.errors import TinkerError
from tinkerwire_base.validators import require_bool, require_optional, require_optional_text
from tinkerwire_generated.api.sampling import create_sampling_session, get_sampler
from tinkerwire_generated.models import (
    CreateSamplingSessionRequest,
    ModelInput,
    SampleRequest,
    SampleResponse,
    SamplingParams,
    SaveWeightsForSamplerResponseInternal,
    TensorData,
)

from .._checkpoints.paths import reject_path_kind
from .._checkpoints.weights_info import find_base_model
from .._connection.operation_runner import Owner
from .._connection.retry import RetryConfig, RetryIf
from .._credentials.shareable_headers import select_shareable_headers
from .._futures.awaitable_client import AwaitableClient
from .._futures.deadline import Deadline, require_positive_timeout
from .._futures.future import APIFuture, describe_creation
from .._session.session import Session
from .._telemetry.reporter import Telemetry
from .._tokenizers.lookup import load_tokenizer, tokenizer_id_of
from .._transport.address import is_embedded
from .._transport.backpressure import InFlightLimit, SamplingLoad, Traffic
from .._usage import Usage
from .context_length import check_context_length
from .handles import SamplerHandle, joined
from .request import sample_request
from .response_checks import require_prompt_logprobs
from .sample_runner import SampleRunner
from .sample_seq_ids import SampleSeqIds, join_session

T = TypeVar("T")


class SamplingClient(AwaitableClient):
    """Samples from one set of weights. Made by a ServiceClient or a TrainingClient; awaiting it waits for that.

    It can be pickled, copied, and used in a forked process. What comes out is a client of the same sampling session,
    which numbers its samples in a range of its own, and serves as long as somebody holds it. Address, session,
    dialect, retry policy and headers travel; HTTP clients of the user's, the API key, and headers whose name or value
    looks like a credential do not: the other process finds its own key as a ServiceClient there would, and headers in
    TINKERWIRE_HEADERS.
    """

    def __init__(
        self, session: Session, retry_config: RetryConfig | None, *, record_stability_info: bool = False
    ) -> None:
        require_optional("retry_config", retry_config, RetryConfig)
        require_bool("record_stability_info", record_stability_info)
        self._session = session
        self._connection = session.connection
        self._retry = retry_config or session.connection.retry
        limit = (
            session.connection.sampling_limit if retry_config is None else InFlightLimit(retry_config.max_connections)
        )
        self._runner = SampleRunner(session, self._retry, limit, SampleSeqIds())
        # Servers whose wire has no such thing record nothing, which is what leaving it out asks for.
        self._record_stability_info = True if record_stability_info else None
        # Held for as long as this client is: the connection stays open.
        self._owner = session.connection.owner
        self._base_model_name: str | None = None
        """Known where the client was made with it or from a model of this service, or asked for it."""
        self._handed_context_length: int | None = None
        """Of the client that this one is a copy of."""

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
            reject_path_kind("training", model_path, "be sampled from", name="model_path")
        require_optional_text("base_model", base_model)
        if base_model == "":
            raise ValueError("base_model: give the name of a model; get_server_capabilities() lists them")
        client = cls(session, retry_config, record_stability_info=record_stability_info)
        client._creation = client._connection.start(
            lambda: client._open(model_path, base_model), "CreateSamplingSession"
        )
        return client

    @classmethod
    def _from_saved(
        cls,
        session: Session,
        model: APIFuture[str],
        save: Callable[[], Awaitable[SaveWeightsForSamplerResponseInternal]],
        retry_config: RetryConfig | None,
        *,
        record_stability_info: bool = False,
    ) -> Self:
        client = cls(session, retry_config, record_stability_info=record_stability_info)

        async def create() -> str:
            saved = await save()
            client._base_model_name = session.connection.known_models.base_models.get(await model.watch())
            if saved.sampling_session_id is not None:
                return saved.sampling_session_id
            if saved.path is None:
                raise TinkerError("save_weights_for_sampler: the server named neither a sampling session nor a path")
            return await client._open(saved.path, None)

        client._creation = client._connection.start(create, "SaveWeightsForSampler")
        return client

    def __repr__(self) -> str:
        return f"<SamplingClient {describe_creation(self._creation, 'sampler')} at {self._connection.base_url}>"

    def get_sampler_handle(self) -> str:
        """This client as text without secrets, for :meth:`from_sampler_handle` in another process; waits for it.

        Raises:
            ValueError: a client of the embedded server of this process.
            TinkerError: it was not created.
        """
        return self._handle(self._creation.result()).encode()

    @classmethod
    def from_sampler_handle(
        cls, handle: str, *, api_key: str | None = None, default_headers_overrides: Mapping[str, str] | None = None
    ) -> Self:
        """Make the client of a handle; nothing is sent before it is used.

        The API key goes to the address in the handle: take handles only from whom you trust.

        Args:
            handle: what get_sampler_handle gave.
            api_key: as for ServiceClient.
            default_headers_overrides: headers for every request, over those in the handle. Headers that may hold a
                credential are not in it: give them here, or set TINKERWIRE_HEADERS.

        Raises:
            ValueError: no handle of this version of the client, or a header that cannot be sent.
            TinkerError: no API key for a server that needs one.
        """
        require_optional("api_key", api_key, str)
        require_optional("default_headers_overrides", default_headers_overrides, Mapping)
        return cls._from_handle(SamplerHandle.decode(handle), api_key, default_headers_overrides)

    @classmethod
    def _from_handle(cls, found: SamplerHandle, api_key: str | None, headers: Mapping[str, str] | None = None) -> Self:
        lifetime = joined(found, api_key, headers)
        client = cls(lifetime.session, None, record_stability_info=found.record_stability_info)
        client._follow(lifetime, lifetime.session, found.sampling_session_id)
        client._handed_context_length = found.context_length
        return client

    def __reduce__(self) -> tuple[Any, ...]:
        handle, retry_if = self._handle(self._creation.result()), self._retry.retry_if
        plain = attrs.evolve(handle, retry=attrs.evolve(handle.retry, retry_if=None))
        return (_unpickled, (type(self), plain.encode(), retry_if))

    def _handle(self, sampling_session_id: str) -> SamplerHandle:
        session_id, dialect = self._session.known_id, self._connection.known_dialect
        assert session_id is not None
        assert dialect is not None
        headers = select_shareable_headers(self._connection.headers)
        return SamplerHandle(
            base_url=self._connection.base_url,
            session_id=session_id,
            sampling_session_id=sampling_session_id,
            dialect=dialect,
            retry=self._retry,
            record_stability_info=bool(self._record_stability_info),
            headers=headers,
            omitted_headers=tuple(name for name in self._connection.headers if name not in headers),
            context_length=self._context_length(),
        )

    def _follow(self, owner: Owner, session: Session, sampling_session_id: str) -> None:
        """Become a copy, over a connection to the session of another process."""
        connection = session.connection
        self._owner, self._session, self._connection = owner, session, connection
        self._retry = connection.retry
        made: Future[str] = Future()
        made.set_result(sampling_session_id)
        self._creation = APIFuture(made)

        async def ask() -> int:
            await session.id()
            return await join_session(connection, sampling_session_id)

        self._runner = SampleRunner(session, self._retry, connection.sampling_limit, SampleSeqIds(ask))

    def _deadline(self, timeout: float | None) -> Deadline:
        seconds = require_positive_timeout(timeout)
        if seconds is None:
            return self._retry.deadline()
        return Deadline(seconds, "timeout")

    def _start(
        self, work: Callable[[], Coroutine[Any, Any, T]], kind: str, deadline: Deadline | None = None
    ) -> APIFuture[T]:
        """Run an operation; in a process that was forked since, as a copy."""
        is_abroad = not self._connection.is_of_this_process and not is_embedded(self._connection.base_url)
        if is_abroad and self._creation.state == "done":
            sampling_session_id = self._creation.result()
            handle = self._handle(sampling_session_id)
            lifetime = joined(handle)
            self._handed_context_length = handle.context_length
            self._follow(lifetime, lifetime.session, sampling_session_id)
        return self._connection.start(work, kind, deadline)

    def get_telemetry(self) -> Telemetry | None:
        """The reporter of events of the session; None where it is switched off, see TINKER_TELEMETRY."""
        return self._session.telemetry

    @property
    def usage(self) -> Usage:
        """The tokens of this client's results so far; copies of it count their own."""
        return self._runner.usage_counter.usage

    @property
    def load(self) -> SamplingLoad:
        """How many samples are in flight and waiting, of this client and those that share its limit."""
        return self._runner.limit.load

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
        *,
        timeout: float | None = None,
    ) -> APIFuture[SampleResponse]:
        """Sample continuations of a prompt.

        Args:
            prompt: what to continue.
            num_samples: how many continuations, at least 1.
            sampling_params: length, temperature, stop condition and so on. Without max_tokens, the request has
                none, as that of the official client, and the server decides how long a sample may be.
            include_prompt_logprobs: also give the log probability of each prompt token, in nats.
            topk_prompt_logprobs: also give this many of the likeliest tokens at each prompt position.
            topk_sample_logprobs: the same for the samples; wire 0.29.1 and later.
            target_prompt_logprobs: also give the log probabilities of these tokens, int64
                [prompt tokens - 1, any number]: row i in place of prompt token i + 1, -1 for a place without a
                question; wire 0.30.4 and later.
            prompt_alt_tokens_k: also draw this many tokens in place of each prompt token but the first, at the
                temperature of sampling_params; wire 0.31.0 and later.
            prompt_logprobs_last_n: give prompt logprobs of only the last n tokens, fewer than the prompt has; wire
                0.33.1 and later.
            timeout: seconds until RequestTimeoutError, from this call on, every wait included; None: what
                RetryConfig.progress_timeout says. The server is told to drop the sample, where it can.

        Raises:
            ValueError, TypeError: an argument that cannot be sent; nothing was sent.
            ContextLengthError: of the future: the prompt and max_tokens exceed the context that
                get_server_capabilities of the same service returned before; nothing was sent.
        """
        deadline = self._deadline(timeout)
        require_bool("include_prompt_logprobs", include_prompt_logprobs)
        request = sample_request(
            prompt,
            num_samples,
            sampling_params,
            prompt_logprobs=include_prompt_logprobs,
            topk_prompt_logprobs=topk_prompt_logprobs,
            topk_sample_logprobs=topk_sample_logprobs,
            target_prompt_logprobs=target_prompt_logprobs,
            prompt_alt_tokens_k=prompt_alt_tokens_k,
            prompt_logprobs_last_n=prompt_logprobs_last_n,
            record_stability_info=self._record_stability_info,
        )
        return self._start(lambda: self._sample(request, sampling_params.max_tokens), "Sample", deadline)

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
        *,
        timeout: float | None = None,
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
            timeout=timeout,
        )

    def compute_logprobs(
        self, prompt: ModelInput, prompt_logprobs_last_n: int | None = None, *, timeout: float | None = None
    ) -> APIFuture[list[float | None]]:
        """The log probability of each prompt token given those before it, in nats; None for the first.

        With ``prompt_logprobs_last_n`` only the last n tokens have one, and the others None; wire 0.33.1 and later.
        ``timeout`` as for :meth:`sample`.
        """
        deadline = self._deadline(timeout)
        request = sample_request(
            prompt,
            1,
            SamplingParams(max_tokens=1),
            prompt_logprobs=True,
            prompt_logprobs_last_n=prompt_logprobs_last_n,
            record_stability_info=self._record_stability_info,
        )
        return self._start(lambda: self._logprobs(request), "Sample", deadline)

    async def compute_logprobs_async(
        self, prompt: ModelInput, prompt_logprobs_last_n: int | None = None, *, timeout: float | None = None
    ) -> list[float | None]:
        """:meth:`compute_logprobs`, awaited."""
        return await self.compute_logprobs(prompt, prompt_logprobs_last_n, timeout=timeout)

    def get_base_model(self) -> str:
        """The name of the base model."""
        return self._base_model().result()

    async def get_base_model_async(self) -> str:
        """:meth:`get_base_model`, awaited."""
        return await self._base_model()

    def get_tokenizer(self) -> Any:
        """The tokenizer of the base model; see TrainingClient.get_tokenizer."""
        return load_tokenizer(tokenizer_id_of(self.get_base_model()))

    def _base_model(self) -> APIFuture[str]:
        async def ask() -> str:
            found = await self._connection.call(get_sampler(await self._creation.watch()), Traffic.REST)
            if found.base_model is None:  # it is read leniently
                raise TinkerError(f"{found.sampler_id}: the server does not say of which base model this sampler is")
            self._base_model_name = found.base_model
            return found.base_model

        return self._start(ask, "get_sampler")

    async def _open(self, model_path: str | None, base_model: str | None) -> str:
        request = CreateSamplingSessionRequest(
            session_id=await self._session.id(),
            sampling_session_seq_id=self._session.next_sampling_session_seq_id(),
            base_model=base_model,
            model_path=model_path,
        )
        created = await self._connection.call(create_sampling_session(body=request), Traffic.SAMPLING)
        self._base_model_name = base_model
        if model_path is not None:
            self._base_model_name = find_base_model(self._connection, model_path)
        return created.sampling_session_id

    def _context_length(self) -> int | None:
        """The context length of the model, if it is known without a request."""
        known = self._connection.known_models.context_lengths.get(self._base_model_name or "")
        return known or self._handed_context_length

    async def _sample(self, request: SampleRequest, max_tokens: int | None) -> SampleResponse:
        sampling_session_id = await self._creation.watch()
        context_length = self._context_length()
        if context_length is not None:
            check_context_length(request.prompt, max_tokens, context_length)
        return await self._runner.sample(request, sampling_session_id)

    async def _logprobs(self, request: SampleRequest) -> list[float | None]:
        # The one token of the request is not asked for by the user: the prompt alone has to fit.
        return require_prompt_logprobs(request, await self._sample(request, None))


def _unpickled(kind: type[SamplingClient], handle: str, retry_if: RetryIf | None) -> SamplingClient:
    found = SamplerHandle.decode(handle)
    return kind._from_handle(attrs.evolve(found, retry=attrs.evolve(found.retry, retry_if=retry_if)), None)
