"""Connections for polls: one for each sample in flight, as far as the limits of the machine allow.

A server that holds polls keeps the connection of each unfinished sample. If finished samples had to wait for one of
these connections, they would reach the caller seconds late. Therefore a sample is not submitted before a connection is
reserved for its polls. Servers that return 408 at once leave connections free; then samples need no reservation.
"""

from __future__ import annotations

import weakref
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import attrs

from .._futures.logger import log

DEFAULT_PORTS = 16_384
"""Ephemeral ports of most systems; Linux names its own range."""
PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
MIN_POLLS = 16
"""Connections for polls even where the limits leave fewer; an error then names the limit."""


@attrs.frozen
class PollLimit:
    """Maximum number of poll connections, and the limit of the machine that it results from."""

    number: int
    reason: str
    """Clause that names the limit of the machine."""


class Wakeable(Protocol):
    """Queue of samples that wait for a connection."""

    def wake(self) -> None:
        """Submit the samples for which there is a connection now."""


class PollConnections:
    """Reservations of the poll connections of one transport. Used on one event loop.

    Args:
        limit: the maximum number of connections; None for a transport without a known limit.
    """

    def __init__(self, limit: PollLimit | None) -> None:
        self.limit = limit
        self.reserved = 0
        self.are_held = True
        """False once the server has returned a poll without a result at once, until it holds one."""
        self._has_warned = False
        self._queues: weakref.WeakSet[Wakeable] = weakref.WeakSet()
        self._has_queues = False

    @property
    def has_free(self) -> bool:
        """True if another sample may be submitted."""
        return self.limit is None or not self.are_held or self.reserved < self.limit.number

    def add_queue(self, queue: Wakeable) -> None:
        """Wake a queue when a connection is free."""
        self._queues.add(queue)
        self._has_queues = True
        if self.limit is not None and not self._has_warned:
            self._has_warned = True
            log.warning(
                "%d samples are in flight, and further samples wait: each needs a connection, and %s",
                self.reserved,
                self.limit.reason,
            )

    def reserve(self) -> None:
        """Reserve a connection for the polls of one sample."""
        self.reserved += 1

    def release(self) -> None:
        """Give a connection to the next sample that waits for one."""
        self.reserved -= 1
        self._wake()

    def observe(self, *, was_held: bool) -> None:
        """Learn from a poll without a result whether the server holds polls."""
        if was_held != self.are_held:
            self.are_held = was_held
            self._wake()

    def _wake(self) -> None:
        if self._has_queues:
            for queue in list(self._queues):
                queue.wake()


def poll_connections_of(transport: object) -> PollConnections:
    """Return the poll connections of a transport, without a limit for transports of users."""
    found = getattr(transport, "poll_connections", None)
    return found if isinstance(found, PollConnections) else PollConnections(None)


def find_poll_limit(other_connections: int, files_per_poll: int = 1) -> PollLimit:
    """Return how many connections for polls this process may open.

    A tenth of the files, and of the ports, stays free for the rest of the program.

    Args:
        other_connections: maximum number of connections for other requests.
        files_per_poll: files that a poll takes: its connection, and in a gateway that of the client, too.
    """
    ports = _count_ports()
    limits = [PollLimit(ports * 9 // 10, f"the system has {ports:,} ports for connections to one address")]
    files = _max_open_files()
    if files is not None:
        number = (files * 9 // 10 - _count_open_files() - other_connections) // files_per_poll
        limits.append(PollLimit(number, f"a process may open {files:,} files; raise the limit with ulimit -n"))
    limit = min(limits, key=lambda limit: limit.number)
    return attrs.evolve(limit, number=max(MIN_POLLS, limit.number))


def _max_open_files() -> int | None:
    try:
        import resource  # noqa: PLC0415  (Windows does not have it)
    except ImportError:
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def _count_open_files() -> int:
    with suppress(OSError):
        return sum(1 for _ in Path("/dev/fd").iterdir())
    return 0


def _count_ports() -> int:
    try:
        first, last = map(int, PORT_RANGE.read_text().split())
    except (OSError, ValueError):
        return DEFAULT_PORTS
    return last - first + 1
