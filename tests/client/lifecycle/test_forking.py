"""Forks at any moment: the child can make and use clients, and the parent continues."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

import tinkerwire as tw
from support.clients import PARAMS, PROMPT, open_client
from support.scripted import TEST_TIMEOUT_S, Gate, ScriptedResponse, ScriptedServer
from tinkerwire._futures import event_loop as loop_module
from tinkerwire._futures.event_loop import LOOP

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="forks"),
    # Forking beside threads is what these tests are about.
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
PROCESSES = 5
FORKS = 20
"""Of each process: one hundred in all."""
PROGRAM = """
import os, random, signal, sys, time, warnings

warnings.simplefilter("ignore", DeprecationWarning)
url, seed, forks = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
draw = random.Random(seed)
# Half of the moments lie within the imports of the first request, which a busy machine stretches.
moments = sorted(draw.uniform(0, 0.3 if n % 2 else 1.0) for n in range(forks))
import tinkerwire as tw

def use(client):
    client.get_server_capabilities()
    prompt, params = tw.ModelInput.from_ints([1, 2]), tw.SamplingParams(max_tokens=4)
    client.create_sampling_client(base_model="base").sample(prompt, 1, params).result(300)

def child():
    signal.alarm(400)
    try:
        with tw.ServiceClient(base_url=url, api_key="tml-x") as client:
            use(client)
        if sampler.done():
            prompt, params = tw.ModelInput.from_ints([1, 2]), tw.SamplingParams(max_tokens=4)
            sampling.sample(prompt, 1, params).result(300)
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        os._exit(1)
    os._exit(0)

started, children = time.monotonic(), []
client = tw.ServiceClient(base_url=url, api_key="tml-x")
sampling = client.create_sampling_client(base_model="base")
sampler = sampling.future()
for moment in moments:
    time.sleep(max(0.0, started + moment - time.monotonic()))
    children.append(os.fork())
    if not children[-1]:
        child()
failed = [pid for pid in children if os.waitpid(pid, 0)[1]]
use(client)
client.close().result(60)
print(f"{len(failed)} of {len(children)} failed")
"""


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Return the command of the program."""
    path = tmp_path_factory.mktemp("forking") / "program.py"
    path.write_text(PROGRAM)
    yield [sys.executable, str(path)]


@pytest.mark.parametrize("seed", range(PROCESSES))
def test_child_of_any_moment_uses_clients(server: ScriptedServer, processes: list[str], seed: int) -> None:
    """A child that is forked while its parent imports, connects or waits makes clients and uses inherited ones."""
    command = [*processes, server.url, str(seed), str(FORKS)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=550, check=False)
    assert run.stdout.splitlines()[-1:] == [f"0 of {FORKS} failed"], run.stdout + run.stderr


def test_fork_does_not_deadlock_with_loop(
    server: ScriptedServer, client: tw.ServiceClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A callback that needs a lock of the forking thread delays the fork for a limited time only."""
    monkeypatch.setattr(loop_module, "FORK_PAUSE_S", 0.05)
    lock, entered = threading.Lock(), threading.Event()
    gate = Gate()
    server.rules["get_server_capabilities"] = lambda request: ScriptedResponse(
        server.healthy_response(request).body, gate=gate
    )
    future = client._capabilities()

    def callback(_: object) -> None:
        entered.set()
        with lock:
            pass

    with lock:
        future.add_done_callback(callback)
        gate.release()
        assert entered.wait(TEST_TIMEOUT_S)
        pid = os.fork()
        if not pid:
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    sampling = client.create_sampling_client(base_model="base")
    sampling.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)


def test_fork_on_loop_thread_works(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """Code on the loop's thread may fork, as the loop does not wait for itself."""
    status: list[int] = []
    gate = Gate()
    server.rules["get_server_capabilities"] = lambda request: ScriptedResponse(
        server.healthy_response(request).body, gate=gate
    )

    def fork(_: object) -> None:
        assert LOOP.is_current_thread
        pid = os.fork()
        if not pid:
            os._exit(0)
        status.append(os.waitpid(pid, 0)[1])

    future = client._capabilities()
    # The response waits for the callback, which would run on this thread if the future were already done.
    future.call_when_done(fork)
    gate.release()
    future.result(TEST_TIMEOUT_S)
    client.get_server_capabilities()
    assert status == [0]


def test_fork_waits_for_imports_of_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Imports of another thread are complete in the child."""
    monkeypatch.setattr(loop_module, "FORK_PAUSE_S", TEST_TIMEOUT_S)
    forked = threading.Event()

    def fork() -> None:
        pid = os.fork()
        if not pid:
            os._exit(0)
        os.waitpid(pid, 0)
        forked.set()

    thread = threading.Thread(target=fork)
    with LOOP.opening_lock:
        thread.start()
        assert not forked.wait(0.2)
    assert forked.wait(TEST_TIMEOUT_S)
    thread.join()
    with open_client("http://127.0.0.1:1"):
        pass
