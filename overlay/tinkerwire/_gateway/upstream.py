"""The server behind the gateway: its dialect, and requests to it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping

import attrs

from tinkerwire_base.call import Call, ResponseLimits, SizeLimit, WireRequest, WireResponse, default_converter
from tinkerwire_base.conversion.versioning import parse_version
from tinkerwire_base.errors import APIStatusError, APITimeoutError, TinkerError
from tinkerwire_generated import models
from tinkerwire_generated.availability import NEWEST
from tinkerwire_generated.operations import OPERATIONS

from .._connection.dialect_resolver import ENDPOINT_MISSING, discover_dialect
from .._server.http.responses import HttpError
from .._transport import address
from .._transport.backpressure import Traffic
from .._transport.base import Transport
from .._transport.download import REDIRECTS
from .._wire import codec
from .._wire.dialect import CONFIG_SINCE, Dialect

UPSTREAM_LIMITS = ResponseLimits(
    result=SizeLimit(max_bytes=2**28, setting="the gateway's limit of a result"),
    error=SizeLimit(max_bytes=2**24, setting="the gateway's limit of an error"),
)
DISCOVERY_TIMEOUT_S = 60.0
MAX_QUOTED_BYTES = 500
SHARED_STATUSES = frozenset({401, 402, 403, 408, 429})
"""Statuses of client/config that hold for the client's request, too: they are about its key, or the server's load."""
RECHECK_S = 1.0
"""Time after a discovery in which the upstream is taken for the same server."""
DROPPED_REQUEST_HEADERS = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "cookie",
        "expect",
        "forwarded",
        "host",
        "keep-alive",
        "origin",
        "proxy-authorization",
        "proxy-connection",
        "referer",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers of a connection or of a browser, which are not passed on."""
DROPPED_RESPONSE_HEADERS = frozenset(
    {
        "connection",
        "content-encoding",
        "content-length",
        "date",
        "keep-alive",
        "proxy-authenticate",
        "server",
        "set-cookie",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


class UpstreamTimeout(Exception):
    """The upstream did not respond in time."""


class Refused(Exception):
    """A response of the upstream that ends a request with several steps; the client gets it as it came.

    Args:
        response: the response.
    """

    def __init__(self, response: WireResponse) -> None:
        super().__init__(f"HTTP {response.status}")
        self.response = response
        self.status = response.status


class Upstream:
    """The server behind the gateway. Used on one event loop.

    Args:
        base_url: its address.
        transport: sends the requests; closed with this object.
        wire_version: its wire version; None to discover its dialect.
        api_key: the key for all requests; None to pass on the keys of the clients.
    """

    def __init__(
        self, base_url: str, transport: Transport, wire_version: str | None = None, api_key: str | None = None
    ) -> None:
        self.base_url = base_url
        self._transport = transport
        self._wire_version = wire_version
        self._api_key = api_key
        self._dialect: Dialect | None = None
        self._found: tuple[Dialect, Dialect] | None = None
        """The last dialect as it was discovered, and as responses have corrected it."""
        self._discovery: asyncio.Task[Dialect] | None = None
        self._discovered_at = 0.0
        self.number = 0
        """Number of times that another dialect was discovered, because the server was replaced."""

    @property
    def has_own_key(self) -> bool:
        """True if the clients' keys are replaced by one key."""
        return self._api_key is not None

    @property
    def known_dialect(self) -> Dialect | None:
        """The dialect; None before it is discovered."""
        return self._dialect

    async def dialect(self, headers: Mapping[str, str]) -> Dialect:
        """Return the dialect; the first request discovers it.

        Args:
            headers: headers of the client's request, whose key is used.

        Raises:
            Refused: the upstream rejects the request for its settings.
            HttpError: 502 if the upstream cannot be reached.
        """
        own: asyncio.Task[Dialect] | None = None
        while self._dialect is None:
            running = self._discovery
            discovery = self._start_discovery(headers)
            own = own if discovery is running else discovery
            try:
                discovered = await asyncio.shield(discovery)
                if self._dialect is None:
                    self._dialect = self._learned(discovered)
            except Refused:
                # The key of another client may have been rejected.
                if discovery is own:
                    raise
        return self._dialect

    async def check(self, headers: Mapping[str, str]) -> None:
        """Discover the dialect again: a server may be replaced while no request is in progress.

        An upstream that does not respond keeps its dialect; the next request has the error.

        Args:
            headers: headers of the client's request, whose key is used.
        """
        if self._wire_version is not None or self._dialect is None:
            return
        if time.monotonic() < self._discovered_at + RECHECK_S:
            return
        with contextlib.suppress(Refused, HttpError):
            discovered = await asyncio.shield(self._start_discovery(headers))
            if self._found is None or self._found[0] != discovered:
                self._dialect = self._learned(discovered)

    def _start_discovery(self, headers: Mapping[str, str]) -> asyncio.Task[Dialect]:
        """Return the discovery in progress, or a new one."""
        if self._discovery is None or self._discovery.done():
            self._discovery = asyncio.create_task(self._discover(headers))
        return self._discovery

    async def send(
        self, request: WireRequest, traffic: Traffic, timeout_s: float, *, may_redirect: bool = False
    ) -> WireResponse:
        """Send a request and return the response of any status, without the headers of the connection.

        Args:
            request: the request.
            traffic: its kind.
            timeout_s: its time limit.
            may_redirect: redirects are responses of the operation. Any other would lead clients past the gateway.

        Raises:
            UpstreamTimeout: the upstream did not respond in time.
            HttpError: 502 if the upstream cannot be reached, or redirects.
        """
        headers = _end_to_end(request.headers, DROPPED_REQUEST_HEADERS)
        if self._api_key is not None:
            headers.pop("authorization", None)
            headers["x-api-key"] = self._api_key
        try:
            response = await self._transport.send(
                attrs.evolve(request, headers=headers, limits=UPSTREAM_LIMITS), traffic, timeout_s
            )
        except APITimeoutError as error:
            if error.may_have_been_sent is False:
                raise self._unreachable(error) from None
            raise UpstreamTimeout(f"no response within {timeout_s:g} s") from None
        except TinkerError as error:
            raise self._unreachable(error) from None
        if response.status in REDIRECTS and not may_redirect:
            location = response.headers.get("location", "an unknown address")
            text = f"the upstream redirects {request.method} {request.path} to {location}"
            raise HttpError(502, f"tinkerwire gateway: {text}; start the gateway with the address that it redirects to")
        return attrs.evolve(response, headers=_end_to_end(response.headers, DROPPED_RESPONSE_HEADERS))

    async def close(self) -> None:
        """Close all connections."""
        if self._discovery is not None and not self._discovery.done():
            self._discovery.cancel()
            await asyncio.gather(self._discovery, return_exceptions=True)
        await self._transport.close()

    def learn_form(self, operation: str, form: Dialect) -> None:
        """Record that the upstream has accepted a batch in a form; see :meth:`Dialect.as_confirmed`."""
        self._correct(lambda dialect: dialect.as_confirmed(operation, form))

    def learn_json_results(self) -> None:
        """Record that the upstream gives no results to requests that accept protobuf."""
        self._correct(lambda dialect: attrs.evolve(dialect, accepts_protobuf_results=False))

    def _learned(self, discovered: Dialect) -> Dialect:
        """Return a discovered dialect with what responses have shown, if the server was discovered like this before."""
        if self._found is None or self._found[0] != discovered:
            self.number += self._found is not None
            self._found = (discovered, discovered)
        return self._found[1]

    def _correct(self, change: Callable[[Dialect], Dialect]) -> None:
        if self._dialect is not None:
            self._dialect = change(self._dialect)
        if self._found is not None:
            # A lost connection leaves only this one.
            self._found = (self._found[0], self._dialect or change(self._found[1]))

    def _unreachable(self, error: TinkerError) -> HttpError:
        # The server may have been replaced by another version.
        self._dialect = None
        return HttpError(502, f"tinkerwire gateway: no usable response from the upstream: {error}")

    async def _discover(self, headers: Mapping[str, str]) -> Dialect:
        version = self._wire_version
        if version is not None and parse_version(version) < parse_version(CONFIG_SINCE):
            return Dialect.for_version(version)

        async def fetch(
            call: Call[models.ClientConfigResponse],
        ) -> tuple[models.ClientConfigResponse, WireResponse]:
            request = codec.encode(call, Dialect.for_version(version or NEWEST))
            request = attrs.evolve(request, headers={**shared_headers(headers), **request.headers})
            response = await self.send(request, Traffic.SESSION, DISCOVERY_TIMEOUT_S)
            if response.status in SHARED_STATUSES or response.status >= 500:
                raise Refused(response)
            if response.status >= 300 and response.status not in ENDPOINT_MISSING:
                # Clients would take a status such as 409 for the outcome of their own request, and end a poll.
                text = response.content[:MAX_QUOTED_BYTES].decode(errors="replace")
                problem = f"client/config of the upstream: HTTP {response.status}: {text}"
                raise HttpError(502, f"tinkerwire gateway: {problem}")
            return call.parse(response, default_converter(), self.base_url), response

        try:
            discovered = await discover_dialect(fetch, is_tinker=address.is_tinker_service(self.base_url))
        except UpstreamTimeout as error:
            raise HttpError(502, f"tinkerwire gateway: client/config of the upstream: {error}") from None
        except APIStatusError as error:
            raise HttpError(502, f"tinkerwire gateway: client/config of the upstream: {error}") from None
        except TinkerError as error:
            raise HttpError(502, f"tinkerwire gateway: client/config of the upstream: {error}") from None
        self._discovered_at = time.monotonic()
        return discovered if version is None else Dialect.for_version(version, discovered.config)


def _end_to_end(headers: Mapping[str, str], dropped: frozenset[str]) -> dict[str, str]:
    """Return the headers that are passed on: not those to drop, and none that Connection names."""
    named = {name.strip().lower() for name in headers.get("connection", "").split(",")}
    return {name: value for name, value in headers.items() if name not in dropped and name not in named}


def shared_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a client's request that further requests for it need: credential and SDK."""
    return {
        name: value
        for name, value in headers.items()
        if name in ("x-api-key", "authorization", "user-agent", "x-sdk-version", "x-stainless-package-version")
        or name.startswith("cf-access-")
    }


def traffic_of(operation: str, *, is_sample: bool = False) -> Traffic:
    """Return the kind of traffic of an operation; ``is_sample`` is True for polls for samples."""
    if operation in ("retrieve_future", "retrieve_futures"):
        return Traffic.SAMPLING_FUTURES if is_sample else Traffic.TRAINING_FUTURES
    if operation == "asample":
        return Traffic.SAMPLING
    if operation in ("telemetry", "session_heartbeat"):
        return Traffic.TELEMETRY
    tag = OPERATIONS[operation].tag
    if tag in ("training", "weights"):
        return Traffic.TRAINING
    return Traffic.SESSION if tag in ("session", "auth") else Traffic.REST
