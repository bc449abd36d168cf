"""The lifetime of a client: the operations that its end waits for, drops and logs, and clients that are dropped."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import ADAM, KEY, PARAMS, PROMPT, loop_threads, open_client, wait_until
from support.scripted import TEST_TIMEOUT_S, Gate, ScriptedResponse, ScriptedServer
from tinkerwire._lifecycle.lifetime import Lifetime

pytestmark = pytest.mark.timeout(120)
SAVED = "save_weights"


def hold_saves(server: ScriptedServer) -> Gate:
    """Keep the results of saves back until the test lets them go."""
    gate = Gate()
    server.on_poll(
        "SaveWeights", lambda request: ScriptedResponse(server.result(request.body["request_id"]), gate=gate)
    )
    return gate


def wait_for_save(server: ScriptedServer) -> None:
    """Wait until a save is polled for."""
    server.wait_for(lambda: bool(server.polls("SaveWeights")), "the save is polled")


def start_save(client: tw.ServiceClient) -> None:
    """Save a state, and keep nothing of it."""
    client.create_lora_training_client("base").save_state("a")


def is_finished(server: ScriptedServer) -> bool:
    """Check whether the server has finished with the save."""
    return not server.active["retrieve_future"]


def test_end_of_block_waits_for_unawaited_save(server: ScriptedServer) -> None:
    """An unawaited save is sent and polled to its end before the client closes."""
    gate = hold_saves(server)
    block_ended = threading.Event()

    def run() -> None:
        with open_client(server.url, exit_timeout=None) as client:
            start_save(client)
        block_ended.set()

    thread = threading.Thread(target=run)
    thread.start()
    wait_for_save(server)
    assert not block_ended.wait(0.2)
    gate.release()
    assert block_ended.wait(TEST_TIMEOUT_S)
    thread.join()


def test_end_of_block_waits_for_operations_of_callbacks(server: ScriptedServer) -> None:
    """Every operation of a chain ends, each of which starts the next one when it is done."""
    states: list[str] = []

    def go_on(client: tw.TrainingClient, remaining: int) -> None:
        future = client.optim_step(ADAM)
        if remaining:
            future.add_done_callback(lambda _: go_on(client, remaining - 1))
        else:
            future.add_done_callback(lambda future: states.append(future.state))

    with open_client(server.url, exit_timeout=None) as client:
        go_on(client.create_lora_training_client("base"), 5)
    assert states == ["done"]
    assert len(server.named("optim_step")) == 6


def test_async_block_waits(server: ScriptedServer) -> None:
    """``async with`` waits as ``with`` does, and does not block the event loop."""
    gate = hold_saves(server)

    async def run() -> list[str]:
        states: list[str] = []

        async def let_go() -> None:
            await asyncio.to_thread(wait_for_save, server)
            states.append("running")
            gate.release()

        options: Any = {"base_url": server.url, "api_key": KEY, "wire_version": "0.16.1"}
        async with tw.ServiceClient(**options) as client:
            task = asyncio.create_task(let_go())
            start_save(client)
        states.append("left")
        await task
        return states

    assert asyncio.run(run()) == ["running", "left"]


def test_end_of_block_waits_for_gather(server: ScriptedServer) -> None:
    """A gather that is in progress when the block ends has all its results afterwards."""
    with open_client(server.url, exit_timeout=None) as client:
        sampling = client.create_sampling_client(base_model="base")
        results = tw.gather([sampling.sample(PROMPT, 1, PARAMS) for _ in range(20)])
    assert results.done()
    assert len(results.result()) == 20


def test_rest_client_block_waits(server: ScriptedServer) -> None:
    """The end of its block waits for its requests."""
    gate = Gate()
    server.rules["training_runs"] = lambda request: ScriptedResponse(server.healthy_response(request).body, gate=gate)
    with tw.RestClient(base_url=server.url, api_key=KEY) as rest:
        future = rest.list_training_runs()
        server.wait_for_requests("training_runs")
        threading.Timer(0.1, gate.release).start()
    assert future.state == "done"


def test_exit_timeout_limits_wait(server: ScriptedServer, caplog: pytest.LogCaptureFixture) -> None:
    """After exit_timeout seconds the remaining operations are dropped, and logged with kind and request id."""
    gate = hold_saves(server)
    with caplog.at_level(logging.WARNING, "tinkerwire"), open_client(server.url, exit_timeout=0.2) as client:
        start_save(client)
        wait_for_save(server)
    assert "exit_timeout=0.2 s is over: 1 operation under way dropped: SaveWeights save_weights/2/1;" in caplog.text
    server.wait_for(lambda: is_finished(server), "the client hangs up")
    gate.release()


@pytest.mark.parametrize("value", [-1, -(10**400), float("nan"), "5", True])
def test_invalid_exit_timeout_is_rejected(server: ScriptedServer, value: Any) -> None:
    """An invalid number of seconds raises an error that names the argument, and starts nothing."""
    with pytest.raises((TypeError, ValueError), match="exit_timeout"):
        tw.ServiceClient(base_url=server.url, api_key=KEY, exit_timeout=value)
    assert not loop_threads()


@pytest.mark.parametrize("value", [0, 1e300, 10**400, float("inf")])
def test_any_nonnegative_exit_timeout_is_accepted(server: ScriptedServer, value: float) -> None:
    """A number may be too large for a float."""
    with tw.ServiceClient(base_url=server.url, api_key=KEY, exit_timeout=value):
        pass


def test_error_ends_block_without_wait(server: ScriptedServer, caplog: pytest.LogCaptureFixture) -> None:
    """The error is raised at once; the log names a few dropped operations and counts all."""
    gate = hold_saves(server)
    caplog.set_level(logging.WARNING, "tinkerwire")
    with pytest.raises(ZeroDivisionError), open_client(server.url, exit_timeout=None) as client:
        training = client.create_lora_training_client("base")
        for number in range(20):
            training.save_state(f"a{number}")
        server.wait_for(lambda: len(server.named(SAVED)) == 20)
        raise ZeroDivisionError
    record = next(record for record in caplog.records if "dropped" in record.message)
    assert "left by an error: 20 operations under way dropped: SaveWeights save_weights/" in record.message
    assert record.message.count("SaveWeights") == 5
    assert "and 15 more" in record.message
    gate.release()


def test_close_logs_dropped_operations(server: ScriptedServer, caplog: pytest.LogCaptureFixture) -> None:
    """The log includes operations that were queued and never submitted."""
    gate = Gate()
    server.rules[SAVED] = lambda request: ScriptedResponse(server.healthy_response(request).body, gate=gate)
    with caplog.at_level(logging.WARNING, "tinkerwire"), open_client(server.url) as client:
        training = client.create_lora_training_client("base")
        training.save_state("a")
        step = training.optim_step(ADAM)
        server.wait_for_requests(SAVED)
        client.close().result(TEST_TIMEOUT_S)
        assert isinstance(step.exception(), tw.ClientClosedError)
    dropped = [record.message for record in caplog.records if "dropped" in record.message]
    assert len(dropped) == 1
    assert "2 operations under way dropped: SaveWeights (not submitted), OptimStep (not submitted)" in dropped[0]
    gate.release()


def test_close_without_operations_logs_nothing(server: ScriptedServer, caplog: pytest.LogCaptureFixture) -> None:
    """Heartbeats and pollers are not operations."""
    with caplog.at_level(logging.WARNING, "tinkerwire"), open_client(server.url) as client:
        client.create_lora_training_client("base").optim_step(ADAM).result(TEST_TIMEOUT_S)
        client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
        client.close().result(TEST_TIMEOUT_S)
    assert not caplog.records


@pytest.fixture
def ctrl_c_interrupts() -> Iterator[None]:
    """Install Python's handler of Ctrl-C, which background jobs ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c_interrupts")
def test_keyboard_interrupt_ends_wait(server: ScriptedServer, caplog: pytest.LogCaptureFixture) -> None:
    """The block raises KeyboardInterrupt, closes the client and logs the dropped operations."""
    gate = hold_saves(server)

    def is_waiting() -> bool:
        frame = sys._current_frames().get(main)
        while frame is not None and frame.f_code is not Lifetime._wait.__code__:
            frame = frame.f_back
        return frame is not None

    def interrupt() -> None:
        wait_for_save(server)
        wait_until(is_waiting, "the end of the block waits")
        os.kill(os.getpid(), signal.SIGINT)

    main, thread = threading.get_ident(), threading.Thread(target=interrupt)
    caplog.set_level(logging.WARNING, "tinkerwire")
    with pytest.raises(KeyboardInterrupt), open_client(server.url, exit_timeout=None) as client:
        start_save(client)
        thread.start()
    thread.join()
    assert "KeyboardInterrupt() ended the wait: 1 operation under way dropped: SaveWeights" in caplog.text
    with pytest.raises(tw.ClientClosedError):
        client.get_server_capabilities()
    gate.release()


def test_close_on_another_thread_ends_wait(server: ScriptedServer) -> None:
    """Another thread may close a client whose block waits: both end."""
    gate = hold_saves(server)
    with open_client(server.url, exit_timeout=None) as client:
        start_save(client)
        wait_for_save(server)
        threading.Timer(0.2, client.close).start()
    gate.release()


PROGRAM = """
import sys
import tinkerwire as tw
client = tw.ServiceClient(base_url=sys.argv[1], api_key="tml-x", wire_version="0.16.1")
training = client.create_lora_training_client("base")
training.result(60)
training.save_state("a")
sys.stdin.readline()
"""


def test_end_of_program_logs_dropped_operations(server: ScriptedServer) -> None:
    """The log names a save that the program did not wait for."""
    gate = hold_saves(server)
    command = [sys.executable, "-c", PROGRAM, server.url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_for_save(server)
        _, errors = process.communicate("\n", timeout=60)
    assert "the program ends: 1 operation under way dropped: SaveWeights save_weights/2/1; wait for" in errors
    assert process.returncode == 0
    gate.release()


# --- clients that are dropped ----------------------------------------------------------------------------------------


def open_alone(server: ScriptedServer, **options: Any) -> tw.ServiceClient:
    """Open a client outside of a block."""
    return tw.ServiceClient(**{"base_url": server.url, "api_key": KEY, "wire_version": "0.16.1", **options})


def assert_ended(server: ScriptedServer) -> None:
    """Check that neither threads nor connections of clients remain."""
    gc.collect()
    wait_until(lambda: not loop_threads(), "the loop ends")


def test_dropped_client_closes(server: ScriptedServer) -> None:
    """Heartbeats, connections and the loop's thread end with the last reference."""
    client = open_alone(server)
    client.create_lora_training_client("base").optim_step(ADAM).result(TEST_TIMEOUT_S)
    session_ref = weakref.ref(client._session)
    assert loop_threads()
    del client
    assert_ended(server)
    wait_until(lambda: gc.collect() >= 0 and session_ref() is None, "the session is freed")


class Trainer:
    """A program's object that refers to the client which refers to it."""

    def __init__(self, server: ScriptedServer) -> None:
        retry = tw.RetryConfig(retry_if=self.decide)
        self.client = open_alone(server, on_wait=self.note, retry=retry)
        self.sampling = self.client.create_sampling_client(base_model="base")
        self.itself = self

    def note(self, waiting: tw.WaitStatus) -> None:
        """Take note of a wait."""

    def decide(self, error: Exception) -> bool | None:
        """Leave it to the client."""


def test_client_in_reference_cycle_is_collected(server: ScriptedServer) -> None:
    """A client whose on_wait and retry_if are methods of its owner is collected with it."""
    trainer = Trainer(server)
    trainer.sampling.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
    trainer_ref = weakref.ref(trainer)
    del trainer
    assert_ended(server)
    assert trainer_ref() is None


@pytest.mark.parametrize("kind", ["training", "sampling", "rest"])
def test_clients_of_dropped_service_keep_connection_open(server: ScriptedServer, kind: str) -> None:
    """They work without the service, and close the connection when they are dropped."""
    client = open_alone(server)
    training = client.create_lora_training_client("base")
    sampling = client.create_sampling_client(base_model="base")
    rest = client.create_rest_client()
    calls: dict[str, Callable[[], object]] = {
        "training": lambda training=training: training.optim_step(ADAM).result(TEST_TIMEOUT_S),
        "sampling": lambda sampling=sampling: sampling.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S),
        "rest": lambda rest=rest: rest.list_training_runs().result(TEST_TIMEOUT_S),
    }
    training.result(TEST_TIMEOUT_S)
    sampling.result(TEST_TIMEOUT_S)
    use = calls[kind]
    del client, training, sampling, rest, calls
    gc.collect()
    for _ in range(3):
        use()
    del use
    assert_ended(server)


def test_future_keeps_dropped_client_open(server: ScriptedServer) -> None:
    """A caller that holds only the future of an operation gets its result."""
    gate = hold_saves(server)
    future = open_alone(server).create_lora_training_client("base").save_state("a")
    wait_for_save(server)
    gc.collect()
    gate.release()
    assert future.result(TEST_TIMEOUT_S).path == "tinker://m1/weights/a"
    assert_ended(server)


def test_dropped_client_finishes_operations(server: ScriptedServer, caplog: pytest.LogCaptureFixture) -> None:
    """A save is finished although neither the client nor the future is held."""
    gate = hold_saves(server)
    start_save(open_alone(server))
    wait_for_save(server)
    gc.collect()
    assert loop_threads()
    gate.release()
    assert_ended(server)
    assert "dropped" not in caplog.text


def test_dropped_client_leaves_others_open(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """Other clients keep working."""
    client.get_server_capabilities()
    remaining_client = open_alone(server)
    remaining_client.get_server_capabilities()
    del remaining_client
    gc.collect()
    client.get_server_capabilities()
    assert loop_threads()


def test_dropped_rest_client_closes(server: ScriptedServer) -> None:
    """A REST client with its own connection closes like a service."""
    rest = tw.RestClient(base_url=server.url, api_key=KEY)
    rest.list_training_runs().result(TEST_TIMEOUT_S)
    del rest
    assert_ended(server)


def test_dropped_client_does_not_finish_session(server: ScriptedServer) -> None:
    """Copies in other processes may use the session; the server expires it."""
    client = open_alone(server, wire_version="0.38.0", client_config={})
    assert client.session_id == "s1"
    del client
    assert_ended(server)
    assert not [request for request in server.requests if request.name.endswith("finish")]
