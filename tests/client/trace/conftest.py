"""Fixtures of traces: an embedded server in this process, and clients that are traced."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

import tinkerwire as tw
from tinkerwire._connection.connection import Connection
from tinkerwire._trace.reading import Trace, read_trace
from tinkerwire._transport.backpressure import Traffic
from tinkerwire.local import EmbeddedServer, EmbeddedTransport
from tinkerwire_base.call import WireRequest, WireResponse

NANO = "tinkerwire/byte-nano"
FAST = tw.RetryConfig(retry_delay_base=0.001, retry_delay_max=0.01, max_attempts=100)
OpenTraced = Callable[..., AbstractContextManager[tw.ServiceClient]]


class UnhurriedTransport(EmbeddedTransport):
    """Transport that polls only while something waits for a result, as for a server that is slower than the program.

    On a loaded machine, a result may otherwise arrive before the program waits for it, and is not awaited then.
    """

    connection: Connection

    async def send(self, request: WireRequest, traffic: Traffic, timeout_s: float) -> WireResponse:
        """Send a request, a poll only once something waits."""
        while request.path == "/api/v1/retrieve_future" and not self._has_waiters():  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        return await super().send(request, traffic, timeout_s)

    def _has_waiters(self) -> bool:
        return any(record.waiters for record in self.connection.operations.under_way())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of the trace."""
    return tmp_path / "run.trace"


@pytest.fixture
def open_traced(path: Path) -> OpenTraced:
    """Return a context manager that opens a traced client of an embedded server of its own."""

    @contextmanager
    def open_client(server: EmbeddedServer | None = None, **options: Any) -> Iterator[tw.ServiceClient]:
        with server or EmbeddedServer() as running:
            transport = UnhurriedTransport(running)
            defaults = {"base_url": "local", "transport": transport, "retry": FAST, "trace": path}
            with tw.ServiceClient(**{**defaults, **options}) as service:
                transport.connection = service._connection
                yield service

    return open_client


@pytest.fixture
def traced(open_traced: OpenTraced, path: Path) -> Callable[..., Trace]:
    """Return a function that runs a program with a traced client, and returns its trace."""

    def run(program: Callable[[tw.ServiceClient], object], **options: Any) -> Trace:
        with open_traced(**options) as service:
            program(service)
        return read_trace(path)

    return run
