"""Looks up the name of a server, and connects to the first of its addresses that responds."""

from __future__ import annotations

import asyncio
import socket
from ipaddress import ip_address

from aiohappyeyeballs import AddrInfoType, start_connection

NAME_LIFE_S = 60.0
"""Time for which the addresses of a name are kept."""
NEXT_ADDRESS_S = 0.25
"""Time after which the next address of a name is tried beside the previous one (RFC 8305)."""


class NameLookup:
    """Addresses of one name, shared by all connections of a transport. Used on one event loop."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._task: asyncio.Task[list[AddrInfoType]] | None = None
        self._ends_at = 0.0

    async def connect(self) -> socket.socket:
        """Return a connected socket.

        Raises:
            OSError: the name has no address, or no address accepts a connection.
            UnicodeError: the name cannot be looked up.
        """
        addresses = await self._addresses()
        try:
            return await start_connection(addresses, happy_eyeballs_delay=NEXT_ADDRESS_S)
        except OSError:
            self._ends_at = 0.0  # the server may have moved
            raise

    async def _addresses(self) -> list[AddrInfoType]:
        loop = asyncio.get_running_loop()
        if _is_literal(self._host):
            return list(
                socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
            )
        # Load the codec on this thread, which a fork waits for; otherwise the threads of the executor load it.
        self._host.encode("idna")
        if self._task is None or (self._task.done() and (loop.time() > self._ends_at or _has_failed(self._task))):
            self._ends_at = loop.time() + NAME_LIFE_S
            self._task = loop.create_task(self._look_up())
            # Nobody may wait for it any more when it fails.
            self._task.add_done_callback(_has_failed)
        # A caller that gives up must not cancel the lookup of the others.
        return await asyncio.shield(self._task)

    async def _look_up(self) -> list[AddrInfoType]:
        loop = asyncio.get_running_loop()
        return list(await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM))


def _has_failed(task: asyncio.Task[list[AddrInfoType]]) -> bool:
    return task.cancelled() or task.exception() is not None


def _is_literal(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
