"""Opens connections to one server, with TLS, or through the proxy of the environment."""

from __future__ import annotations

import asyncio
import ssl
import sys
from base64 import b64encode
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import SplitResult, quote, unquote, urlencode, urlsplit

from tinkerwire_base.call import WireRequest

from .http_connection import MAX_HEAD_BYTES, READ_BYTES, HttpConnection
from .name_lookup import NameLookup
from .proxy import environment_proxy
from .response_body import ACCEPTED

PORTS = {"http": 80, "https": 443}
"""Ports of addresses without one."""


class Connector:
    """Opens connections to one server and encodes the heads of requests for them. Used on one event loop.

    Args:
        base_url: the address of the server.
        accepted: content encodings that requests accept.

    Raises:
        ValueError: the host name is invalid, or the environment names an unsupported kind of proxy.
    """

    def __init__(self, base_url: str, accepted: str = ACCEPTED) -> None:
        self._server = server = urlsplit(base_url)
        proxy = environment_proxy(base_url)
        self._proxy = None if proxy is None else urlsplit(proxy)
        if self._proxy is not None and self._proxy.scheme == server.scheme == "https" and sys.version_info < (3, 11):
            raise ValueError("HTTPS_PROXY or ALL_PROXY: a proxy over https needs Python 3.11; use an http proxy")
        self._peer = self._proxy or server
        """The address of the socket."""
        self._is_tunnel = self._proxy is not None and server.scheme == "https"
        self.hint = "" if proxy is None else f"; the proxy is {self._peer.hostname}:{port_of(self._peer)}"
        """Clause for errors about connections."""
        self._context: ssl.SSLContext | None = None
        self._lookup = NameLookup(self._peer.hostname or "", port_of(self._peer))
        self._buffer = memoryview(bytearray(READ_BYTES))
        host = _host_header(server)
        self._target = quote(server.path, safe="/%:@!$&'()*+,;=~")
        self._host_line = f"host: {host}\r\n"
        self._own_lines = f"accept-encoding: {accepted}\r\n"
        if self._proxy is not None and not self._is_tunnel:
            self._target = f"http://{host}{self._target}"
            self._own_lines += _proxy_authorization(self._proxy)
        self._line_breaks = f"{self._host_line}{self._own_lines}".count("\n")

    def encode_head(self, request: WireRequest) -> bytes:
        """Encode the request line and the headers of a request.

        Raises:
            ValueError: the path or a header has a line break.
        """
        target = self._target + request.path
        if request.query:
            target += f"?{urlencode(request.query, quote_via=quote)}"
        lines = [f"{name}: {value}\r\n" for name, value in request.headers.items()]
        if request.content is not None or request.method != "GET":
            lines.append(f"content-length: {len(request.content or b'')}\r\n")
        host = "" if "host" in request.headers else self._host_line
        text = f"{request.method} {target} HTTP/1.1\r\n{host}{self._own_lines}{''.join(lines)}\r\n"
        # A gateway passes on bytes of headers that are not UTF-8.
        head = text.encode("utf-8", "surrogateescape")
        line_breaks = self._line_breaks + len(lines) + (2 if host else 1)
        if head.count(b"\n") != line_breaks or head.count(b"\r") != line_breaks:
            del head, text, lines  # error reporters send the local variables of frames, and headers hold the API key
            raise ValueError(f"{request.method} {request.path!r}: the path or a header has a line break; remove it")
        return head

    async def connect(
        self, on_lost: Callable[[HttpConnection], object], silence_s: float | None = None
    ) -> HttpConnection:
        """Open a connection; see :class:`HttpConnection` for the arguments.

        Raises:
            OSError: the server or the proxy cannot be reached, or TLS cannot be set up.
            UnicodeError: the name cannot be looked up.
        """

        def create() -> HttpConnection:
            return HttpConnection(self._buffer, on_lost, silence_s)

        sock = await self._lookup.connect()
        if self._is_tunnel:
            return await self._open_tunnel(sock, create)
        _, connection = await asyncio.get_running_loop().create_connection(create, sock=sock, **self._tls(self._peer))
        return connection

    async def _open_tunnel(self, sock: Any, create: Callable[[], HttpConnection]) -> HttpConnection:
        loop = asyncio.get_running_loop()
        transport, answer = await loop.create_connection(_TunnelResponse, sock=sock, **self._tls(self._peer))
        try:
            target = f"{_host_header(self._server).removesuffix(f':{port_of(self._server)}')}:{port_of(self._server)}"
            head = f"CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n{_proxy_authorization(self._peer)}\r\n"
            transport.write(head.encode())
            status_line = await answer.status_line
            if not status_line.startswith(("HTTP/1.1 2", "HTTP/1.0 2")):
                raise ConnectionError(f"the proxy responded {status_line[:100]!r}")
            connection = create()
            tls = self._tls(self._server)
            secure = await loop.start_tls(transport, connection, tls["ssl"], server_hostname=tls["server_hostname"])
        except BaseException:
            transport.abort()
            raise
        connection.connection_made(cast("asyncio.Transport", secure))
        return connection

    def _tls(self, peer: SplitResult) -> dict[str, Any]:
        if peer.scheme != "https":
            return {}
        if self._context is None:
            # Made at the first connection, so that it has the environment of that time.
            self._context = ssl.create_default_context()
            self._context.set_alpn_protocols(["http/1.1"])
        # A certificate names its host without the dot that ends a fully qualified name.
        return {"ssl": self._context, "server_hostname": (peer.hostname or "").rstrip(".")}


class _TunnelResponse(asyncio.Protocol):
    """Head of the response of a proxy to CONNECT."""

    def __init__(self) -> None:
        self.status_line: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._head = b""

    def data_received(self, data: bytes) -> None:
        """See :class:`asyncio.Protocol`."""
        self._head += data
        if self.status_line.done():
            return
        if b"\r\n\r\n" in self._head:
            self.status_line.set_result(self._head.partition(b"\r\n")[0].decode("latin-1"))
        elif len(self._head) > MAX_HEAD_BYTES:
            self.status_line.set_exception(ConnectionError("the response of the proxy is not valid HTTP/1.1"))

    def connection_lost(self, exc: Exception | None) -> None:
        """See :class:`asyncio.BaseProtocol`."""
        if not self.status_line.done():
            self.status_line.set_exception(ConnectionResetError("the proxy closed the connection"))
            # Nobody waits for it after a cancellation; retrieving it keeps asyncio from logging it.
            self.status_line.exception()


def port_of(parts: SplitResult) -> int:
    """Return the port of an address."""
    return parts.port or PORTS[parts.scheme]


def _host_header(parts: SplitResult) -> str:
    host = parts.netloc.rpartition("@")[2].removesuffix(":").removesuffix(f":{PORTS[parts.scheme]}")
    try:
        return host if host.isascii() else host.encode("idna").decode()
    except UnicodeError as error:
        raise ValueError(f"base_url: {parts.hostname!r} is not a valid host name: {error}") from None


def _proxy_authorization(proxy: SplitResult) -> str:
    """Return the header with the credentials in the URL of a proxy."""
    if proxy.username is None:
        return ""
    credentials = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return f"proxy-authorization: Basic {b64encode(credentials.encode()).decode()}\r\n"
