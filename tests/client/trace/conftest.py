"""Fixtures of traces: an embedded server in this process, and clients that are traced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

import tinkerwire as tw
from tinkerwire._trace.reading import Trace, read_trace
from tinkerwire.local import EmbeddedServer, EmbeddedTransport

NANO = "tinkerwire/byte-nano"
FAST = tw.RetryConfig(retry_delay_base=0.001, retry_delay_max=0.01, max_attempts=100)
OpenTraced = Callable[..., AbstractContextManager[tw.ServiceClient]]


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
            defaults = {"base_url": "local", "transport": EmbeddedTransport(running), "retry": FAST, "trace": path}
            with tw.ServiceClient(**{**defaults, **options}) as service:
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
