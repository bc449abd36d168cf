"""The transport over an ``httpx.AsyncClient`` of the user."""

from __future__ import annotations

import asyncio
import zlib
from typing import TYPE_CHECKING

from tinkerwire_base.call import WireRequest, WireResponse
from tinkerwire_base.errors import APIConnectionError, APIError

from .._futures.timeout import wait_for
from .backpressure import CONNECTIONS, Traffic
from .base import connection_slot, remaining_seconds
from .errors import CONNECT_TIMEOUT_S, connect_timeout_error, connection_error, timeout_error
from .response_body import ACCEPTED, read_body

if TYPE_CHECKING:
    import httpx


class HttpxTransport:
    """Through an ``httpx.AsyncClient`` that the user made (proxies, mounts, mocks), and closed with this.

    All traffic shares its connections: give it ``limits=httpx.Limits(max_connections=None)`` for large work.
    """

    def __init__(self, client: httpx.AsyncClient, base_url: str) -> None:
        self._client = client
        self._base_url = base_url
        self._free = {traffic: asyncio.Semaphore(number) for traffic, number in CONNECTIONS.items()}

    async def send(self, request: WireRequest, traffic: Traffic, timeout_s: float) -> WireResponse:
        """See :class:`Transport`."""
        import httpx  # noqa: PLC0415

        try:
            async with connection_slot(self._free[traffic], request, self._base_url):
                seconds = remaining_seconds(timeout_s)
                # httpx limits each step only, not the whole.
                return await wait_for(
                    self._request(request, httpx.Timeout(seconds, connect=CONNECT_TIMEOUT_S)), seconds
                )
        except APIError:  # of this client: some are TimeoutErrors, too
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
        """Close the user's client, too: its connections are of the loop that this one runs on, and end with it."""
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
        ) as answer:
            status, encoding = answer.status_code, answer.headers.get("content-encoding", "")
            if answer.is_stream_consumed:
                # By a hook of the user's, so that it is in memory already.
                content = await answer.aread()
            else:
                length = answer.headers.get("content-length", "")
                chunks = answer.aiter_raw()
                content = await read_body(
                    request, url, status, encoding, int(length) if length.isdigit() else None, chunks
                )
            return WireResponse(status=status, headers=dict(answer.headers), content=content)
