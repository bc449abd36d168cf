"""The entry point: one server, one session, and the clients made from it."""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING, Any

from typing_extensions import Self

from tinkerwire_base.call import default_converter
from tinkerwire_generated.api.service import get_server_capabilities
from tinkerwire_generated.models import ClientConfigResponse, GetServerCapabilitiesResponse, OptimizerConfig

from .auth import EMBEDDED, resolve_api_key, resolve_base_url
from .backpressure import Traffic
from .chunking import ChunkLimits
from .connection import Connection
from .dialect import Dialect, given
from .futures import APIFuture
from .loop import LOOP
from .rest import RestClient
from .retry import RetryConfig
from .sampling import SamplingClient
from .session import FinishStatus, Session
from .training import TrainingClient
from .transport import AiohttpTransport, HttpxTransport, Transport

if TYPE_CHECKING:
    import httpx


class ServiceClient:
    """A server that speaks the Tinker API.

    Nothing is sent before it is needed. Use it as a context manager, or call :meth:`close`.

    Args:
        user_metadata: kept with the session.
        project_id: project of the session; default TINKER_PROJECT_ID.
        display_name: what people call the session.
        base_url: the server; default TINKER_BASE_URL, then the Tinker service. ``"local"`` is the embedded server.
        api_key: default TINKER_API_KEY; loopback servers and the embedded one need none.
        default_headers_overrides: headers for every request.
        wire_version: which version of the wire the server speaks; default TINKER_WIRE_VERSION, then it
            is found out by one request, and another where the server takes batches in a form of its own.
        client_config: with wire_version, what such a server would say in client/config, as the flags in it.
        retry: the retry policy and time limits of all operations.
        chunk_limits: how large one forward or forward_backward request may be.
        http_client: an ``httpx.AsyncClient`` to send with, in place of the built-in transport.
        transport: anything else that can send.

    Raises:
        TinkerError: no API key for a server that needs one.
        ValueError: an address or wire version that is none.
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
        wire_version: str | None = None,
        client_config: Mapping[str, Any] | None = None,
        retry: RetryConfig | None = None,
        chunk_limits: ChunkLimits | None = None,
        http_client: httpx.AsyncClient | None = None,
        transport: Transport | None = None,
    ) -> None:
        _expect("retry", retry, RetryConfig)
        _expect("chunk_limits", chunk_limits, ChunkLimits)
        _expect("base_url", base_url, str)
        _expect("display_name", display_name, str)
        _expect("client_config", client_config, Mapping)
        _expect("api_key", api_key, str)
        _expect("user_metadata", user_metadata, Mapping)
        _expect("default_headers_overrides", default_headers_overrides, Mapping)
        url = resolve_base_url(base_url)
        key = resolve_api_key(api_key, url)
        self._connection = Connection(
            url,
            key,
            transport or _transport(url, http_client),
            _dialect(wire_version, client_config),
            retry or RetryConfig(),
            default_headers_overrides or {},
        )
        self._chunk_limits = chunk_limits or ChunkLimits()
        self._session = Session(
            self._connection,
            user_metadata,
            project_id or os.environ.get("TINKER_PROJECT_ID") or None,
            display_name,
        )
        self._close_lock = threading.Lock()
        self._closing: APIFuture[None] | None = None
        LOOP.acquire()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(
            "success" if fault is None else "errored" if isinstance(fault, Exception) else "interrupted"
        ).result()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close("success" if fault is None else "errored" if isinstance(fault, Exception) else "interrupted")

    def close(self, status: FinishStatus = "success", detail: str | None = None) -> APIFuture[None]:
        """End the session and close all connections; a second call gives the first one's future.

        ``status`` and ``detail`` are for servers whose wire version can be told how a session ended.
        """
        with self._close_lock:
            if self._closing is None:
                self._closing = self._begin_close(status, detail)
            return self._closing

    def create_lora_training_client(
        self,
        base_model: str,
        rank: int = 32,
        seed: int | None = None,
        train_mlp: bool = True,
        train_attn: bool = True,
        train_unembed: bool = True,
        user_metadata: dict[str, str] | None = None,
        optimizer: OptimizerConfig | None = None,
    ) -> TrainingClient:
        """A client for a new LoRA adapter on ``base_model``.

        It can be used at once: its operations queue behind the creation. ``await`` it, or call ``.result()``, to
        wait for the creation and see its error.

        Args:
            rank: rank of the adapter's matrices, at least 1.
            seed: seed of their first values; None lets the server choose.
            train_mlp, train_attn, train_unembed: which parts get an adapter; at least one.
            user_metadata: kept with the model.
            optimizer: the kind of optimizer; None is AdamW, others exist in wire 0.29.1 and later.

        Raises:
            ValueError: a rank below 1, or no part to train.
        """
        return TrainingClient._create(
            self._session,
            self._chunk_limits,
            base_model=base_model,
            rank=rank,
            seed=seed,
            train_mlp=train_mlp,
            train_attn=train_attn,
            train_unembed=train_unembed,
            user_metadata=user_metadata,
            optimizer=optimizer,
        )

    async def create_lora_training_client_async(self, base_model: str, *args: Any, **kwargs: Any) -> TrainingClient:
        """:meth:`create_lora_training_client`, awaited."""
        return await self.create_lora_training_client(base_model, *args, **kwargs)

    def create_training_client_from_state(
        self,
        path: str,
        base_model: str | None = None,
        user_metadata: dict[str, str] | None = None,
        weights_access_token: str | None = None,
        optimizer: OptimizerConfig | None = None,
    ) -> TrainingClient:
        """A client for a new adapter that starts with the weights saved at ``path``, and a fresh optimizer.

        Args:
            path: what save_state gave.
            base_model: the base model, where the server is not to be asked for it.
            user_metadata: kept with the model, over that of the model which was saved.
            weights_access_token: for weights that are not one's own; wire 0.18.2 and later.
            optimizer: the kind of optimizer; None is AdamW, others exist in wire 0.29.1 and later.

        Raises:
            ValueError: a path of sampler weights; nothing was sent.
        """
        return TrainingClient._from_state(
            self._session,
            self._chunk_limits,
            path,
            base_model=base_model,
            user_metadata=user_metadata,
            weights_access_token=weights_access_token,
            optimizer=optimizer,
            with_optimizer_state=False,
        )

    async def create_training_client_from_state_async(self, path: str, *args: Any, **kwargs: Any) -> TrainingClient:
        """:meth:`create_training_client_from_state`, awaited."""
        return await self.create_training_client_from_state(path, *args, **kwargs)

    def create_training_client_from_state_with_optimizer(
        self,
        path: str,
        base_model: str | None = None,
        user_metadata: dict[str, str] | None = None,
        weights_access_token: str | None = None,
    ) -> TrainingClient:
        """A client that goes on where the one that saved ``path`` was, its optimizer included.

        Arguments and errors as for :meth:`create_training_client_from_state`.
        """
        return TrainingClient._from_state(
            self._session,
            self._chunk_limits,
            path,
            base_model=base_model,
            user_metadata=user_metadata,
            weights_access_token=weights_access_token,
            optimizer=None,
            with_optimizer_state=True,
        )

    async def create_training_client_from_state_with_optimizer_async(
        self, path: str, *args: Any, **kwargs: Any
    ) -> TrainingClient:
        """:meth:`create_training_client_from_state_with_optimizer`, awaited."""
        return await self.create_training_client_from_state_with_optimizer(path, *args, **kwargs)

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

    def get_server_capabilities(self) -> GetServerCapabilitiesResponse:
        """The models that the server supports."""
        return self._capabilities().result()

    async def get_server_capabilities_async(self) -> GetServerCapabilitiesResponse:
        """:meth:`get_server_capabilities`, awaited."""
        return await self._capabilities()

    def _capabilities(self) -> APIFuture[GetServerCapabilitiesResponse]:
        return self._connection.start(self._connection.call(get_server_capabilities(), Traffic.REST))

    @property
    def dialect(self) -> Dialect:
        """How this client speaks to its server; waits until that is found out. A first batch may teach more."""
        return self._connection.start(self._connection.dialect()).result()

    def _begin_close(self, status: FinishStatus, detail: str | None) -> APIFuture[None]:
        end: Future[None] = Future()
        # Not to be cancelled: half closed is worse than either.
        end.set_running_or_notify_cancel()

        def finish(work: Future[None]) -> None:
            LOOP.release()
            fault = work.exception()
            if fault is None:
                end.set_result(None)
            else:
                end.set_exception(fault)

        self._connection.closed = True
        if self._connection.is_of_this_process:
            LOOP.start(self._close(status, detail)).add_done_callback(finish)
        else:
            # The connections are the parent's, who still uses them.
            end.set_result(None)
        return APIFuture(end)

    async def _close(self, status: FinishStatus, detail: str | None) -> None:
        await self._connection.end_operations()
        try:
            await self._session.close(status, detail)
        finally:
            await self._connection.close()


def _dialect(wire_version: str | None, client_config: Mapping[str, Any] | None) -> Dialect | None:
    version = wire_version or os.environ.get("TINKER_WIRE_VERSION")
    if version:
        return given(version, default_converter().structure(dict(client_config or {}), ClientConfigResponse))
    if client_config is not None:
        raise ValueError("client_config: without wire_version the server itself is asked; leave one or give both")
    return None


def _expect(name: str, value: object, kind: type) -> None:
    if value is not None and not isinstance(value, kind):
        # Without the value, which may be a key.
        raise TypeError(f"{name}: expected {kind.__name__}, got {type(value).__name__}")


def _transport(url: str, http_client: httpx.AsyncClient | None) -> Transport:
    if http_client is not None and not inspect.iscoroutinefunction(getattr(http_client, "request", None)):
        raise TypeError(f"http_client: expected an httpx.AsyncClient, got {type(http_client).__name__}")
    if url == EMBEDDED:
        if http_client is not None:
            raise ValueError(f"http_client: base_url={EMBEDDED!r} has no socket for it to speak through; leave it away")
        from .local import embedded_transport  # noqa: PLC0415  (the server is not loaded unless it is used)

        return embedded_transport()
    return AiohttpTransport(url) if http_client is None else HttpxTransport(http_client, url)
