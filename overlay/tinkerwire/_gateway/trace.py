"""The trace of the gateway: one line of JSON for each request of a client, without its content."""

from __future__ import annotations

import time
from pathlib import Path
from typing import IO

import orjson

from tinkerwire_base.call import WireResponse

from .._wire.dialect import Dialect
from .front import ClientRequest
from .relay import RelayedExchange


class GatewayTrace:
    """A file of exchanges. It holds neither keys, nor bodies, nor query parameters.

    Args:
        path: the file, to which lines are appended.

    Raises:
        ValueError: the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        try:
            # A line is written at once, so that several processes can share the file.
            self._file: IO[bytes] = path.open("ab", buffering=0)
        except OSError as error:
            raise ValueError(f"trace: {path} cannot be written: {error.strerror or error}") from None

    def add(
        self, request: ClientRequest, response: WireResponse | None, exchange: RelayedExchange, dialect: Dialect | None
    ) -> None:
        """Add a line; without a response the client has gone, or the connection was dropped."""
        line = {
            "at": round(time.time(), 6),
            "operation": request.operation.name,
            "wire": request.front.version,
            "upstream": None if dialect is None else dialect.version_range,
            "form": exchange.form,
            "status": None if response is None else response.status,
            "seconds": round(time.monotonic() - exchange.started_at, 6),
            "requests": exchange.upstream_requests,
            "sent_bytes": len(request.wire.content or b""),
            "received_bytes": 0 if response is None else len(response.content),
        }
        self._file.write(orjson.dumps(line) + b"\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()
