"""HTTP requests of the tests: one attempt each, with time limits, and every response checked against the contract."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Mapping
from typing import Any, TypeVar

import attrs
import httpx
import orjson

from tinkerwire_base.call import JSON, Call, WireRequest, WireResponse
from tinkerwire_base.conversion.converter import Converter

from ..._futures.timeout import wait_for
from ..._wire import codec
from ..._wire.dialect import Dialect
from ..exchange import Exchange
from ..violation import ServerLost, Violation
from .contract import Contract

T = TypeVar("T")
EXCHANGE_TIMEOUT_S = 60.0
API_KEY_HEADER = "x-api-key"
REUSE_S = 2.0
"""Time for which a connection stays open between requests; shorter than that of servers, which is 5 s for uvicorn."""
RECENT_EXCHANGES = 32
CHUNK_LENGTH = 16
MAX_RESPONSE_BYTES = 256 * 2**20
MAX_STEPS_PER_EXCHANGE = 5
"""A response that comes in small pieces ends after this many times the time limit of a step."""


class WireClient:
    """Sends the requests of the tests to one server.

    It neither retries nor follows redirects, and accepts nothing that the contract does not have.

    Args:
        base_url: address of the server, without a trailing slash.
        api_key: the key; None sends none.
        dialect: the wire version, and the flags of the server.
    """

    def __init__(self, base_url: str, api_key: str | None, dialect: Dialect) -> None:
        self.base_url = base_url
        self.dialect = dialect
        self.contract = Contract(dialect.max_version)
        self.recent: list[Exchange] = []
        """The last exchanges, the newest last."""
        self.interrupted: Exchange | None = None
        """The last request that was cancelled before its response came; tests reset it."""
        self.secrets: set[str] = set()
        """All credentials that were used, which no report may show."""
        self._api_key: str | None = None
        if api_key is not None:
            self.use_key(api_key)
        self._converter = Converter()
        self._http = _connect()
        self._retired: list[httpx.AsyncClient] = []

    @property
    def wire(self) -> str:
        """The wire version under test."""
        return self.contract.wire

    def use_key(self, api_key: str) -> None:
        """Set the credential of later requests."""
        self._api_key = api_key
        self.secrets.add(api_key)

    async def close(self) -> None:
        """Close all connections."""
        for http in (self._http, *self._retired):
            await http.aclose()

    def encode(self, call: Call[Any]) -> WireRequest:
        """Return the request of a call in the wire version, with a new idempotency key.

        Raises:
            DialectError: the version lacks the call, or a field that is set.
        """
        return self.prepare(codec.encode(call, self.dialect))

    def encode_json(self, call: Call[Any]) -> WireRequest:
        """Return the request of a call with a JSON body, even where the server's flags ask for protobuf.

        Raises:
            DialectError: the version lacks the call, or a field that is set.
        """
        return self.prepare(codec.encode(call, attrs.evolve(self.dialect, protobuf_operations=frozenset())))

    def prepare(self, request: WireRequest) -> WireRequest:
        """Add the credential and, unless it is a GET, a new idempotency key."""
        headers = {"user-agent": "tinkerwire-conformance", **request.headers}
        if self._api_key is not None:
            headers.setdefault(API_KEY_HEADER, self._api_key)
        if request.method != "GET":
            headers.setdefault("x-idempotency-key", f"conformance-{uuid.uuid4()}")
        return attrs.evolve(request, headers=headers)

    def json_request(self, method: str, path: str, body: Any = None, **headers: str) -> WireRequest:
        """Return a request with any JSON body, valid or not; ``path`` is below ``/api/v1/``."""
        content = None if body is None else body if isinstance(body, bytes) else orjson.dumps(body)
        plain = {"accept": JSON, **({"content-type": JSON} if content is not None else {})}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.prepare(
            WireRequest(method=method, path=f"/api/v1/{path}", headers={**plain, **named}, content=content)
        )

    async def send(
        self, request: WireRequest, timeout_s: float = EXCHANGE_TIMEOUT_S, *, is_chunked: bool = False
    ) -> Exchange:
        """Send a request once, and return what came back, whatever it is.

        Args:
            request: the request.
            timeout_s: time limit of each step: to connect, to send and to receive.
            is_chunked: send the body in chunks, without its length.

        Raises:
            ServerLost: the server does not accept connections.
        """
        return await self._send(request, f"{self.base_url}{request.path}", timeout_s, is_chunked=is_chunked)

    async def _send(self, request: WireRequest, url: str, timeout_s: float, *, is_chunked: bool = False) -> Exchange:
        started = time.monotonic()
        query = f"?{httpx.QueryParams(list(request.query))}" if request.query else ""
        response: WireResponse | None = None
        error = ""

        def ended(response: WireResponse | None, error: str) -> Exchange:
            return Exchange(request, f"{url}{query}", response, error, time.monotonic() - started)

        try:
            response = await wait_for(
                self._receive(request, url, timeout_s, is_chunked=is_chunked), MAX_STEPS_PER_EXCHANGE * timeout_s
            )
        except asyncio.CancelledError:
            self.interrupted = ended(None, "no response before the end of the test")
            raise
        except httpx.ConnectError as reason:
            raise ServerLost(f"{self.base_url} does not accept connections: {reason}") from reason
        except (httpx.TimeoutException, asyncio.TimeoutError):
            error = f"no response within {timeout_s:g} s"
        except httpx.HTTPError as reason:
            error = f"the connection broke: {type(reason).__name__}{f': {reason}' if str(reason) else ''}"
        if response is not None and response.status >= 500:
            # Servers such as uvicorn close the connection after an exception, without saying so in the response.
            self._retired.append(self._http)
            self._http = _connect()
        exchange = ended(response, error)
        self.recent = [*self.recent[1 - RECENT_EXCHANGES :], exchange]
        return exchange

    async def _receive(self, request: WireRequest, url: str, timeout_s: float, *, is_chunked: bool) -> WireResponse:
        body = bytearray()
        async with self._http.stream(
            request.method,
            url,
            params=list(request.query) or None,
            headers=dict(request.headers),
            content=_chunks(request.content) if is_chunked else request.content,
            timeout=timeout_s,
        ) as received:
            async for part in received.aiter_bytes():
                body += part
                if len(body) > MAX_RESPONSE_BYTES:
                    raise httpx.ReadError(f"the response has more than {MAX_RESPONSE_BYTES} bytes")
        return WireResponse(status=received.status_code, headers=dict(received.headers), content=bytes(body))

    async def send_call(self, call: Call[Any]) -> Exchange:
        """Send a call once; see :meth:`send`."""
        return await self.send(self.encode(call))

    async def download(self, url: str) -> Exchange:
        """Download a file without the key, and without following redirects; see :meth:`send`."""
        return await self._send(WireRequest(method="GET", path=url, headers={}), url, EXCHANGE_TIMEOUT_S)

    async def call(self, call: Call[T], headers: Mapping[str, str] | None = None) -> tuple[T, Exchange]:
        """Send a call and return its result, read strictly, with the exchange.

        Raises:
            Violation: the status is an error, or the response does not fit the contract.
        """
        request = self.encode(call)
        exchange = await self.send(attrs.evolve(request, headers={**request.headers, **(headers or {})}))
        return self.read(call, exchange), exchange

    def read(self, call: Call[T], exchange: Exchange) -> T:
        """Return the result in the response to a call; see :meth:`call`."""
        name = call.operation.name
        if exchange.response is None or not exchange.is_success:
            raise Violation(f"a successful {name}", exchange.describe(), exchange)
        self.require_contract(name, exchange)
        try:
            return call.parse(exchange.response, self._converter)
        except ValueError as error:
            raise Violation(f"a response to {name} that its model takes", str(error), exchange) from None

    def require_contract(self, operation: str, exchange: Exchange) -> None:
        """Raise Violation unless a response is one of those that the contract has for an operation."""
        errors = self.contract.response_errors(operation, exchange)
        if errors:
            expected = f"a response of {operation} as in the contract of wire {self.wire}"
            raise Violation(expected, "; ".join(errors), exchange)

    def structure(self, value: Any, kind: Any) -> Any:
        """Return the model of a JSON value; raise ValueError if it does not fit."""
        return self._converter.structure(value, kind)


def _connect() -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=256, max_keepalive_connections=32, keepalive_expiry=REUSE_S)
    return httpx.AsyncClient(timeout=EXCHANGE_TIMEOUT_S, limits=limits, follow_redirects=False, trust_env=False)


async def _chunks(content: bytes | None) -> AsyncIterator[bytes]:
    body = content or b""
    for start in range(0, len(body), CHUNK_LENGTH):
        yield body[start : start + CHUNK_LENGTH]
