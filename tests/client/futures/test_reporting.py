"""Tests that progress bars, logs, callbacks, counters and telemetry cannot delay, lose or fail a result."""

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
from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest

import tinkerwire as tw
from support.clients import ADAM, PARAMS, PROMPT, open_client
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._futures import operation_record

pytestmark = pytest.mark.timeout(60)
FAILURES = [
    OSError(5, "Input/output error"),
    BrokenPipeError(32, "Broken pipe"),
    ValueError("closed"),
    SystemExit(3),
    KeyboardInterrupt(),
    BaseException("unusual"),
]


class BrokenTerminal(io.StringIO):
    """Terminal that raises on each write."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self._error = error

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        raise self._error


class StuckTerminal(io.StringIO):
    """Terminal whose writes block until ``released`` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.released = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.released.wait(TEST_TIMEOUT_S * 2)
        return len(text)


def start_samples(client: tw.ServiceClient) -> list[tw.APIFuture[tw.SampleResponse]]:
    """Start three samples that finish soon."""
    sampling = client.create_sampling_client(base_model="base")
    return [sampling.sample(PROMPT, 1, PARAMS) for _ in range(3)]


def check_all_results_arrive(client: tw.ServiceClient) -> None:
    """Check that all results arrive with gather, as_completed and its ``async for``, each with a progress bar."""
    assert len(tw.gather(start_samples(client), progress=True).result(TEST_TIMEOUT_S)) == 3
    assert len(list(tw.as_completed(start_samples(client), progress=True, timeout=TEST_TIMEOUT_S))) == 3

    async def run() -> int:
        return len([future async for future in tw.as_completed(start_samples(client), progress=True)])

    assert asyncio.run(run()) == 3


@pytest.mark.parametrize("with_tqdm", [False, True])
@pytest.mark.parametrize("error", FAILURES, ids=repr)
def test_failing_progress_bar_loses_no_result(
    client: tw.ServiceClient, monkeypatch: pytest.MonkeyPatch, error: BaseException, with_tqdm: bool
) -> None:
    """A terminal may raise any exception on a write, with and without tqdm."""
    if not with_tqdm:
        monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(sys, "stderr", BrokenTerminal(error))
    check_all_results_arrive(client)


@pytest.mark.parametrize("closed", [True, False])
def test_closed_or_missing_standard_error_loses_no_result(
    client: tw.ServiceClient, monkeypatch: pytest.MonkeyPatch, closed: bool
) -> None:
    """A service may run without standard error; it has no progress bar."""
    terminal = io.StringIO()
    terminal.close()
    monkeypatch.setattr(sys, "stderr", terminal if closed else None)
    check_all_results_arrive(client)
    assert len(tw.gather(start_samples(client)).result(TEST_TIMEOUT_S)) == 3


def test_blocked_terminal_delays_no_result(client: tw.ServiceClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that does not return delays the progress bar only."""
    terminal = StuckTerminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    check_all_results_arrive(client)
    terminal.released.set()


Emit = Callable[[logging.LogRecord], None]


@pytest.fixture
def add_log_handler() -> Iterator[Callable[[Emit], None]]:
    """Return a function that adds a handler to the client's logger for the test."""
    handlers: list[logging.Handler] = []

    def add(emit: Emit) -> None:
        handler = logging.Handler()
        handler.emit = emit  # type: ignore[method-assign]
        logging.getLogger("tinkerwire").addHandler(handler)
        handlers.append(handler)

    yield add
    for handler in handlers:
        logging.getLogger("tinkerwire").removeHandler(handler)


@pytest.mark.parametrize("error", FAILURES, ids=repr)
def test_failing_log_handler_fails_no_operation(
    server: ScriptedServer,
    client: tw.ServiceClient,
    add_log_handler: Callable[[Emit], None],
    error: BaseException,
) -> None:
    """An operation continues if the handler of its log line raises any exception."""
    messages: list[str] = []

    def emit(record: logging.LogRecord) -> None:
        messages.append(record.getMessage())
        raise error

    add_log_handler(emit)
    server.rules["optim_step"] = in_order(
        *[ScriptedResponse({"detail": "full"}, status=500)] * 3, server.healthy_response
    )
    assert client.create_lora_training_client("base").optim_step(ADAM).result(TEST_TIMEOUT_S)
    assert any("full" in message for message in messages)


def test_blocked_log_handler_delays_no_operation(
    server: ScriptedServer, client: tw.ServiceClient, add_log_handler: Callable[[Emit], None]
) -> None:
    """An operation finishes while the handler of its log line blocks."""
    released, was_called = threading.Event(), threading.Event()

    def emit(record: logging.LogRecord) -> None:
        was_called.set()
        released.wait(TEST_TIMEOUT_S * 2)

    add_log_handler(emit)
    server.rules["optim_step"] = in_order(*[ScriptedResponse({}, status=500)] * 3, server.healthy_response)
    assert client.create_lora_training_client("base").optim_step(ADAM).result(TEST_TIMEOUT_S)
    assert was_called.is_set()
    released.set()


@pytest.mark.parametrize("error", FAILURES, ids=repr)
@pytest.mark.parametrize("blocks", [True, False])
def test_failing_or_blocked_on_wait_loses_no_result(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, error: BaseException, blocks: bool
) -> None:
    """The client calls on_wait, which may raise any exception or block, and all results arrive."""
    monkeypatch.setattr(operation_record, "FIRST_WAIT_LOG_S", 0.0)
    released, was_called = threading.Event(), threading.Event()

    def listen(status: tw.WaitStatus) -> None:
        was_called.set()
        if blocks:
            released.wait(TEST_TIMEOUT_S * 2)
        raise error

    server.rules["asample"] = lambda request: ScriptedResponse(server.healthy_response(request).body, delay_s=0.1)
    with open_client(server.url, on_wait=listen) as client:
        assert len(tw.gather(start_samples(client)).result(TEST_TIMEOUT_S)) == 3
        assert was_called.wait(TEST_TIMEOUT_S)
        released.set()


@pytest.mark.parametrize("error", FAILURES, ids=repr)
@pytest.mark.parametrize("blocks", [True, False])
def test_failing_or_blocked_callback_loses_no_result(
    client: tw.ServiceClient, error: BaseException, blocks: bool
) -> None:
    """The results of this operation and of others arrive while a callback blocks or after it raised."""
    released, was_called = threading.Event(), threading.Event()

    def callback(_: object) -> None:
        was_called.set()
        if blocks:
            released.wait(TEST_TIMEOUT_S * 2)
        raise error

    inner: Future[int] = Future()
    future = tw.APIFuture(inner)
    future.add_done_callback(callback)
    gathered = tw.gather([future])
    inner.set_result(1)
    assert gathered.result(TEST_TIMEOUT_S) == [1]
    assert was_called.wait(TEST_TIMEOUT_S)
    assert len(tw.gather(start_samples(client)).result(TEST_TIMEOUT_S)) == 3
    released.set()


def test_failing_telemetry_and_usage_lose_no_result(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A telemetry reporter that raises does not replace an error, and a failed token count does not fail a sample."""
    monkeypatch.setenv("TINKER_TELEMETRY", "1")

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("report")

    with open_client(server.url) as client:
        telemetry = client.get_telemetry()
        assert telemetry is not None
        monkeypatch.setattr(telemetry, "record_exception", fail)
        monkeypatch.setattr("tinkerwire._usage.usage_of_sample", fail)
        monkeypatch.setattr("tinkerwire._usage.usage_of_batch", fail)
        server.rules["training_runs"] = lambda _: ScriptedResponse({}, status=400)
        with pytest.raises(tw.BadRequestError):
            client.create_rest_client().list_training_runs().result(TEST_TIMEOUT_S)
        assert len(tw.gather(start_samples(client)).result(TEST_TIMEOUT_S)) == 3


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


@pytest.mark.skipif(os.name != "posix", reason="only POSIX has pseudo terminals")
def test_program_survives_the_end_of_its_terminal(server: ScriptedServer) -> None:
    """A process that ignores SIGHUP gets its results after its terminal is closed, and ends with code 0."""
    server.rules["asample"] = lambda request: ScriptedResponse(server.healthy_response(request).body, delay_s=1.0)
    try:
        controller, terminal = os.openpty()
    except OSError:
        pytest.skip("this machine provides no pseudo terminals")
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), server.url, str(writer)],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        pass_fds=[writer],
        start_new_session=True,
    )
    os.close(terminal)
    os.close(writer)
    try:
        assert os.read(reader, 5) == b"ready"
        os.close(controller)
        process.send_signal(signal.SIGHUP)
        assert process.wait(TEST_TIMEOUT_S) == 0
        assert os.read(reader, 100) == b"3done"
    finally:
        process.kill()
        process.wait()
        os.close(reader)
