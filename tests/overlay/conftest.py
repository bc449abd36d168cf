"""A scripted server and a client of it for each test, a clean environment before it, and nothing left after it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

import tinkerwire as tw
from support.clients import loop_threads, open_client, wait_until
from support.scripted import Scripted, scripted_server


@pytest.fixture(autouse=True)
def clean(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No variable of the developer's gets in, no thread of the client's stays."""
    if "local" in request.path.parts:
        yield
        return
    for name in os.environ:
        if name.startswith("TINKER") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    yield
    wait_until(lambda: not loop_threads(), "the client's thread ends after close")


@pytest.fixture
def server() -> Iterator[Scripted]:
    """The server."""
    with scripted_server() as found:
        yield found


@pytest.fixture
def client(server: Scripted) -> Iterator[tw.ServiceClient]:
    """A client of it that retries without dawdling."""
    with open_client(server.url) as found:
        yield found
