"""One HTTP/1.1 connection, which carries one request after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import cast

import httptools

from tinkerwire_base.call import SizeLimit, WireRequest, WireResponse

from .response_body import too_large_error

UNEXPECTED_ERROR = 500
"""Status after which some servers, such as uvicorn, close the connection without announcing it."""
READ_BYTES = 256 * 1024
"""Size of the buffer for received bytes, which all connections of a transport share."""
WRITE_BYTES = 256 * 1024
"""Size of the pieces of a large body; a piece follows once the system has taken most of the previous one."""
MAX_HEAD_BYTES = 64 * 1024
"""Maximum size of a status line with headers; also of trailers and of interim responses."""
MAX_CHUNK_OVERHEAD = 8
"""Maximum number of other bytes per byte of a body, beyond ``MAX_HEAD_BYTES``; chunks of one byte have five."""


BodyReceiver = Callable[[int, Mapping[str, str], bytes], bool]
"""Receives status, headers and a piece of a body; returns False if the piece is to be part of the response instead."""


class _Exchange:
    """One request and what has arrived of its response."""

    __slots__ = (
        "body",
        "headers",
        "limit",
        "receive",
        "received",
        "request",
        "response",
        "size",
        "status",
        "unsent",
        "url",
    )

    def __init__(
        self, request: WireRequest, url: str, response: asyncio.Future[WireResponse], receive: BodyReceiver | None
    ) -> None:
        self.request = request
        self.url = url
        self.response = response
        """Done once the response is complete."""
        self.unsent: memoryview | None = None
        self.status = 0
        """The final status, once all headers have arrived."""
        self.headers: dict[str, str] = {}
        self.receive = receive
        self.body = BytesIO()
        self.size = 0
        """Bytes of the body that have arrived."""
        self.limit: SizeLimit | None = None
        self.received = 0
        """Bytes received, including headers."""

    @property
    def ends_with_connection(self) -> bool:
        """True if the end of the connection marks the end of the body."""
        return self.status != 0 and "content-length" not in self.headers and "transfer-encoding" not in self.headers


class HttpConnection(asyncio.BufferedProtocol):
    """Connection to a server or proxy; used on one event loop, for one request at a time.

    Args:
        buffer: memory for received bytes, which is empty again after each callback.
        on_lost: called once with this connection when it is closed.
        silence_s: if set, received bytes move the deadline to this many seconds later.
    """

    def __init__(
        self, buffer: memoryview, on_lost: Callable[[HttpConnection], object], silence_s: float | None = None
    ) -> None:
        self._buffer = buffer
        self._on_lost = on_lost
        self._silence_s = silence_s
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._exchange: _Exchange | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline: float | None = None
        self._is_write_paused = False
        self._can_continue = True
        self.idle_since = 0.0
        """Time of the loop at which the last response was complete."""

    @property
    def is_reusable(self) -> bool:
        """True if the connection can carry another request."""
        return self._can_continue and self._transport is not None and not self._transport.is_closing()

    async def exchange(
        self,
        request: WireRequest,
        encode_head: Callable[[WireRequest], bytes],
        url: str,
        deadline: float | None,
        receive: BodyReceiver | None = None,
    ) -> WireResponse:
        """Send a request and return the response of any status, with its content as it was sent.

        Args:
            request: the request.
            encode_head: encodes the request line and all headers. No local variable of this call, which an error
                reporter may send, holds the result with its API key.
            url: the URL, for errors.
            deadline: time of the loop by which the response must be complete; None for no limit.
            receive: gets the pieces of the body as they arrive; its errors are raised.

        Raises:
            asyncio.TimeoutError: the response was not complete in time.
            OSError: the connection failed, or the response is not valid HTTP.
            ValueError: the request cannot be encoded.
            ResponseTooLargeError: the body is larger than the request allows.
        """
        exchange = self._exchange = _Exchange(request, url, self._loop.create_future(), receive)
        self._start_timer(deadline)
        try:
            self._send(exchange, encode_head(request))
            return await exchange.response
        except (asyncio.CancelledError, ValueError):
            exchange.response.cancel()
            self.abort()
            raise
        finally:
            self._exchange = None
            self.idle_since = self._loop.time()

    def abort(self) -> None:
        """Close the connection at once; its request fails."""
        self._fail(ConnectionAbortedError("the client closed the connection"))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See :class:`asyncio.BaseProtocol`."""
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """See :class:`asyncio.BaseProtocol`."""
        if self._transport is not None:
            # TLS transports of Python 3.10 need it. An abort would make asyncio close the socket a second time.
            self._transport.close()
            self._transport = None
        if exc is None:
            self.eof_received()
        self._fail(
            exc
            if isinstance(exc, OSError)
            else ConnectionResetError("the server closed the connection before the response was complete")
        )
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._on_lost(self)

    def eof_received(self) -> None:
        """End a body without a length, even if a part of the request is still unsent."""
        if self._exchange is not None and self._exchange.ends_with_connection:
            self.on_message_complete()

    def get_buffer(self, sizehint: int) -> memoryview:
        """See :class:`asyncio.BufferedProtocol`."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """See :class:`asyncio.BufferedProtocol`."""
        exchange = self._exchange
        if exchange is None or exchange.response.done():
            # These bytes would be taken for the response to the next request.
            self.abort()
            return
        if self._silence_s is not None:
            self._deadline = self._loop.time() + self._silence_s
        exchange.received += nbytes
        try:
            self._parser.feed_data(self._buffer[:nbytes])
        except httptools.HttpParserUpgrade:
            self._fail(ConnectionError("the server changes to another protocol than HTTP"))
        except httptools.HttpParserError as error:
            self._fail(ConnectionError(f"the response is not valid HTTP/1.1: {error}"))
        if exchange.received > MAX_HEAD_BYTES + (1 + MAX_CHUNK_OVERHEAD) * exchange.size:
            self._fail(ConnectionError(f"the response has more than {MAX_HEAD_BYTES} bytes that are not its body"))

    def pause_writing(self) -> None:
        """See :class:`asyncio.BaseProtocol`."""
        self._is_write_paused = True

    def resume_writing(self) -> None:
        """See :class:`asyncio.BaseProtocol`."""
        self._is_write_paused = False
        self._send_further()

    def on_message_begin(self) -> None:
        """Start a response; called by the parser like all methods below."""
        exchange = self._exchange
        if exchange is None or exchange.response.done():
            self._can_continue = False  # a second response to one request
        else:
            exchange.headers = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header, or ignore a trailer."""
        exchange = self._exchange
        if exchange is not None and exchange.status == 0:
            key, text = name.decode("latin-1").lower(), value.decode("utf-8", "replace").rstrip(" \t")
            exchange.headers[key] = f"{exchange.headers[key]}, {text}" if key in exchange.headers else text

    def on_headers_complete(self) -> None:
        """Set the limit of the body by the status."""
        exchange, status = self._exchange, self._parser.get_status_code()
        if exchange is None or exchange.status != 0 or 100 <= status < 200:
            return
        if status < 100:
            self._fail(ConnectionError(f"the response is not valid HTTP/1.1: its status is {status}"))
            return
        exchange.status = status
        exchange.limit = limit = exchange.request.limits.of(status)
        length = exchange.headers.get("content-length", "")
        if limit is not None and length.isdigit() and int(length) > limit.max_bytes:
            self._fail(too_large_error(exchange.request, limit, exchange.url, status))

    def on_body(self, piece: bytes) -> None:
        """Add a piece of the body."""
        exchange = self._exchange
        if exchange is None or exchange.response.done():
            return
        exchange.size += len(piece)
        limit = exchange.limit
        if limit is not None and exchange.size > limit.max_bytes:
            self._fail(too_large_error(exchange.request, limit, exchange.url, exchange.status))
            return
        try:
            is_taken = exchange.receive is not None and exchange.receive(exchange.status, exchange.headers, piece)
        except Exception as error:
            # The parser would hide the error, such as that of a full disk.
            self._fail(error)
            return
        if not is_taken:
            exchange.body.write(piece)

    def on_message_complete(self) -> None:
        """Return the response, unless it is an interim one."""
        exchange = self._exchange
        if exchange is None or exchange.status == 0 or exchange.response.done():
            return
        # A server that responds before it has read the request may take the rest for the next one.
        self._can_continue = (
            self._parser.should_keep_alive()
            and exchange.status != UNEXPECTED_ERROR
            and exchange.unsent is None
            and not self._has_unsent()
        )
        exchange.response.set_result(
            WireResponse(status=exchange.status, headers=exchange.headers, content=exchange.body.getvalue())
        )

    def _send(self, exchange: _Exchange, head: bytes) -> None:
        if self._transport is None:
            self._fail(ConnectionResetError("the server closed the connection before the request was sent"))
            return
        content = exchange.request.content or b""
        if len(content) <= WRITE_BYTES:
            self._transport.write(head + content)
            return
        exchange.unsent = memoryview(content)
        self._transport.write(head)
        self._send_further()

    def _send_further(self) -> None:
        exchange = self._exchange
        if exchange is None or exchange.unsent is None or exchange.response.done():
            return
        if self._transport is None or self._is_write_paused:
            return
        piece, exchange.unsent = exchange.unsent[:WRITE_BYTES], exchange.unsent[WRITE_BYTES:] or None
        self._transport.write(piece)
        # The loop reports a lost connection before the next piece; asyncio logs writes to a lost connection.
        self._loop.call_soon(self._send_further)

    def _has_unsent(self) -> bool:
        return self._transport is not None and self._transport.get_write_buffer_size() > 0

    def _start_timer(self, deadline: float | None) -> None:
        self._deadline = deadline
        if deadline is None:
            return
        # The timer of an earlier request is kept if it is due before the new limit: most responses arrive long before.
        if self._timer is not None and self._timer.when() > deadline:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = self._loop.call_at(deadline, self._check_deadline)

    def _check_deadline(self) -> None:
        self._timer = None
        if self._exchange is None or self._deadline is None:
            return
        if self._loop.time() < self._deadline:
            self._timer = self._loop.call_at(self._deadline, self._check_deadline)
        else:
            self._fail(asyncio.TimeoutError())

    def _fail(self, error: Exception) -> None:
        self._can_continue = False
        if self._exchange is not None and not self._exchange.response.done():
            self._exchange.response.set_exception(error)
        if self._transport is not None:
            self._transport.abort()
