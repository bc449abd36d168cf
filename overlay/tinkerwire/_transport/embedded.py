"""The transport to an embedded server, without a socket and without copies."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tinkerwire._futures.fork_lock import ForkLock
from tinkerwire._futures.timeout import wait_for
from tinkerwire._server.app import EmbeddedServer
from tinkerwire._server.emulation.fault_injection import ConnectionDropped
from tinkerwire._transport.backpressure import Traffic
from tinkerwire._transport.errors import connection_error, timeout_error
from tinkerwire._transport.poll_connections import PollConnections
from tinkerwire_base.call import WireRequest, WireResponse

log = logging.getLogger("tinkerwire")
ADDRESS = "local"
CLOSING_S = 30.0
"""Time that a client waits for a server of the same folder that is closing."""


class EmbeddedTransport:
    """Passes requests to a server in this process.

    Args:
        server: the server.
        address: the address in errors.
        leave: called once when the transport closes or is dropped; None leaves the server to its creator.
    """

    def __init__(self, server: EmbeddedServer, address: str = ADDRESS, leave: Callable[[], None] | None = None) -> None:
        self.server = server
        self._address = address
        self.poll_connections = PollConnections(None)
        self._leave = None if leave is None else weakref.finalize(self, leave)
        if self._leave is not None:
            self._leave.atexit = False

    async def send(self, request: WireRequest, traffic: Traffic, timeout_s: float) -> WireResponse:
        """Send a request and return the response of any status.

        Raises:
            APITimeoutError: the server did not respond within ``timeout_s`` seconds.
            APIConnectionError: fault injection has dropped the connection.
        """
        try:
            return await wait_for(self.server.handle(request), timeout_s)
        except asyncio.TimeoutError as error:
            raise timeout_error(request, self._address, timeout_s) from error
        except ConnectionDropped as error:
            raise connection_error(request, self._address, error) from error

    async def close(self) -> None:
        """Leave the server; the last client of a named folder closes it."""
        if self._leave is not None:
            # On another thread than the loop's: the server waits for the step that it is computing.
            await asyncio.to_thread(self._leave)


class _Shared:
    """The server of one folder in this process, shared by its clients."""

    def __init__(self, folder: Path | None) -> None:
        self.server = EmbeddedServer(folder=folder)
        self.pid = os.getpid()
        self.users: list[None] = []
        self.closed: threading.Event | None = None
        """Set once a server that is closing has released its folder."""


_shared: dict[Path | None, _Shared] = {}
_lock = ForkLock()


def shared_server(folder: Path | None = None) -> EmbeddedServer:
    """Return the server of this process for a folder, which the first call creates; None is a temporary folder.

    Raises:
        ValueError: the folder cannot be used, or a server of another process uses it.
    """
    return _share(folder).server


def shared_transport(folder: Path | None) -> EmbeddedTransport:
    """Return a transport to the shared server of a folder; the last transport that closes releases the folder.

    Raises:
        ValueError: see :func:`shared_server`.
    """
    with _lock.current:
        shared = _share(folder)
        if folder is None:
            # The checkpoints of a temporary folder last as long as the process.
            return EmbeddedTransport(shared.server)
        shared.users.append(None)
        return EmbeddedTransport(shared.server, f"{ADDRESS}:{folder}", partial(_leave, folder, shared))


def embedded_transport(server: EmbeddedServer | None = None) -> EmbeddedTransport:
    """Return a transport to ``server``, or to the shared server of this process."""
    return EmbeddedTransport(server or shared_server())


def _share(folder: Path | None) -> _Shared:
    with _lock.current:
        shared = _shared.get(folder)
        closed = None if shared is None or shared.pid != os.getpid() else shared.closed
    if closed is not None:
        closed.wait(CLOSING_S)
    with _lock.current:
        shared = _shared.get(folder)
        # A forked child has no worker threads, so that it needs another server.
        if shared is None or shared.pid != os.getpid() or shared.closed is not None:
            created = _Shared(folder)
            # A signal handler may have created one of a temporary folder in the meantime, which may hold checkpoints.
            shared = _shared.get(folder)
            if shared is not None and shared.pid == os.getpid() and shared.closed is None:
                created.server.close()
                return shared
            shared = _shared[folder] = created
        return shared


def _leave(folder: Path, shared: _Shared) -> None:
    if shared.pid != os.getpid():
        return
    with _lock.current:
        shared.users.pop()
        if shared.users:
            return
        shared.closed = threading.Event()
    try:
        shared.server.close()
    finally:
        shared.closed.set()


@atexit.register
def _announce_loss() -> None:
    """Log the number of checkpoints that end with the process, and how to keep them."""
    shared = _shared.get(None)
    if shared is None or shared.pid != os.getpid():
        return
    count = shared.server.checkpoint_count
    if count:
        noun = "checkpoint" if count == 1 else "checkpoints"
        log.warning(
            "%d %s of the embedded server will be lost with the temporary folder of this process; "
            'base_url="local:FOLDER" or TINKERWIRE_LOCAL_FOLDER=FOLDER keeps them',
            count,
            noun,
        )
