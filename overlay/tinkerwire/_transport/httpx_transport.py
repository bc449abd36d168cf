"""The transport over an ``httpx.AsyncClient`` of the user."""

from __future__ import annotations

import asyncio
import zlib
from typing import TYPE_CHECKING

from tinkerwire_base.call import WireRequest, WireResponse
from tinkerwire_base.errors import APIConnectionError, APIError

from .._futures.timeout import wait_for
from .backpressure import Traffic, count_connections
from .base import ConnectionSlot, remaining_seconds
from .errors import CONNECT_TIMEOUT_S, connect_timeout_error, connection_error, timeout_error
from .poll_connections import PollConnections
from .response_body import ACCEPTED, read_body

if TYPE_CHECKING:
    import httpx


class HttpxTransport:
    """Transport over an ``httpx.AsyncClient`` of the user (proxies, mounts, mocks), which is closed with it.

    All traffic shares the client's connections: set ``limits=httpx.Limits(max_connections=None)`` for heavy use.
    """

    def __init__(self, client: httpx.AsyncClient, base_url: str) -> None:
        self._client = client
        self._base_url = base_url
        sample_polls, max_connections = count_connections()
        self.poll_connections = PollConnections(sample_polls)
        self._free = {traffic: asyncio.Semaphore(number) for traffic, number in max_connections.items()}

    async def send(self, request: WireRequest, traffic: Traffic, timeout_s: float) -> WireResponse:
        """See :class:`Transport`."""
        import httpx  # noqa: PLC0415

        try:
            async with ConnectionSlot(self._free[traffic], request, self._base_url):
                seconds = remaining_seconds(timeout_s)
                # httpx limits each phase only, not the whole response.
                return await wait_for(
                    self._request(request, httpx.Timeout(seconds, connect=CONNECT_TIMEOUT_S)), seconds
                )
        except APIError:  # raised by this client; some are TimeoutErrors
            raise
        except httpx.ConnectTimeout:
            error: APIConnectionError = connect_timeout_error(request, self._base_url)
        except (httpx.TimeoutException, asyncio.TimeoutError, TimeoutError):
            error = timeout_error(request, self._base_url, timeout_s)
        except httpx.ConnectError as cause:
            error = connection_error(request, self._base_url, cause, may_have_been_sent=False)
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, zlib.error, OSError, UnicodeError) as cause:
            error = connection_error(request, self._base_url, cause)
        raise error

    async def close(self) -> None:
        """Close the user's client: its connections belong to the loop that ends with this transport."""
        await self._client.aclose()

    async def _request(self, request: WireRequest, limits: httpx.Timeout) -> WireResponse:
        url = self._base_url + request.path
        async with self._client.stream(
            request.method,
            url,
            params=request.query or None,
            content=request.content,
            headers={"accept-encoding": ACCEPTED, **request.headers},
            timeout=limits,
            follow_redirects=False,
        ) as response:
            status, encoding = response.status_code, response.headers.get("content-encoding", "")
            if response.is_stream_consumed:
                # A hook of the user has read the body into memory.
                content = await response.aread()
            else:
                length = response.headers.get("content-length", "")
                chunks = response.aiter_raw()
                content = await read_body(
                    request, url, status, encoding, int(length) if length.isdigit() else None, chunks
                )
            return WireResponse(status=status, headers=dict(response.headers), content=content)
