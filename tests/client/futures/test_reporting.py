"""Progress bars, logs, counters and telemetry can neither hold up, lose nor fail a result."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import ADAM, PARAMS, PROMPT, open_client
from support.scripted import PATIENCE_S, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._futures import operation_record

pytestmark = pytest.mark.timeout(60)
FAILURES = [
    OSError(5, "Input/output error"),
    BrokenPipeError(32, "Broken pipe"),
    ValueError("closed"),
    SystemExit(3),
    KeyboardInterrupt(),
    BaseException("odd"),
]


class BrokenTerminal(io.StringIO):
    """A terminal to which nothing can be written any more."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self._error = error

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        raise self._error


class StuckTerminal(io.StringIO):
    """A terminal that was stopped: who writes to it waits."""

    def __init__(self) -> None:
        super().__init__()
        self.is_over = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.is_over.wait(PATIENCE_S * 2)
        return len(text)


def three_samples(client: tw.ServiceClient) -> list[tw.APIFuture[tw.SampleResponse]]:
    """Operations whose results are there soon."""
    sampling = client.create_sampling_client(base_model="base")
    return [sampling.sample(PROMPT, 1, PARAMS) for _ in range(3)]


def check_all_ways(client: tw.ServiceClient) -> None:
    """All results arrive, gathered and as completed, for threads and for coroutines."""
    assert len(tw.gather(three_samples(client), progress=True).result(PATIENCE_S)) == 3
    assert len(list(tw.as_completed(three_samples(client), progress=True, timeout=PATIENCE_S))) == 3

    async def run() -> int:
        return len([future async for future in tw.as_completed(three_samples(client), progress=True)])

    assert asyncio.run(run()) == 3


@pytest.mark.parametrize("with_tqdm", [False, True])
@pytest.mark.parametrize("error", FAILURES, ids=repr)
def test_a_bar_that_cannot_be_written(
    client: tw.ServiceClient, monkeypatch: pytest.MonkeyPatch, error: BaseException, with_tqdm: bool
) -> None:
    """Whatever writing raises, every result arrives."""
    if not with_tqdm:
        monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(sys, "stderr", BrokenTerminal(error))
    check_all_ways(client)


@pytest.mark.parametrize("closed", [True, False])
def test_a_standard_error_that_is_closed_or_none(
    client: tw.ServiceClient, monkeypatch: pytest.MonkeyPatch, closed: bool
) -> None:
    """A program without standard error, as a service, has no bar but all results."""
    terminal = io.StringIO()
    terminal.close()
    monkeypatch.setattr(sys, "stderr", terminal if closed else None)
    check_all_ways(client)
    assert len(tw.gather(three_samples(client)).result(PATIENCE_S)) == 3


def test_a_terminal_that_is_stopped(client: tw.ServiceClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writing that never returns holds up the bar alone."""
    terminal = StuckTerminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    check_all_ways(client)
    terminal.is_over.set()


@pytest.fixture
def handler() -> Iterator[Callable[[Callable[[logging.LogRecord], None]], None]]:
    """Gives the client's logger a handler for one test."""
    added: list[logging.Handler] = []

    def add(emit: Callable[[logging.LogRecord], None]) -> None:
        found = logging.Handler()
        found.emit = emit  # type: ignore[method-assign]
        logging.getLogger("tinkerwire").addHandler(found)
        added.append(found)

    yield add
    for each in added:
        logging.getLogger("tinkerwire").removeHandler(each)


@pytest.mark.parametrize("error", FAILURES, ids=repr)
def test_a_log_handler_that_raises(
    server: ScriptedServer,
    client: tw.ServiceClient,
    handler: Callable[[Callable[[logging.LogRecord], None]], None],
    error: BaseException,
) -> None:
    """An operation that has something to say goes on when saying it fails."""
    seen: list[str] = []

    def emit(record: logging.LogRecord) -> None:
        seen.append(record.getMessage())
        raise error

    handler(emit)
    server.rules["optim_step"] = in_order(
        *[ScriptedResponse({"detail": "full"}, status=500)] * 3, server.healthy_response
    )
    assert client.create_lora_training_client("base").optim_step(ADAM).result(PATIENCE_S)
    assert any("full" in message for message in seen)


def test_a_log_handler_that_blocks(
    server: ScriptedServer, client: tw.ServiceClient, handler: Callable[[Callable[[logging.LogRecord], None]], None]
) -> None:
    """Operations go on while a handler waits for something that never comes."""
    is_over, seen = threading.Event(), threading.Event()

    def emit(record: logging.LogRecord) -> None:
        seen.set()
        is_over.wait(PATIENCE_S * 2)

    handler(emit)
    server.rules["optim_step"] = in_order(*[ScriptedResponse({}, status=500)] * 3, server.healthy_response)
    assert client.create_lora_training_client("base").optim_step(ADAM).result(PATIENCE_S)
    assert seen.is_set()
    is_over.set()


@pytest.mark.parametrize("error", FAILURES, ids=repr)
@pytest.mark.parametrize("blocks", [True, False])
def test_on_wait_that_raises_or_blocks(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, error: BaseException, blocks: bool
) -> None:
    """The function is called, and the result arrives whatever it does."""
    monkeypatch.setattr(operation_record, "FIRST_WAIT_LOG_S", 0.0)
    is_over, called = threading.Event(), threading.Event()

    def listen(waiting: tw.WaitStatus) -> None:
        called.set()
        if blocks:
            is_over.wait(PATIENCE_S * 2)
        raise error

    server.rules["asample"] = lambda asked: ScriptedResponse(server.healthy_response(asked).body, delay_s=0.1)
    with open_client(server.url, on_wait=listen) as client:
        assert len(tw.gather(three_samples(client)).result(PATIENCE_S)) == 3
        assert called.wait(PATIENCE_S)
        is_over.set()


@pytest.mark.parametrize("error", FAILURES, ids=repr)
@pytest.mark.parametrize("blocks", [True, False])
def test_a_callback_that_raises_or_blocks(client: tw.ServiceClient, error: BaseException, blocks: bool) -> None:
    """Later results, of other operations as well, arrive while a callback runs for ever or fails."""
    is_over, called = threading.Event(), threading.Event()

    def callback(_: object) -> None:
        called.set()
        if blocks:
            is_over.wait(PATIENCE_S * 2)
        raise error

    inner: Future[int] = Future()
    future = tw.APIFuture(inner)
    future.add_done_callback(callback)
    whole = tw.gather([future])
    inner.set_result(1)
    assert whole.result(PATIENCE_S) == [1]
    assert called.wait(PATIENCE_S)
    assert len(tw.gather(three_samples(client)).result(PATIENCE_S)) == 3
    is_over.set()


def test_telemetry_and_usage_that_fail(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reporter that raises changes no error, and a count that cannot be made loses no result."""
    monkeypatch.setenv("TINKER_TELEMETRY", "1")

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("report")

    with open_client(server.url) as client:
        telemetry = client.get_telemetry()
        assert telemetry is not None
        monkeypatch.setattr(telemetry, "record_exception", fail)
        monkeypatch.setattr("tinkerwire._usage.usage_of_sample", fail)
        monkeypatch.setattr("tinkerwire._usage.usage_of_batch", fail)
        server.rules["training_runs"] = lambda _: ScriptedResponse({}, status=400)
        with pytest.raises(tw.BadRequestError):
            client.create_rest_client().list_training_runs().result(PATIENCE_S)
        assert len(tw.gather(three_samples(client)).result(PATIENCE_S)) == 3


PROGRAM = """
import os, signal, sys, time
import tinkerwire as tw
signal.signal(signal.SIGHUP, signal.SIG_IGN)
with tw.ServiceClient(base_url=sys.argv[1], api_key="tml-x", wire_version="0.16.1") as client:
    sampling = client.create_sampling_client(base_model="base").result(30)
    params = tw.SamplingParams(max_tokens=1)
    future = tw.gather([sampling.sample(tw.ModelInput.from_ints([1]), 1, params) for _ in range(3)])
    os.write(int(sys.argv[2]), b"ready")
    os.write(int(sys.argv[2]), b"%d" % len(future.result(30)))
os.write(int(sys.argv[2]), b"done")
"""


@pytest.mark.skipif(os.name != "posix", reason="there are no pseudo terminals")
def test_a_program_whose_terminal_goes_away(server: ScriptedServer) -> None:
    """A process that ignores the hangup gets its results after its terminal is gone, and ends."""
    server.rules["asample"] = lambda asked: ScriptedResponse(server.healthy_response(asked).body, delay_s=1.0)
    try:
        ours, theirs = os.openpty()
    except OSError:
        pytest.skip("this machine makes no pseudo terminals")
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), server.url, str(writing)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        pass_fds=[writing],
        start_new_session=True,
    )
    os.close(theirs)
    os.close(writing)
    try:
        assert os.read(reading, 5) == b"ready"
        os.close(ours)
        process.send_signal(signal.SIGHUP)
        assert process.wait(PATIENCE_S) == 0
        time.sleep(0)
        assert os.read(reading, 100) == b"3done"
    finally:
        process.kill()
        process.wait()
        os.close(reading)
