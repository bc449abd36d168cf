"""Requests over a transport of either kind, without a client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import httpx
import pytest

import tinkerwire as tw
from support.clients import KEY
from support.raw_server import Handler, RawServer, raw_server
from support.scripted import TEST_TIMEOUT_S
from tinkerwire._transport.backpressure import Traffic
from tinkerwire._transport.base import Transport
from tinkerwire._transport.http_transport import HttpTransport
from tinkerwire._transport.httpx_transport import HttpxTransport
from tinkerwire_base.call import WireRequest, WireResponse

REQUEST = WireRequest(method="GET", path="/api/v1/get_server_capabilities", headers={"x-api-key": KEY})
T = TypeVar("T")
KINDS = ["builtin", "httpx"]


async def send(kind: str, url: str, request: WireRequest = REQUEST, timeout_s: float = 30.0) -> WireResponse:
    """Send one request over a new transport, and close it."""
    client = httpx.AsyncClient()
    transport: Transport = HttpTransport(url) if kind == "builtin" else HttpxTransport(client, url)
    try:
        return await transport.send(request, Traffic.REST, timeout_s)
    finally:
        await transport.close()
        await client.aclose()


def error_of_send(
    kind: str, url: str, request: WireRequest = REQUEST, timeout_s: float = 30.0
) -> tw.APIConnectionError:
    """Return the error of a request, and check that it holds no exception of the HTTP library."""
    with pytest.raises(tw.APIConnectionError) as caught:
        asyncio.run(send(kind, url, request, timeout_s))
    error = caught.value
    if error.__cause__ is not None:
        assert type(error.__cause__).__module__ in ("builtins", "socket", "ssl")
        assert error.__cause__.__traceback__ is None
    assert isinstance(error, tw.APITimeoutError) or isinstance(error.__cause__, OSError)
    assert error.__context__ is None
    assert f"{request.method} {url}{request.path}" in str(error)
    assert error.request is not None
    assert (error.request.method, error.request.url) == (request.method, url + request.path)
    return error


def run_over(server: RawServer, work: Callable[[HttpTransport], Awaitable[T]]) -> T:
    """Run a coroutine with a transport to a server, and close the transport."""

    async def run() -> T:
        transport = HttpTransport(server.url)
        try:
            return await asyncio.wait_for(work(transport), TEST_TIMEOUT_S)
        finally:
            await transport.close()

    return asyncio.run(run())


async def get(transport: HttpTransport, request: WireRequest = REQUEST) -> WireResponse:
    """Send one request."""
    return await transport.send(request, Traffic.REST, TEST_TIMEOUT_S)


def response_to(handler: Handler, request: WireRequest = REQUEST) -> WireResponse:
    """Return the response of a server with this handler."""
    with raw_server(handler) as server:
        return run_over(server, lambda transport: get(transport, request))
