"""The two ends of a client: the connection it opens, and how it is closed."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Coroutine, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from tinkerwire_base.call import default_converter
from tinkerwire_base.checks import expect
from tinkerwire_base.model import fields_of
from tinkerwire_generated.models import ClientConfigResponse

from .address import EMBEDDED, resolve_base_url
from .credentials.sources import access_headers, resolve_credential
from .futures.future import APIFuture
from .futures.loop import LOOP
from .sending.connection import Connection
from .sending.retry import RetryConfig
from .sending.transport import AiohttpTransport, HttpxTransport, Transport
from .telemetry.reporter import reporter_of
from .wire.dialect import Dialect, given

if TYPE_CHECKING:
    import httpx


def open_connection(
    base_url: str | None,
    api_key: str | None,
    *,
    plain_http_hosts: Collection[str] | None = None,
    headers: Mapping[str, str] | None = None,
    wire_version: str | None = None,
    client_config: Mapping[str, Any] | None = None,
    retry: RetryConfig | None = None,
    http_client: httpx.AsyncClient | None = None,
    transport: Transport | None = None,
) -> Connection:
    """A connection of a client's own, to be closed by :class:`Closing`; arguments as for ServiceClient."""
    expect("base_url", base_url, str)
    expect("api_key", api_key, str)
    expect("default_headers_overrides", headers, Mapping)
    expect("client_config", client_config, Mapping)
    expect("wire_version", wire_version, str)
    _check_hosts(plain_http_hosts)
    expect("retry", retry, RetryConfig)
    if transport is not None and not inspect.iscoroutinefunction(getattr(transport, "send", None)):
        raise TypeError(f"transport: expected something with an async send, got {type(transport).__name__}")
    # A fork waits for the modules that are imported here.
    with LOOP.opening:
        url = resolve_base_url(base_url)
        connection = Connection(
            url,
            resolve_credential(api_key, url, plain_http_hosts),
            transport or _transport(url, http_client),
            _dialect(wire_version, client_config),
            retry or RetryConfig(),
            {**access_headers(), **(headers or {})},
        )
        connection.telemetry = reporter_of(connection)
        LOOP.acquire()
        return connection


class Ended(APIFuture[None]):
    """The end of a client. Who waits for its result finds the client's thread gone, if no other client uses it."""

    def result(self, timeout: float | None = None) -> None:
        """As of any future."""
        super().result(timeout)
        LOOP.join()


class Closing:
    """How a connection of a client's own ends: once, whoever asks for it, also from within a signal handler."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._has_begun = False
        self._end: Future[None] = Future()
        # Not to be cancelled: half closed is worse than either.
        self._end.set_running_or_notify_cancel()
        self._ended = Ended(self._end)

    def begin(self, last: Callable[[], Coroutine[Any, Any, None]]) -> APIFuture[None]:
        """Refuse new operations, do the ``last`` things on the loop, and leave it; later calls give the same future."""
        self._connection.closed = True
        if self._end.done():
            return self._ended
        if not self._connection.is_of_this_process:
            # The connections are the parent's, who still uses them.
            self._end.set_result(None)
            return self._ended
        try:
            LOOP.start(lambda: self._finish(last))
        except RuntimeError:
            # No lock is held here, as a signal handler may close in the midst of it: that one was faster.
            if not self._end.done():
                raise
        return self._ended

    async def _finish(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if self._has_begun:
            return
        self._has_begun = True
        fault: Exception | None = None
        try:
            await last()
        except Exception as found:
            fault = found
        finally:
            LOOP.release()
            if fault is None:
                self._end.set_result(None)
            else:
                self._end.set_exception(fault)


def _dialect(wire_version: str | None, client_config: Mapping[str, Any] | None) -> Dialect | None:
    version = wire_version or os.environ.get("TINKER_WIRE_VERSION")
    if version:
        known = {field.name for field in fields_of(ClientConfigResponse)}
        for name in client_config or {}:
            if name not in known:
                raise ValueError(f"client_config: {name!r} is no flag; there are {', '.join(sorted(known))}")
        return given(version, default_converter().structure(dict(client_config or {}), ClientConfigResponse))
    if client_config is not None:
        raise ValueError("client_config: without wire_version the server itself is asked; leave one or give both")
    return None


def _check_hosts(hosts: Collection[str] | None) -> None:
    is_several = isinstance(hosts, Collection) and not isinstance(hosts, str | bytes | Mapping)
    if hosts is not None and not (is_several and all(isinstance(host, str) for host in hosts)):
        raise TypeError(f"plain_http_hosts: expected a collection of host names, got {type(hosts).__name__}")


def _transport(url: str, http_client: httpx.AsyncClient | None) -> Transport:
    if http_client is not None and not inspect.iscoroutinefunction(getattr(http_client, "request", None)):
        raise TypeError(f"http_client: expected an httpx.AsyncClient, got {type(http_client).__name__}")
    if http_client is not None and http_client.is_closed:
        raise ValueError("http_client: it is closed, as by an earlier client that it was given to; make a new one")
    if url == EMBEDDED:
        if http_client is not None:
            raise ValueError(f"http_client: base_url={EMBEDDED!r} has no socket for it to speak through; leave it away")
        from .local import embedded_transport  # noqa: PLC0415  (the server is not loaded unless it is used)

        return embedded_transport()
    return AiohttpTransport(url) if http_client is None else HttpxTransport(http_client, url)
