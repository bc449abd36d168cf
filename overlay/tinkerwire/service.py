"""The entry point: one server, one session, and the clients made from it."""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import Self

from tinkerwire_base.projection import parse_version
from tinkerwire_generated.api.service import get_server_capabilities
from tinkerwire_generated.models import GetServerCapabilitiesResponse
from tinkerwire_generated.times import NEWEST

from .auth import EMBEDDED, resolve_api_key, resolve_base_url
from .backpressure import Traffic
from .chunking import ChunkLimits
from .connection import Connection
from .futures import APIFuture
from .loop import LOOP
from .rest import RestClient
from .retry import RetryConfig
from .sampling import SamplingClient
from .session import Session
from .training import TrainingClient
from .transport import AiohttpTransport, HttpxTransport, Transport
from .version import DEFAULT_WIRE

if TYPE_CHECKING:
    import httpx


class ServiceClient:
    """A server that speaks the Tinker API.

    Nothing is sent before it is needed. Use it as a context manager, or call :meth:`close`.

    Args:
        user_metadata: kept with the session.
        project_id: project of the session; default TINKER_PROJECT_ID.
        base_url: the server; default TINKER_BASE_URL, then the Tinker service. ``"local"`` is the embedded server.
        api_key: default TINKER_API_KEY; loopback servers and the embedded one need none.
        default_headers_overrides: headers for every request.
        wire_version: which version of the wire the server speaks; default TINKER_WIRE_VERSION, then 0.16.1.
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
        base_url: str | None = None,
        api_key: str | None = None,
        default_headers_overrides: Mapping[str, str] | None = None,
        wire_version: str | None = None,
        retry: RetryConfig | None = None,
        chunk_limits: ChunkLimits | None = None,
        http_client: httpx.AsyncClient | None = None,
        transport: Transport | None = None,
    ) -> None:
        _expect("retry", retry, RetryConfig)
        _expect("chunk_limits", chunk_limits, ChunkLimits)
        _expect("base_url", base_url, str)
        _expect("api_key", api_key, str)
        _expect("user_metadata", user_metadata, Mapping)
        _expect("default_headers_overrides", default_headers_overrides, Mapping)
        url = resolve_base_url(base_url)
        key = resolve_api_key(api_key, url)
        self._connection = Connection(
            url,
            key,
            transport or _transport(url, http_client),
            _wire_version(wire_version),
            retry or RetryConfig(),
            default_headers_overrides or {},
        )
        self._chunk_limits = chunk_limits or ChunkLimits()
        self._session = Session(
            self._connection, user_metadata, project_id or os.environ.get("TINKER_PROJECT_ID") or None
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

    def close(
        self, status: Literal["success", "errored", "interrupted"] = "success", detail: str | None = None
    ) -> APIFuture[None]:
        """End the session and close all connections; a second call gives the first one's future.

        ``status`` and ``detail`` are for servers whose wire version can be told how a session ended.
        """
        with self._close_lock:
            if self._closing is None:
                self._closing = self._begin_close()
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
    ) -> TrainingClient:
        """A client for a new LoRA adapter on ``base_model``.

        It can be used at once: its operations queue behind the creation. ``await`` it, or call ``.result()``, to
        wait for the creation and see its error.

        Args:
            rank: rank of the adapter's matrices, at least 1.
            seed: seed of their first values; None lets the server choose.
            train_mlp, train_attn, train_unembed: which parts get an adapter; at least one.

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
        )

    async def create_lora_training_client_async(self, base_model: str, *args: Any, **kwargs: Any) -> TrainingClient:
        """:meth:`create_lora_training_client`, awaited."""
        return await self.create_lora_training_client(base_model, *args, **kwargs)

    def create_training_client_from_state(
        self, path: str, base_model: str | None = None, user_metadata: dict[str, str] | None = None
    ) -> TrainingClient:
        """A client for a new adapter that starts with the weights saved at ``path``, and a fresh optimizer."""
        return TrainingClient._from_state(
            self._session, self._chunk_limits, path, base_model, user_metadata, optimizer=False
        )

    async def create_training_client_from_state_async(
        self, path: str, base_model: str | None = None, user_metadata: dict[str, str] | None = None
    ) -> TrainingClient:
        """:meth:`create_training_client_from_state`, awaited."""
        return await self.create_training_client_from_state(path, base_model, user_metadata)

    def create_training_client_from_state_with_optimizer(
        self, path: str, base_model: str | None = None, user_metadata: dict[str, str] | None = None
    ) -> TrainingClient:
        """A client that goes on where the one that saved ``path`` was, its optimizer included."""
        return TrainingClient._from_state(
            self._session, self._chunk_limits, path, base_model, user_metadata, optimizer=True
        )

    async def create_training_client_from_state_with_optimizer_async(
        self, path: str, base_model: str | None = None, user_metadata: dict[str, str] | None = None
    ) -> TrainingClient:
        """:meth:`create_training_client_from_state_with_optimizer`, awaited."""
        return await self.create_training_client_from_state_with_optimizer(path, base_model, user_metadata)

    def create_sampling_client(
        self,
        model_path: str | None = None,
        base_model: str | None = None,
        retry_config: RetryConfig | None = None,
    ) -> SamplingClient:
        """A client that samples from saved sampler weights, or from a base model.

        Usable at once; ``await`` it, or call ``.result()``, to wait for it and see its error.

        Raises:
            ValueError: neither or both given, or a path that cannot be sampled from.
        """
        return SamplingClient._create(self._session, model_path, base_model, retry_config)

    async def create_sampling_client_async(
        self,
        model_path: str | None = None,
        base_model: str | None = None,
        retry_config: RetryConfig | None = None,
    ) -> SamplingClient:
        """:meth:`create_sampling_client`, awaited."""
        return await self.create_sampling_client(model_path, base_model, retry_config)

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

    def _begin_close(self) -> APIFuture[None]:
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
            LOOP.start(self._close()).add_done_callback(finish)
        else:
            # The connections are the parent's, who still uses them.
            end.set_result(None)
        return APIFuture(end)

    async def _close(self) -> None:
        await self._session.close()
        await self._connection.close()


def _wire_version(given: str | None) -> str:
    version = given or os.environ.get("TINKER_WIRE_VERSION") or DEFAULT_WIRE
    if parse_version(version) > parse_version(NEWEST):
        raise ValueError(f"wire_version: {version} is not known; the newest known is {NEWEST}")
    return version


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
