"""Fixtures for tests of the client: a scripted server, a client of it, and a clean environment."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

import tinkerwire as tw
from support.clients import loop_threads, open_client, wait_until
from support.scripted import TEST_TIMEOUT_S, ScriptedServer, scripted_server
from tinkerwire._futures.event_loop import LOOP


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Hide the developer's variables and credentials, and check that the client's thread ends."""
    for name in os.environ:
        if name.startswith(("TINKER", "CLOUDFLARE")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path_factory.getbasetemp() / "nobody"))
    yield
    if loop_threads():
        # Copies of sampling clients end when they are collected; an error that a test caught may hold one.
        gc.collect()
    try:
        wait_until(lambda: not loop_threads(), "the client's thread ends after close")
    finally:
        LOOP.reset_after_fork()


@pytest.fixture(scope="module", autouse=True)
def quiet() -> Iterator[None]:
    """Check that no task or callback of the client fails unseen; asyncio logs such failures on collection."""
    messages: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("asyncio").addHandler(handler)
    yield
    gc.collect()
    logging.getLogger("asyncio").removeHandler(handler)
    assert not messages, messages


@pytest.fixture
def pass_time(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return a function that moves the process's clock forward, so that a limit ends at once on any machine."""
    monotonic, jumps = time.monotonic, [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + sum(jumps))

    def jump(seconds: float) -> None:
        jumps.append(seconds)
        # The client's loop looks at the clock when something wakes it.
        LOOP.start(partial(asyncio.sleep, 0)).result(TEST_TIMEOUT_S)

    return jump


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """Run a scripted server for the test."""
    with scripted_server() as running_server:
        yield running_server


@pytest.fixture
def client(server: ScriptedServer) -> Iterator[tw.ServiceClient]:
    """Open a client of the scripted server that retries without long waits."""
    with open_client(server.url) as service_client:
        yield service_client


@pytest.fixture
def training(client: tw.ServiceClient) -> tw.TrainingClient:
    """Create a model on the scripted server."""
    return client.create_lora_training_client("base", rank=8)
