"""ServiceClient: the entry point, with one connection, one session, and the clients created from it."""

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
from tinkerwire_generated import models

from ._futures.event_loop import LOOP
from ._futures.future import APIFuture
from ._training.checkpoint_transfer import CheckpointTransfer

# The methods import the modules that they use: connections and sessions take 20 ms, and the other clients as long.
# A fork waits for the lock, and so for modules that another thread imports.
if TYPE_CHECKING:
    import httpx

    from ._connection.retry import RetryConfig
    from ._diagnosis.finding import Finding
    from ._futures.operation_record import OnWait
    from ._rest.client import RestClient
    from ._sampling.client import SamplingClient
    from ._session.session import FinishStatus
    from ._telemetry.reporter import Telemetry
    from ._trace.metrics import Metrics
    from ._training.chunking import ChunkLimits
    from ._training.losses.handles import LossHandle, PerDatumLossFn
    from ._transport.base import Transport
    from ._usage import Usage
    from ._wire.dialect import Dialect


class ServiceClient(CheckpointTransfer):
    """Client of one server that implements the Tinker API, and factory of all other clients.

    The client connects when its first operation starts. Use it as a context manager: leaving the block without an
    error waits for the operations that were started, then closes the client; :meth:`close` drops them. A client without
    references closes when its operations and the clients created from it have ended.

    Args:
        user_metadata: metadata to store with the session.
        project_id: project of the session; default TINKER_PROJECT_ID.
        display_name: name of the session for people.
        base_url: URL of the server; default TINKER_BASE_URL, then the Tinker service. ``"local"`` is the embedded
            server; ``"local:FOLDER"`` keeps its checkpoints, as ``"local"`` with TINKERWIRE_LOCAL_FOLDER does.
            ``"replay:FILE"`` answers from a recording of ``tinkerwire record``.
        api_key: default TINKER_API_KEY, then the output of the shell command TINKER_CREDENTIAL_CMD, then the key in
            ``~/.tinker/credentials.json``. Loopback servers and the embedded server need no key.
        default_headers_overrides: headers of every request. They override those in TINKERWIRE_HEADERS, one
            ``Name: value`` per line, and those of Cloudflare Access from the environment.
        plain_http_hosts: names of other hosts that may receive a credential over plain HTTP; default
            TINKER_PLAIN_HTTP_HOSTS, separated by commas.
        wire_version: wire version of the server; default TINKER_WIRE_VERSION. Without either, the client discovers it
            with one request, and with the first batch if the server accepts several body forms.
        client_config: flags of client/config to use with ``wire_version``, in place of a request for them.
        retry: retry policy and time limits of all operations.
        chunk_limits: maximum size of one forward or forward_backward request.
        on_wait: function of a :class:`WaitStatus`. It is called on a thread for callbacks after 10 s without a result,
            then once a minute.
        exit_timeout: seconds for which the end of a ``with`` block waits for operations; None waits until they end.
            Dropped operations are logged by name.
        http_client: an ``httpx.AsyncClient`` to use instead of the built-in transport. It belongs to this client,
            which closes it.
        transport: any other transport.
        trace: path of a file to write the times of all operations to, for ``tinkerwire trace``; default
            TINKERWIRE_TRACE. It holds no texts, tokens or keys.
        opentelemetry: export spans and metrics through the global providers of OpenTelemetry; default
            TINKERWIRE_OPENTELEMETRY. Needs the extra ``otel``.
        **kwargs: unsupported; ignored with a FutureWarning, as by the official SDK.

    Raises:
        TinkerError: the server needs an API key and none is set, or the key would go over plain HTTP to another host.
        TypeError: an argument has the wrong type.
        ValueError: a header, the URL, the wire version or the path of the trace is invalid.
        ImportError: ``opentelemetry`` is set, and the package is not installed.

    Example:
        >>> with tinker.ServiceClient(base_url="local") as service:
        ...     training = service.create_lora_training_client("tinkerwire/byte-nano", rank=4)
        ...     sampling = training.save_weights_and_get_sampling_client()
        ...     prompt = tinker.ModelInput.from_ints([72, 101, 108, 108])
        ...     params = tinker.SamplingParams(max_tokens=3)
        ...     response = sampling.sample(prompt, num_samples=2, sampling_params=params).result()
        ...     print([len(sequence.tokens) for sequence in response.sequences])
        [3, 3]
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
        trace: str | os.PathLike[str] | None = None,
        opentelemetry: bool | None = None,
        **kwargs: Any,
    ) -> None:
        if kwargs:
            warnings.warn(
                f"ServiceClient ignores unsupported arguments: {', '.join(sorted(kwargs))}. "
                "To set time limits and retries, pass retry=RetryConfig(...).",
                FutureWarning,
                stacklevel=2,
            )
        with LOOP.opening_lock:
            from ._lifecycle.connecting import open_connection  # noqa: PLC0415
            from ._lifecycle.lifetime import Lifetime  # noqa: PLC0415
            from ._session.session import Session  # noqa: PLC0415
            from ._training.chunking import ChunkLimits  # noqa: PLC0415
            from ._training.losses.handles import CustomLosses  # noqa: PLC0415

        require_optional("chunk_limits", chunk_limits, ChunkLimits)
        require_optional_text("display_name", display_name)
        require_optional_metadata("user_metadata", user_metadata)
        require_optional_text("project_id", project_id)
        if on_wait is not None and not callable(on_wait):
            raise TypeError(f"on_wait: expected a function of a WaitStatus, got {type(on_wait).__name__}")
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
            trace=trace,
            opentelemetry=opentelemetry,
        )
        self._uses_sockets = http_client is None and transport is None
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
        state = "closed" if self._connection.closed else self._session.known_id or "no session so far"
        return f"<ServiceClient {self._connection.base_url}, {state}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a ServiceClient cannot be pickled or copied, because its connections belong to this process; create one "
            "in the other process, or send a SamplingClient"
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
        """End the session and close all connections; a second call returns the future of the first one.

        Running operations are dropped, which is logged; the end of a ``with`` block waits for them.

        Args:
            status: finish status of the session, for servers whose wire version has it.
            detail: explanation of the status.

        Raises:
            TypeError: an argument has the wrong type.
            ValueError: the status is unknown.
        """
        from ._session.session import FinishStatus  # noqa: PLC0415

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
        """Create a client that samples from saved sampler weights, or from a base model.

        The client can be used at once. Await it, or call ``result()``, to wait for its creation and get its error.

        Args:
            model_path: path of saved sampler weights.
            base_model: name of a base model.
            retry_config: retry policy of the new client; None uses that of this client.
            record_stability_info: record on the server how samples differ from training; wire 0.26.2 and later.

        Raises:
            ValueError: neither or both of ``model_path`` and ``base_model`` are set, or the path is not of sampler
                weights.
        """
        with LOOP.opening_lock:
            from ._sampling.client import SamplingClient  # noqa: PLC0415

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
        """Await :meth:`create_sampling_client`."""
        return await self.create_sampling_client(model_path, base_model, retry_config, record_stability_info)

    def create_rest_client(self) -> RestClient:
        """Create a client for training runs, checkpoints and sessions, over the same connection."""
        with LOOP.opening_lock:
            from ._rest.client import RestClient  # noqa: PLC0415

        return RestClient(_connection=self._connection)

    def create_custom_loss(
        self, fn: PerDatumLossFn, input_ranks: Mapping[str, models.CustomLossInputRank]
    ) -> APIFuture[LossHandle]:
        """Create a custom loss for forward_backward_custom of the training clients of this session; requires torch.

        ``fn(logprobs, ...)`` is called once, now, with proxies of tensors that trace its computation. It computes the
        loss of one datum from the log probabilities of its target_tokens, in nats, and from the loss_fn_inputs that
        its other parameters name. It returns (loss, metrics): a tensor of one number, which is summed over the batch,
        and a dict of such tensors by ``custom/NAME:sum`` or ``custom/NAME:mean``. It may call torch, math and methods
        of tensors, and must not branch on their values.

        From wire 0.36.0 on, the server computes the loss if its client/config has ``custom_loss_server_side``.
        Otherwise the client computes it, like any function passed to forward_backward_custom.

        Args:
            fn: the loss.
            input_ranks: number of dimensions of each parameter of ``fn``, 0 to 2; ``logprobs`` has that of
                target_tokens.

        Raises:
            ImportError: torch is not installed.
            TypeError: an argument has the wrong type.
            ValueError: the function cannot be traced or breaks these rules. Raised by the future: the session has an
                identical loss.
        """
        from ._training.losses.tracing import trace  # noqa: PLC0415

        traced = trace(fn, input_ranks)
        return self._connection.start(lambda: self._custom_losses.create(traced), "CreateCustomLoss")

    def copy_weights(
        self, path: str, *, ttl_seconds: int | None = None, weights_access_token: str | None = None
    ) -> APIFuture[str]:
        """Copy saved weights of another user into the project of this client; wire 0.26.2 and later.

        Args:
            path: path of the weights.
            ttl_seconds: lifetime of the copy, in seconds; None keeps it indefinitely.
            weights_access_token: token from the owner of the weights; None for public weights.

        Returns:
            A future of the path of the copy.

        Raises:
            TypeError: an argument has the wrong type.
            ValueError: the path is empty. Raised by the future: this client has no project.
            DialectError: raised by the future; the wire version of the server is older.
        """
        from ._checkpoints.access_token import validate_access_token  # noqa: PLC0415
        from ._checkpoints.paths import validate_path  # noqa: PLC0415
        from ._rest.weights_copy import copy_weights_to_project  # noqa: PLC0415

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
        """Id of the session; reading it creates the session if necessary, and waits for it.

        A closed client still has the id of its session.

        Raises:
            ClientClosedError: the client was closed before it had a session.
            TinkerError: the session could not be created.
        """
        return self._session.known_id or self._connection.start(self._session.id, "CreateSession").result()

    def get_console_url(self) -> str:
        """Return the URL of this session in the Tinker console; create the session if necessary."""
        return console_urls.session_page(self.session_id)

    def get_server_capabilities(self) -> models.GetServerCapabilitiesResponse:
        """Return the models that the server supports."""
        return self._capabilities().result()

    async def get_server_capabilities_async(self) -> models.GetServerCapabilitiesResponse:
        """Await :meth:`get_server_capabilities`."""
        return await self._capabilities()

    def _capabilities(self) -> APIFuture[models.GetServerCapabilitiesResponse]:
        from ._connection.capabilities import fetch_capabilities  # noqa: PLC0415

        return self._connection.start(lambda: fetch_capabilities(self._connection))

    def diagnose(self) -> list[Finding]:
        """Check the connection to the server, step by step, as ``tinkerwire doctor`` does.

        The steps are proxy, name lookup, connection with TLS, a request with the credential, dialect, clock and
        latency. The list ends with the first step that failed. A client with a transport of its own skips the steps
        before the request. The connection may take 5 s and the requests together 10 s.

        Raises:
            ClientClosedError: the client is closed.

        Example:
            >>> with tinker.ServiceClient(base_url="local") as service:
            ...     print([f"{finding.name}: {finding.status}" for finding in service.diagnose()])
            ['request: ok', 'dialect: ok', 'latency: ok']
        """
        return self._diagnosis().result()

    async def diagnose_async(self) -> list[Finding]:
        """Await :meth:`diagnose`."""
        return await self._diagnosis()

    def _diagnosis(self) -> APIFuture[list[Finding]]:
        with LOOP.opening_lock:
            from ._diagnosis.server import diagnose  # noqa: PLC0415

        connection, uses_sockets = self._connection, self._uses_sockets
        return connection.start(lambda: diagnose(connection, uses_sockets=uses_sockets), "diagnose")

    @property
    def dialect(self) -> Dialect:
        """Wire version and body forms in use; reading it waits for discovery. A first batch may refine it."""
        return self._connection.known_dialect or self._connection.start(self._connection.dialect).result()

    @property
    def usage(self) -> Usage:
        """Number of tokens in the results of all clients of this service so far."""
        return self._connection.usage_counter.usage

    @property
    def metrics(self) -> Metrics:
        """Counts, durations, waits, retries and bytes of the operations of all clients of this service.

        The first read starts to count; operations that started before it are not counted.
        """
        return self._connection.metrics()

    def get_telemetry(self) -> Telemetry | None:
        """Return the telemetry reporter of the session; None if TINKER_TELEMETRY disables it."""
        return self._session.telemetry
