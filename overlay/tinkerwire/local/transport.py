"""The client's way to an embedded server: no socket, no copy."""

from __future__ import annotations

import asyncio
import os
import threading

from tinkerwire.futures.timeout import wait_for
from tinkerwire.local.misbehaviour import ConnectionDropped
from tinkerwire.local.server import EmbeddedServer
from tinkerwire.sending.backpressure import Traffic
from tinkerwire.sending.transport import connection_error, timeout_error
from tinkerwire_base.call import WireRequest, WireResponse

ADDRESS = "local"


class EmbeddedTransport:
    """Hands requests to a server in this process; the server outlives it."""

    def __init__(self, server: EmbeddedServer) -> None:
        self.server = server

    async def send(self, request: WireRequest, traffic: Traffic, timeout_s: float) -> WireResponse:
        """The answer, whatever its status.

        Raises:
            APITimeoutError: none within ``timeout_s`` seconds.
            APIConnectionError: the server was told to drop this one.
        """
        try:
            return await wait_for(self.server.handle(request), timeout_s)
        except asyncio.TimeoutError as fault:
            raise timeout_error(request, ADDRESS, timeout_s) from fault
        except ConnectionDropped as fault:
            raise connection_error(request, ADDRESS, fault) from fault

    async def close(self) -> None:
        """Leave the server to who made it."""


_shared: list[tuple[int, EmbeddedServer]] = []
_lock = threading.RLock()


def _forget() -> None:
    """Replace the lock in a forked child, where the thread that holds it may not exist."""
    global _lock  # noqa: PLW0603
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def shared_server() -> EmbeddedServer:
    """The one server of this process, made when it is first asked for, with a temporary folder."""
    with _lock:
        # A forked child has no worker threads, so it needs a server of its own.
        if not _shared or _shared[0][0] != os.getpid():
            _shared[:] = [(os.getpid(), EmbeddedServer())]
        return _shared[0][1]


def embedded_transport(server: EmbeddedServer | None = None) -> EmbeddedTransport:
    """A transport to ``server``, or to the shared one of this process."""
    return EmbeddedTransport(server or shared_server())
