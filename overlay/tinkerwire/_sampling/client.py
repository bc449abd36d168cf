"""SamplingClient: samples and prompt logprobs from a base model or from saved weights."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from typing_extensions import Self

from tinkerwire_base.errors import NotFoundError, TinkerError
from tinkerwire_base.validators import require_bool, require_optional_text
from tinkerwire_generated import models
from tinkerwire_generated.api.sampling import create_sampling_session, get_sampler

from .._checkpoints.paths import reject_path_kind
from .._checkpoints.weights_info import find_base_model
from .._connection.retry import RetryConfig
from .._futures.deadline import Deadline, require_positive_timeout
from .._futures.future import APIFuture, describe_creation
from .._futures.operation_record import current_operation
from .._session.session import Session
from .._telemetry.reporter import Telemetry
from .._tokenizers.lookup import load_tokenizer, tokenizer_id_of
from .._transport.backpressure import SamplingLoad, Traffic
from .._usage import Usage
from .copies import CopyableSampler
from .request import build_sample_request, check_context_length
from .response_checks import require_prompt_logprobs

T = TypeVar("T")


class SamplingClient(CopyableSampler):
    """Client that samples from one set of weights.

    A ServiceClient or a TrainingClient creates these clients. Every method starts its operation at once and returns a
    future; many samples may be in flight at once. Await the client, or call ``result()``, to wait for its creation.

    Errors of the server are raised by the future: an APIError, or a RequestFailedError if the sample itself failed.
    Arguments are validated before anything is sent.

    A client can be pickled, copied, and used in a forked process. The copy belongs to the same sampling session and
    uses its own range of seq_ids. It keeps the address, session, dialect, retry policy and headers. It does not keep a
    custom HTTP client, the API key, or headers whose name or value looks like a credential: the other process finds its
    own key as a ServiceClient there would, and reads headers from TINKERWIRE_HEADERS.

    Example:
        >>> service = tinker.ServiceClient(base_url="local")
        >>> sampling = service.create_sampling_client(base_model="tinkerwire/byte-nano")
        >>> prompt = tinker.ModelInput.from_ints([72, 101, 108, 108])
        >>> params = tinker.SamplingParams(max_tokens=3, seed=1)
        >>> response = sampling.sample(prompt, num_samples=2, sampling_params=params).result()
        >>> [len(sequence.tokens) for sequence in response.sequences]
        [3, 3]
        >>> len(sampling.compute_logprobs(prompt).result())
        4
        >>> service.close().result()
    """

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
            raise ValueError("create_sampling_client: give exactly one of model_path and base_model")
        if model_path is not None:
            reject_path_kind("training", model_path, "be sampled from", name="model_path")
        require_optional_text("base_model", base_model)
        if base_model == "":
            raise ValueError("base_model: must name a model, got ''; get_server_capabilities() lists the models")
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
        save: Callable[[], Awaitable[models.SaveWeightsForSamplerResponseInternal]],
        retry_config: RetryConfig | None,
        *,
        record_stability_info: bool = False,
    ) -> Self:
        client = cls(session, retry_config, record_stability_info=record_stability_info)

        async def create() -> str:
            saved = await save()
            client._base_model_name = session.connection.known_models.base_models.get(await model.watch())
            if saved.sampling_session_id is not None:
                trace = current_operation().trace
                if trace is not None:
                    trace.sampler, trace.model = saved.sampling_session_id, client._base_model_name or ""
                client._session_id = session.connection.session_state.id
                return saved.sampling_session_id
            if saved.path is None:
                raise TinkerError(
                    "save_weights_for_sampler: the response contains neither a sampling session nor a path"
                )
            return await client._open(saved.path, None)

        client._creation = client._connection.start(create, "SaveWeightsForSampler")
        return client

    def __repr__(self) -> str:
        return f"<SamplingClient {describe_creation(self._creation, 'sampler')} at {self._connection.base_url}>"

    def _deadline(self, timeout: float | None) -> Deadline:
        seconds = require_positive_timeout(timeout)
        if seconds is None:
            return self._retry.deadline()
        return Deadline(seconds, "timeout")

    def get_telemetry(self) -> Telemetry | None:
        """Return the telemetry reporter of the session; None if telemetry is disabled, see TINKER_TELEMETRY."""
        return self._session.telemetry

    @property
    def usage(self) -> Usage:
        """Tokens of this client's results so far; copies count their own tokens."""
        return self._runner.usage_counter.usage

    @property
    def load(self) -> SamplingLoad:
        """Number of samples in flight and waiting, of all clients that share this client's limit."""
        return self._runner.limit.load

    @property
    def sampling_session_id(self) -> str:
        """Id of the sampling session; reading it waits for the creation and raises its error."""
        return self._creation.result()

    def sample(
        self,
        prompt: models.ModelInput,
        num_samples: int,
        sampling_params: models.SamplingParams,
        include_prompt_logprobs: bool = False,
        topk_prompt_logprobs: int = 0,
        topk_sample_logprobs: int = 0,
        target_prompt_logprobs: models.TensorData | None = None,
        prompt_alt_tokens_k: int = 0,
        prompt_logprobs_last_n: int | None = None,
        *,
        timeout: float | None = None,
    ) -> APIFuture[models.SampleResponse]:
        """Sample continuations of a prompt.

        Args:
            prompt: the prompt, at least one token.
            num_samples: number of continuations, at least 1.
            sampling_params: maximum length, temperature, stop condition and so on. Without ``max_tokens`` the server
                decides the maximum length.
            include_prompt_logprobs: request the logprob of each prompt token.
            topk_prompt_logprobs: number of likeliest tokens to return per prompt position; 0 returns none. Wire 0.3.0
                and later.
            topk_sample_logprobs: number of likeliest tokens to return per sampled token; 0 returns none. Wire 0.29.1
                and later.
            target_prompt_logprobs: request the logprobs of these tokens, int64 ``[prompt tokens - 1, k]``. Row i holds
                candidates for prompt token i + 1; -1 skips a cell. Wire 0.30.4 and later.
            prompt_alt_tokens_k: number of tokens to sample in place of each prompt token but the first, at the
                temperature of ``sampling_params``; 0 samples none. Wire 0.31.0 and later.
            prompt_logprobs_last_n: request prompt logprobs of the last n tokens only; n must be smaller than the
                prompt. Wire 0.33.1 and later.
            timeout: seconds from this call until RequestTimeoutError, all waits included; None uses
                RetryConfig.progress_timeout. The client then cancels the sample on the server, if the server
                supports it.

        Returns:
            A future of the response. ``sequences`` has ``num_samples`` items, each with int32 ``tokens`` and float32
            ``logprobs`` of the same length. ``prompt_logprobs`` has one value per prompt token, None for the first.
            All logprobs are in nats.

        Raises:
            ValueError, TypeError: an argument is invalid; nothing was sent.
            ContextLengthError: raised by the future; prompt and max_tokens exceed the context length, which the client
                knows from get_server_capabilities. Nothing was sent.
            DialectError: raised by the future; the wire version of the server does not support an argument.
            APIResponseValidationError: raised by the future; the response does not fit the request.
            RequestTimeoutError: raised by the future; the time limit has passed.
        """
        deadline = self._deadline(timeout)
        require_bool("include_prompt_logprobs", include_prompt_logprobs)
        request = build_sample_request(
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
        return self._start_sample(partial(self._sample, request, sampling_params.max_tokens), deadline)

    async def sample_async(
        self,
        prompt: models.ModelInput,
        num_samples: int,
        sampling_params: models.SamplingParams,
        include_prompt_logprobs: bool = False,
        topk_prompt_logprobs: int = 0,
        topk_sample_logprobs: int = 0,
        target_prompt_logprobs: models.TensorData | None = None,
        prompt_alt_tokens_k: int = 0,
        prompt_logprobs_last_n: int | None = None,
        *,
        timeout: float | None = None,
    ) -> models.SampleResponse:
        """Sample, and return the response; arguments and errors as for :meth:`sample`."""
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
        self, prompt: models.ModelInput, prompt_logprobs_last_n: int | None = None, *, timeout: float | None = None
    ) -> APIFuture[list[float | None]]:
        """Compute the logprob of each prompt token, given the tokens before it.

        Args:
            prompt: the prompt, at least one token.
            prompt_logprobs_last_n: compute the logprobs of the last n tokens only, and return None for the others.
                Wire 0.33.1 and later.
            timeout: as for :meth:`sample`.

        Returns:
            A future of the logprobs in nats, one per prompt token; None for the first token.

        Raises:
            ValueError, TypeError: an argument is invalid; nothing was sent.
            APIResponseValidationError: raised by the future; the server returned no logprobs, or the wrong number.
        """
        deadline = self._deadline(timeout)
        request = build_sample_request(
            prompt,
            1,
            models.SamplingParams(max_tokens=1),
            prompt_logprobs=True,
            prompt_logprobs_last_n=prompt_logprobs_last_n,
            record_stability_info=self._record_stability_info,
        )
        return self._start_sample(partial(self._logprobs, request), deadline)

    async def compute_logprobs_async(
        self, prompt: models.ModelInput, prompt_logprobs_last_n: int | None = None, *, timeout: float | None = None
    ) -> list[float | None]:
        """Compute the logprobs, and return them; arguments and errors as for :meth:`compute_logprobs`."""
        return await self.compute_logprobs(prompt, prompt_logprobs_last_n, timeout=timeout)

    def get_base_model(self) -> str:
        """Return the name of the base model.

        Raises:
            TinkerError: the creation of the client failed, or the server does not report the base model.
        """
        return self._base_model().result()

    async def get_base_model_async(self) -> str:
        """Return the name of the base model; errors as for :meth:`get_base_model`."""
        return await self._base_model()

    def get_tokenizer(self) -> Any:
        """Return the tokenizer of the base model; see TrainingClient.get_tokenizer."""
        return load_tokenizer(tokenizer_id_of(self.get_base_model()))

    def _base_model(self) -> APIFuture[str]:
        async def fetch() -> str:
            sampler = await self._connection.call(get_sampler(await self._creation.watch()), Traffic.REST)
            if sampler.base_model is None:  # lenient decoding
                raise TinkerError(f"{sampler.sampler_id}: the server does not report the base model of this sampler")
            self._base_model_name = sampler.base_model
            return sampler.base_model

        return self._start(fetch, "get_sampler")

    async def _open(self, model_path: str | None, base_model: str | None) -> str:
        request = models.CreateSamplingSessionRequest(
            session_id=await self._session.id(),
            sampling_session_seq_id=self._session.next_sampling_session_seq_id(),
            base_model=base_model,
            model_path=model_path,
        )
        created = await self._connection.call(create_sampling_session(body=request), Traffic.SAMPLING)
        self._base_model_name = base_model
        if model_path is not None:
            self._base_model_name = find_base_model(self._connection, model_path)
        trace = current_operation().trace
        if trace is not None:
            trace.sampler, trace.model = created.sampling_session_id, self._base_model_name or ""
        self._session_id = self._connection.session_state.id
        return created.sampling_session_id

    async def _sample(self, request: models.SampleRequest, max_tokens: int | None) -> models.SampleResponse:
        runner = self._runner
        sampling_session_id = await runner.prepare(self._creation)
        trace = current_operation().trace
        if trace is not None:
            trace.sampler, trace.model = sampling_session_id, self._base_model_name or ""
        context_length = self._context_length()
        if context_length is not None:
            check_context_length(request.prompt, max_tokens, context_length)
        try:
            return await runner.sample(request, sampling_session_id)
        except NotFoundError as error:
            state = self._connection.session_state
            if self._session_id in ("", state.id):
                raise
            # A training client with recovery has replaced the lost session.
            raise state.expired_error(str(error), self._session_id) from error

    async def _logprobs(self, request: models.SampleRequest) -> list[float | None]:
        # The user did not request the one sampled token: only the prompt must fit.
        return require_prompt_logprobs(request, await self._sample(request, None))
