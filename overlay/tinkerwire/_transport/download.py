"""Downloads from any address, without credentials."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from string import punctuation
from urllib.parse import quote, urljoin, urlsplit

from tinkerwire_base.call import ResponseLimits, WireRequest, WireResponse
from tinkerwire_base.errors import TinkerError

from .._futures.timeout import wait_for
from .address import parse_http_url
from .connector import Connector
from .http_connection import BodyReceiver, HttpConnection

MAX_REDIRECTS = 10
REDIRECTS = frozenset({301, 302, 303, 307, 308})


async def download(
    url: str,
    limits: ResponseLimits,
    silence_s: float,
    *,
    headers: Mapping[str, str] | None = None,
    receive: BodyReceiver | None = None,
) -> WireResponse:
    """Fetch a URL over connections of its own and follow redirects; the content is as stored, perhaps compressed.

    Args:
        url: an http or https URL, which may be a secret: no error shows its path or query.
        limits: maximum sizes of the content and of the bodies of other responses.
        silence_s: time limit for the connection and for each piece of the content.
        headers: additional headers of the request.
        receive: gets the pieces of the content as they arrive, see :meth:`HttpConnection.exchange`.

    Raises:
        asyncio.TimeoutError: no data arrived for ``silence_s`` seconds.
        ResponseTooLargeError: the content is larger than its limit.
        OSError: the connection failed.
        ValueError: the host name is invalid, or urljoin cannot join a redirect.
        TinkerError: there were too many redirects, or one to another kind of address.
    """
    for _ in range(1 + MAX_REDIRECTS):
        response = await _fetch(url, limits, silence_s, headers or {}, receive)
        location = response.headers.get("location")
        if response.status not in REDIRECTS or not location:
            return response
        url = urljoin(url, location)
        if parse_http_url(url) is None:
            raise TinkerError(
                f"a download is redirected to {url.partition(':')[0]}; expected a valid http or https URL"
            )
    raise TinkerError(f"a download is redirected more than {MAX_REDIRECTS} times")


async def _fetch(
    url: str, limits: ResponseLimits, silence_s: float, headers: Mapping[str, str], receive: BodyReceiver | None
) -> WireResponse:
    parts = urlsplit(url)
    connector = Connector(f"{parts.scheme}://{parts.netloc}", accepted="identity")
    request = WireRequest(
        method="GET",
        # The server has encoded the URL; characters that cannot be sent are the exception.
        path=quote((parts.path or "/") + (f"?{parts.query}" if parts.query else ""), safe=punctuation),
        headers={"accept": "*/*", **headers},
        limits=limits,
    )
    opened: list[HttpConnection] = []

    async def connect() -> None:
        opened.append(await connector.connect(lambda _: None, silence_s))

    try:
        await wait_for(connect(), silence_s)
        url_in_errors = f"{parts.scheme}://{parts.hostname}/..."
        deadline = asyncio.get_running_loop().time() + silence_s
        return await opened[0].exchange(request, connector.encode_head, url_in_errors, deadline, receive)
    finally:
        # A cancellation may come together with the connection.
        for connection in opened:
            connection.abort()
