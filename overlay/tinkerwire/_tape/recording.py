"""The transport that records the exchanges of another transport."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tinkerwire_base.call import WireRequest, WireResponse, url_without_secrets
from tinkerwire_base.errors import TinkerError
from tinkerwire_generated.api.futures.retrieve_future import OPERATION as RETRIEVE_FUTURE
from tinkerwire_generated.api.futures.retrieve_futures import OPERATION as RETRIEVE_FUTURES
from tinkerwire_generated.api.session.session_heartbeat import OPERATION as HEARTBEAT
from tinkerwire_generated.api.telemetry.telemetry import OPERATION as TELEMETRY

from .._futures.fork_lock import ForkLock
from .._polling.result_reader import is_final, parse_body
from .._transport.backpressure import Traffic
from .._transport.base import Transport
from .._transport.poll_connections import poll_connections_of
from .secret_removal import KEPT_REQUEST_HEADERS, KEPT_RESPONSE_HEADERS, SecretRemoval, keep_headers
from .tape_file import RecordedExchange, TapeWriter

UNRECORDED_PATHS = frozenset({TELEMETRY.path, RETRIEVE_FUTURES.path})
_writers: dict[Path, TapeWriter] = {}
_lock = ForkLock()


def record(transport: Transport, address: str, path: Path) -> RecordingTransport:
    """Return a transport that records another one on a tape; all transports of a process share the open file.

    A tape that was deleted or moved since is created anew.

    Raises:
        ValueError: the tape cannot be written.
    """
    with _lock.current:
        writer = _writers.get(path)
        if writer is None or not writer.is_current:
            # Clients that are open still write to the tape that was moved away.
            writer = _writers[path] = TapeWriter(path)
    writer.write_server(url_without_secrets(address))
    return RecordingTransport(transport, writer)


class RecordingTransport:
    """Passes requests to a transport, and writes them with their responses to a tape.

    Polls without a result, telemetry and heartbeats that succeed are not recorded.

    Args:
        transport: sends the requests; closed with this transport.
        writer: the tape.
    """

    def __init__(self, transport: Transport, writer: TapeWriter) -> None:
        self._transport = transport
        self._writer = writer
        self._removal = SecretRemoval()
        self.poll_connections = poll_connections_of(transport)

    async def send(self, request: WireRequest, traffic: Traffic, timeout_s: float) -> WireResponse:
        """See :class:`Transport`."""
        if request.path in UNRECORDED_PATHS:
            return await self._transport.send(request, traffic, timeout_s)
        at = self._writer.start()
        self._removal.learn(request.headers)
        try:
            response = await self._transport.send(request, traffic, timeout_s)
        except TinkerError as error:
            message = self._removal.clean_text(str(error))
            self._write_error(at, request, type(error).__name__, message, error.may_have_been_sent)
            raise
        except asyncio.CancelledError:
            self._write_error(at, request, "CancelledError", "the program cancelled the request", None)
            raise
        if _is_worth_recording(request, response):
            self._write(
                at,
                request,
                status=response.status,
                response_headers=keep_headers(response.headers, KEPT_RESPONSE_HEADERS),
                response=self._removal.clean(response.content),
            )
        return response

    async def close(self) -> None:
        """See :class:`Transport`."""
        await self._transport.close()

    def _write_error(self, at: int, request: WireRequest, kind: str, message: str, may_have_been_sent: object) -> None:
        if request.path not in (RETRIEVE_FUTURE.path, HEARTBEAT.path):
            error = {"kind": kind, "message": message, "may_have_been_sent": may_have_been_sent}
            self._write(at, request, error=error)

    def _write(self, at: int, request: WireRequest, **outcome: object) -> None:
        self._writer.write(
            RecordedExchange(
                at=at,
                method=request.method,
                path=self._removal.clean_text(request.path),
                query=[[name, self._removal.clean_text(value)] for name, value in request.query],
                headers=keep_headers(request.headers, KEPT_REQUEST_HEADERS),
                content=None if request.content is None else self._removal.clean(request.content),
                **outcome,  # type: ignore[arg-type]
            )
        )


def _is_worth_recording(request: WireRequest, response: WireResponse) -> bool:
    if request.path == HEARTBEAT.path:
        return response.status >= 300
    if request.path == RETRIEVE_FUTURE.path and response.status != 408:
        return response.status >= 300 or is_final(response, parse_body(response))
    return request.path != RETRIEVE_FUTURE.path
