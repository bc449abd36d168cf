"""Connections from the arguments of a client: checks, and defaults from the environment."""

from __future__ import annotations

import inspect
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinkerwire_base.call import default_converter
from tinkerwire_base.reflection import fields_of
from tinkerwire_base.validators import require_optional
from tinkerwire_generated import models

from .._connection.connection import Connection
from .._connection.retry import RetryConfig
from .._credentials.sources import Credential, read_environment_headers, resolve_credential
from .._futures.event_loop import LOOP
from .._polling.abandonment import abandon
from .._polling.poller import fetch_result
from .._transport.address import embedded_folder, is_embedded, is_replay, replay_file, resolve_base_url
from .._transport.base import Transport
from .._transport.http_transport import HttpTransport
from .._transport.httpx_transport import HttpxTransport
from .._wire.dialect import Dialect
from .recording import start_recording

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
    trace: str | os.PathLike[str] | None = None,
    opentelemetry: bool | None = None,
) -> Connection:
    """Make a connection from the arguments of ServiceClient; a Lifetime closes it."""
    require_optional("base_url", base_url, str)
    require_optional("api_key", api_key, str)
    require_optional("default_headers_overrides", headers, Mapping)
    require_optional("client_config", client_config, Mapping)
    require_optional("wire_version", wire_version, str)
    _check_hosts(plain_http_hosts)
    require_optional("retry", retry, RetryConfig)
    if transport is not None and not inspect.iscoroutinefunction(getattr(transport, "send", None)):
        raise TypeError(f"transport: expected an object with an async send, got {type(transport).__name__}")
    if trace is not None and not isinstance(trace, str | os.PathLike):
        raise TypeError(f"trace: expected a path, got {type(trace).__name__}")
    require_optional("opentelemetry", opentelemetry, bool)
    # A fork waits for the modules that are imported here.
    with LOOP.opening_lock:
        url = resolve_base_url(base_url)
        connection = connect(
            url,
            resolve_credential(api_key, url, plain_http_hosts),
            record_if_requested(transport, url) if transport else open_transport(url, http_client),
            _dialect(wire_version, client_config),
            retry or RetryConfig(),
            {**read_environment_headers(), **(headers or {})},
        )
        start_recording(connection, trace, opentelemetry=opentelemetry)
        return connection


def connect(
    url: str,
    credential: Credential | None,
    transport: Transport,
    dialect: Dialect | None,
    retry: RetryConfig,
    headers: Mapping[str, str],
) -> Connection:
    """Make a connection from checked arguments; a Lifetime closes it."""
    return Connection(url, credential, transport, dialect, retry, headers, fetch_result=fetch_result, abandon=abandon)


def _dialect(wire_version: str | None, client_config: Mapping[str, Any] | None) -> Dialect | None:
    version = wire_version or os.environ.get("TINKER_WIRE_VERSION")
    if version:
        names = {field.name for field in fields_of(models.ClientConfigResponse)}
        for name in client_config or {}:
            if name not in names:
                raise ValueError(f"client_config: unknown flag {name!r}; expected one of {', '.join(sorted(names))}")
        return Dialect.for_version(
            version, default_converter().structure(dict(client_config or {}), models.ClientConfigResponse)
        )
    if client_config is not None:
        raise ValueError("client_config: without wire_version the server sends its own flags; pass both or neither")
    return None


def _check_hosts(hosts: Collection[str] | None) -> None:
    is_several = isinstance(hosts, Collection) and not isinstance(hosts, str | bytes | Mapping)
    if hosts is not None and not (is_several and all(isinstance(host, str) for host in hosts)):
        raise TypeError(f"plain_http_hosts: expected a collection of host names, got {type(hosts).__name__}")


def open_transport(url: str, http_client: httpx.AsyncClient | None = None) -> Transport:
    """Return the transport for a resolved address; it is recorded if TINKERWIRE_RECORD names a tape.

    Raises:
        TypeError, ValueError: the client cannot be used with the address, or a recording cannot be read or written.
    """
    if http_client is not None and not inspect.iscoroutinefunction(getattr(http_client, "request", None)):
        raise TypeError(f"http_client: expected an httpx.AsyncClient, got {type(http_client).__name__}")
    if http_client is not None and http_client.is_closed:
        raise ValueError("http_client is closed, perhaps by an earlier client; create a new one")
    if http_client is not None and (is_embedded(url) or is_replay(url)):
        raise ValueError(f"http_client cannot be combined with base_url={url!r}; omit it")
    if is_replay(url):
        from .._tape.replaying import open_replay  # noqa: PLC0415

        return open_replay(replay_file(url))
    return record_if_requested(_unrecorded_transport(url, http_client), url)


def record_if_requested(transport: Transport, url: str) -> Transport:
    """Return the transport, or one that records it if TINKERWIRE_RECORD names a tape."""
    tape = os.environ.get("TINKERWIRE_RECORD")
    if not tape:
        return transport
    from .._tape.recording import record  # noqa: PLC0415

    return record(transport, url, Path(tape).absolute())


def _unrecorded_transport(url: str, http_client: httpx.AsyncClient | None) -> Transport:
    if is_embedded(url):
        from .._transport.embedded import shared_transport  # noqa: PLC0415  (loads the server)

        return shared_transport(embedded_folder(url))
    return HttpTransport(url) if http_client is None else HttpxTransport(http_client, url)
