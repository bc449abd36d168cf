"""The entry point: one server, one session, and the clients made from it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Mapping
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from typing_extensions import Self

from tinkerwire_base import console_urls
from tinkerwire_base.validators import (
    require_int,
    require_optional,
    require_optional_metadata,
    require_optional_text,
    validator_of,
)
from tinkerwire_generated.models import CustomLossInputRank, GetServerCapabilitiesResponse

from ._checkpoints.access_token import validate_access_token
from ._checkpoints.paths import validate_path
from ._connection.capabilities import fetch_capabilities
from ._connection.retry import RetryConfig
from ._futures.future import APIFuture
from ._futures.operation_record import OnWait
from ._lifecycle.connecting import open_connection
from ._lifecycle.lifetime import Lifetime
from ._rest.client import RestClient
from ._rest.weights_copy import copy_weights_to_project
from ._sampling.client import SamplingClient
from ._session.session import FinishStatus, Session
from ._telemetry.reporter import Telemetry
from ._training.chunking import ChunkLimits
from ._training.client_creation import TrainingClientFactory
from ._training.losses.handles import CustomLosses, LossHandle, PerDatumLossFn
from ._training.losses.tracing import trace
from ._transport.base import Transport
from ._usage import Usage
from ._wire.dialect import Dialect

if TYPE_CHECKING:
    import httpx


class ServiceClient(TrainingClientFactory):
    """A server that speaks the Tinker API.

    Nothing is sent before it is needed. Use it as a context manager: leaving the block without an error waits for the
    operations that were started, and closes the client. :meth:`close` drops them. A client that nobody holds any more,
    nor any client made from it, ends by itself once its operations have ended; the server lets the session run out.

    Args:
        user_metadata: kept with the session.
        project_id: project of the session; default TINKER_PROJECT_ID.
        display_name: what people call the session.
        base_url: the server; default TINKER_BASE_URL, then the Tinker service. ``"local"`` is the embedded
            server; ``"local:FOLDER"`` keeps its checkpoints, as ``"local"`` with TINKERWIRE_LOCAL_FOLDER does.
        api_key: default TINKER_API_KEY, then what the shell command TINKER_CREDENTIAL_CMD prints, then the key in
            ``~/.tinker/credentials.json``; loopback servers and the embedded one need none.
        default_headers_overrides: headers for every request, over those in TINKERWIRE_HEADERS, one ``Name: value`` a
            line, and over those of Cloudflare Access from the environment.
        plain_http_hosts: other machines that may be sent a credential over plain http, by host name; default
            TINKER_PLAIN_HTTP_HOSTS, separated by commas.
        wire_version: which version of the wire the server speaks; default TINKER_WIRE_VERSION, then it
            is found out by one request, and another where the server takes batches in a form of its own.
        client_config: with wire_version, what such a server would say in client/config, as the flags in it.
        retry: the retry policy and time limits of all operations.
        chunk_limits: how large one forward or forward_backward request may be.
        on_wait: called on a thread for callbacks with a :class:`Waiting` after 10 s without a result, and then once a
            minute: what is waited for, its request id, and the state of the queue.
        exit_timeout: how many seconds the end of a ``with`` block waits for operations under way; default None: until
            they have ended. Those that are dropped are logged by name.
        http_client: an ``httpx.AsyncClient`` to send with, in place of the built-in transport; it is of this client
            alone, and closed with it.
        transport: anything else that can send.
        **kwargs: unsupported and ignored, with a FutureWarning, as by the official SDK.

    Raises:
        TinkerError: no API key for a server that needs one, or one that would go in the clear to another machine.
        ValueError: a header that cannot be sent, an address or wire version that is none.
    """

    def __init__(
        self,
        user_metadata: dict[str, str] | None = None,
        project_id: str | None = None,
        *,
        display_name: str | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        default_headers_overrides: Mapping[str, str] | None = None,
        plain_http_hosts: Collection[str] | None = None,
        wire_version: str | None = None,
        client_config: Mapping[str, Any] | None = None,
        retry: RetryConfig | None = None,
        chunk_limits: ChunkLimits | None = None,
        on_wait: OnWait | None = None,
        exit_timeout: float | None = None,
        http_client: httpx.AsyncClient | None = None,
        transport: Transport | None = None,
        **kwargs: Any,
    ) -> None:
        if kwargs:
            warnings.warn(
                f"ServiceClient ignores the arguments that it does not have: {', '.join(sorted(kwargs))}. "
                "RetryConfig has the settings of time limits and retries: give retry=RetryConfig(...).",
                FutureWarning,
                stacklevel=2,
            )
        require_optional("chunk_limits", chunk_limits, ChunkLimits)
        require_optional_text("display_name", display_name)
        require_optional_metadata("user_metadata", user_metadata)
        require_optional_text("project_id", project_id)
        if on_wait is not None and not callable(on_wait):
            raise TypeError(f"on_wait: expected a function of a Waiting, got {type(on_wait).__name__}")
        self._connection = open_connection(
            base_url,
            api_key,
            plain_http_hosts=plain_http_hosts,
            headers=default_headers_overrides,
            wire_version=wire_version,
            client_config=client_config,
            retry=retry,
            http_client=http_client,
            transport=transport,
        )
        self._chunk_limits = chunk_limits or ChunkLimits()
        open_session = partial(
            Session,
            user_metadata=user_metadata,
            project_id=project_id or os.environ.get("TINKER_PROJECT_ID") or None,
            display_name=display_name,
        )
        self._lifetime = Lifetime(self._connection, open_session, on_wait=on_wait, exit_timeout=exit_timeout)
        self._session = self._lifetime.session
        self._custom_losses = CustomLosses(self._session)

    def __repr__(self) -> str:
        about = "closed" if self._connection.closed else self._session.known_id or "no session so far"
        return f"<ServiceClient {self._connection.base_url}, {about}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a ServiceClient cannot be pickled or copied: its connections belong to this process; make one where it is "
            "needed, or send a SamplingClient"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lifetime.exit(error)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._lifetime.exit_async(error)

    def close(self, status: FinishStatus = "success", detail: str | None = None) -> APIFuture[None]:
        """End the session and close all connections; a second call gives the first one's future.

        Operations under way are dropped, which is logged; the end of a ``with`` block waits for them.

        ``status`` and ``detail`` are for servers whose wire version can be told how a session ended.

        Raises:
            ValueError, TypeError: a status or detail that there is not; nothing is closed.
        """
        validator_of(FinishStatus)("status", status)
        require_optional_text("detail", detail)
        return self._lifetime.close(status, detail)

    def create_sampling_client(
        self,
        model_path: str | None = None,
        base_model: str | None = None,
        retry_config: RetryConfig | None = None,
        record_stability_info: bool = False,
    ) -> SamplingClient:
        """A client that samples from saved sampler weights, or from a base model.

        Usable at once; ``await`` it, or call ``.result()``, to wait for it and see its error.

        Raises:
            ValueError: neither or both given, or a path that cannot be sampled from.
        """
        return SamplingClient._create(
            self._session, model_path, base_model, retry_config, record_stability_info=record_stability_info
        )

    async def create_sampling_client_async(
        self,
        model_path: str | None = None,
        base_model: str | None = None,
        retry_config: RetryConfig | None = None,
        record_stability_info: bool = False,
    ) -> SamplingClient:
        """:meth:`create_sampling_client`, awaited."""
        return await self.create_sampling_client(model_path, base_model, retry_config, record_stability_info)

    def create_rest_client(self) -> RestClient:
        """A client for training runs, checkpoints and sessions, over the same connection."""
        return RestClient(_connection=self._connection)

    def create_custom_loss(
        self, fn: PerDatumLossFn, input_ranks: Mapping[str, CustomLossInputRank]
    ) -> APIFuture[LossHandle]:
        """Make a loss of your own once, for forward_backward_custom of the training clients made here; needs torch.

        ``fn(logprobs, ...)`` is called once, now, with stand-ins for tensors that take down what it does with them.
        It computes the loss of one datum from the log probabilities of its target_tokens, in nats, and from inputs of
        its loss_fn_inputs, those that its other parameters name. It returns (loss, metrics): a tensor of one number,
        which is summed over the batch, and a dict of such tensors by ``custom/NAME:sum`` or ``custom/NAME:mean``. It
        may call torch, math and methods of tensors, and must not branch on their values.

        Wire 0.36.0 and later: the server computes the loss where its client/config says so. Elsewhere this side does,
        as for any function that forward_backward_custom is given.

        Args:
            fn: the loss.
            input_ranks: how many dimensions each of its parameters has, 0 to 2; logprobs has those of target_tokens.

        Raises:
            ImportError: torch is not installed.
            ValueError, TypeError: a function that cannot be taken down or that breaks these rules; nothing was sent.
                Of the future: the session has this very loss.
        """
        traced = trace(fn, input_ranks)
        return self._connection.start(lambda: self._custom_losses.create(traced), "CreateCustomLoss")

    def copy_weights(
        self, path: str, *, ttl_seconds: int | None = None, weights_access_token: str | None = None
    ) -> APIFuture[str]:
        """Copy saved weights of somebody else into the project of this client; the path of the copy.

        Args:
            path: of the weights.
            ttl_seconds: how long the copy is kept; None: for good.
            weights_access_token: what their owner gave; None for weights that are public.

        Raises:
            ValueError: an empty path; nothing was sent. Of the future: this client has no project.
            DialectError: of the future, before wire 0.26.2.
        """
        validate_path(path)
        validate_access_token(weights_access_token)
        if ttl_seconds is not None:
            require_int("ttl_seconds", ttl_seconds)
        connection, session = self._connection, self._session
        return connection.start(
            lambda: copy_weights_to_project(
                connection, path, session.project_id, ttl_seconds, weights_access_token, session=session
            )
        )

    @property
    def session_id(self) -> str:
        """The session's id; creates the session if there is none yet, and waits for that.

        A closed client still has the id of its session.

        Raises:
            ClientClosedError: the client was closed before it had a session.
            TinkerError: the session could not be created.
        """
        return self._session.known_id or self._connection.start(self._session.id, "CreateSession").result()

    def get_console_url(self) -> str:
        """The page of this session in the Tinker service's console; waits until there is a session."""
        return console_urls.session_page(self.session_id)

    def get_server_capabilities(self) -> GetServerCapabilitiesResponse:
        """The models that the server supports."""
        return self._capabilities().result()

    async def get_server_capabilities_async(self) -> GetServerCapabilitiesResponse:
        """:meth:`get_server_capabilities`, awaited."""
        return await self._capabilities()

    def _capabilities(self) -> APIFuture[GetServerCapabilitiesResponse]:
        return self._connection.start(lambda: fetch_capabilities(self._connection))

    @property
    def dialect(self) -> Dialect:
        """How this client speaks to its server; waits until that is found out. A first batch may teach more."""
        return self._connection.known_dialect or self._connection.start(self._connection.dialect).result()

    @property
    def usage(self) -> Usage:
        """The tokens of the results of all clients of this service so far."""
        return self._connection.usage_counter.usage

    def get_telemetry(self) -> Telemetry | None:
        """The reporter of events of the session; None where it is switched off, see TINKER_TELEMETRY."""
        return self._session.telemetry
