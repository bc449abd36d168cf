"""HTTP without sockets: hands the requests of the kit to an embedded server in the same process."""

from __future__ import annotations

import asyncio

import httpx

from tinkerwire._conformance.client import wire_client
from tinkerwire._futures.timeout import wait_for
from tinkerwire._server.app import EmbeddedServer
from tinkerwire._server.emulation.fault_injection import ConnectionDropped
from tinkerwire_base.call import WireRequest

URL = "http://127.0.0.1:1"
"""An address at which nobody listens: no request can leave the process."""


_connect = wire_client._connect


class InProcessTransport(httpx.AsyncBaseTransport):
    """Transport of httpx that calls an embedded server.

    Args:
        server: the server that gets the requests.
    """

    def __init__(self, server: EmbeddedServer) -> None:
        self._server = server

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the response to a request.

        Raises:
            httpx.RemoteProtocolError: the server dropped the connection.
            httpx.ReadTimeout: the server did not respond in time.
        """
        wire = WireRequest(
            method=request.method,
            path=request.url.raw_path.decode().partition("?")[0],
            query=tuple(request.url.params.multi_items()),
            headers={name.decode("ascii"): value.decode("latin-1") for name, value in request.headers.raw},
            content=await request.aread(),
        )
        try:
            response = await wait_for(self._server.handle(wire), request.extensions["timeout"]["read"])
        except ConnectionDropped as error:
            raise httpx.RemoteProtocolError(str(error)) from error
        except asyncio.TimeoutError as error:
            raise httpx.ReadTimeout("no response") from error
        # aiohttp does the same: the response to HEAD has no body.
        body = b"" if request.method == "HEAD" else response.content
        return httpx.Response(response.status, headers=dict(response.headers), content=body)


def use(server: EmbeddedServer | None) -> None:
    """Hand all requests of the kit in this process to a server; None restores requests over sockets."""
    if server is None:
        wire_client._connect = _connect
        return
    wire_client._connect = lambda: httpx.AsyncClient(
        transport=InProcessTransport(server), follow_redirects=False, trust_env=False
    )
