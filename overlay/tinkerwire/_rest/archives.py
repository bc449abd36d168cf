"""Checkpoints as one archive: the address that a server redirects to, and its download."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta, timezone
from pathlib import Path
from urllib.parse import urlsplit

from tinkerwire_base.call import ResponseLimits, SizeLimit, WireResponse, response_info
from tinkerwire_base.conversion.version_rules import dialect_error
from tinkerwire_base.errors import (
    APIConnectionError,
    APIResponseValidationError,
    APIStatusError,
    APITimeoutError,
    RequestInfo,
    ResponseInfo,
    ResponseTooLargeError,
    TinkerError,
    status_error,
)
from tinkerwire_generated import models
from tinkerwire_generated.api.runs import get_checkpoint_archive_url
from tinkerwire_generated.availability import OPERATION_VERSIONS

from .._connection.connection import Connection
from .._transport.address import is_embedded, parse_http_url
from .._transport.backpressure import Traffic
from .._transport.download import download

ARCHIVE_LIFE = timedelta(minutes=15)
"""Assumed lifetime of an address without an expiry."""

DOWNLOAD_SILENCE_S = 60.0
"""Timeout of a download for its connection and for each piece."""
MAX_DOWNLOAD_BYTES = 16 * 2**30
"""The size of an archive that is not downloaded into memory any more."""
MAX_ERROR_BYTES = 1 << 20
"""The size of the body of an error that is not read any more."""
SHOWN_ERROR_BYTES = 2000
"""Size of the body of an error that errors keep."""

NOT_SO = 405
"""Status of a server that has only DELETE at this path, because it has no archives."""


async def fetch_archive_url(
    connection: Connection, training_run_id: str, checkpoint_id: str
) -> models.CheckpointArchiveUrlResponse:
    """Fetch the URL of an archive, and its expiry; wire versions before 0.36.0.

    Raises:
        DialectError: the server lacks the call, by its wire version or its response.
    """
    call = get_checkpoint_archive_url(training_run_id, checkpoint_id)
    request = connection.codec.encode(call, await connection.dialect())
    in_body = connection.codec.reader(call, request)

    def read(answer: WireResponse) -> models.CheckpointArchiveUrlResponse:
        return (None if answer.status == 302 else in_body(answer)) or _moved_to(answer)

    try:
        return await connection.send(request, read, Traffic.REST)
    except APIStatusError as error:
        if error.status_code != NOT_SO:
            raise
        name, dialect = call.operation.name, await connection.dialect()
        odd = dialect_error(
            f"the call {name}, to which the server responds HTTP {NOT_SO},",
            dialect.max_version,
            *OPERATION_VERSIONS[name],
            name="the wire of this server",
        )
        odd.dialect = dialect
        raise odd from error


async def download_archive(connection: Connection, training_run_id: str, checkpoint_id: str) -> bytes:
    """Return the content of the archive of a checkpoint.

    The archive is fetched without the API key, as it usually lies at another host, under an address that is itself
    a secret. No error shows that address.

    Raises:
        DialectError: see :func:`fetch_archive_url`.
        APIStatusError, APIConnectionError: the download failed.
        TinkerError: the archive is too large for memory.
    """
    archive = await fetch_archive_url(connection, training_run_id, checkpoint_id)
    if archive.url.startswith("file:") and is_embedded(connection.base_url):
        return path_of_file_url(archive.url).read_bytes()
    if parse_http_url(archive.url) is None:
        scheme, colon, _ = archive.url.partition(":")
        kind = f"{'an invalid URL of ' * scheme.startswith('http')}{scheme}" if colon else "a relative URL"
        raise TinkerError(f"the URL of the archive must be http or https, got {kind}")
    return await _download(archive.url)


def path_of_file_url(url: str) -> Path:
    """Return the path of a file: URL, which the embedded server gives in process."""
    from urllib.request import url2pathname  # noqa: PLC0415  (it loads half of the mail and web modules)

    return Path(url2pathname(urlsplit(url).path))


async def _download(url: str) -> bytes:
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.hostname}"
    request_info = RequestInfo(method="GET", url=f"{origin}/...")
    try:
        limits = ResponseLimits(
            result=SizeLimit(max_bytes=MAX_DOWNLOAD_BYTES, setting="MAX_DOWNLOAD_BYTES"),
            error=SizeLimit(max_bytes=MAX_ERROR_BYTES, setting="MAX_ERROR_BYTES"),
        )
        response = await download(url, limits, DOWNLOAD_SILENCE_S)
    except ResponseTooLargeError as error:
        raise TinkerError(
            f"the download of the archive from {origin} has more than {error.limit_bytes} bytes; "
            "get_checkpoint_archive_url gives the address, to download it to a file"
        ) from None
    except (asyncio.TimeoutError, TimeoutError):
        raise APITimeoutError(
            request_info, message=f"the download of the archive from {origin}: no data within {DOWNLOAD_SILENCE_S:g} s"
        ) from None
    except (OSError, ValueError) as error:
        raise APIConnectionError(
            request=request_info, message=f"the download of the archive from {origin} failed: {type(error).__name__}"
        ) from None
    if response.status != 200:
        text = response.content[:SHOWN_ERROR_BYTES].decode("utf-8", "replace")
        info = ResponseInfo(status_code=response.status, headers=dict(response.headers), text=text)
        raise status_error(response.status)(
            f"the download of the archive from {origin}: HTTP {response.status}", response=info
        )
    return response.content


def _moved_to(answer: WireResponse) -> models.CheckpointArchiveUrlResponse:
    location = answer.headers.get("location")
    if not location:
        raise APIResponseValidationError(
            response_info(answer),
            message=f"get_checkpoint_archive_url: HTTP {answer.status}: the response must have a Location header",
        )
    return models.CheckpointArchiveUrlResponse(url=location, expires=_expires(answer.headers.get("expires")))


def _expires(text: str | None) -> datetime:
    from email.utils import parsedate_to_datetime  # noqa: PLC0415  (it imports half of the mail modules: 5 ms)

    try:
        time = parsedate_to_datetime(text or "")
    except ValueError:
        return datetime.now(timezone.utc) + ARCHIVE_LIFE
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)
