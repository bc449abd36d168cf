"""Tests with separate programs: nothing is left over and nothing is printed after any end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.clients import KEY
from support.scripted import ScriptedResponse, ScriptedServer, in_order

pytestmark = pytest.mark.timeout(120)
TESTS = Path(__file__).parents[1]


def run_script(server: ScriptedServer, code: str) -> subprocess.CompletedProcess[str]:
    """Run a program that uses the server."""
    head = (
        f"import logging, os, sys\nimport tinkerwire as tw\nURL, KEY = {server.url!r}, {KEY!r}\n"
        # asyncio's debug mode logs slow steps, and on a busy machine all steps are slow.
        "from support.clients import *\nlogging.getLogger('asyncio').setLevel(logging.ERROR)\n"
    )
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", head + code]
    path = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "error"}
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, env=environment)


CARELESS = """
import gc
kept = tw.ServiceClient(base_url=URL, api_key=KEY)
kept.create_lora_training_client("base").result(20)
def drop():
    tw.ServiceClient(base_url=URL, api_key=KEY).get_server_capabilities()
drop()
gc.collect()
"""


def test_program_without_close_exits_normally(server: ScriptedServer) -> None:
    """No warning about open connections appears, whether clients were dropped before or not."""
    for end, code in (("", 0), ("raise SystemExit(3)", 3)):
        run = run_script(server, "logging.basicConfig()\n" + CARELESS + end)
        assert (run.returncode, run.stderr) == (code, "")


HANDLER = """
import gc, signal, threading, time
from tinkerwire._futures.event_loop import LOOP

class Stop(BaseException):
    pass

def is_socket(f):
    try:
        return "socket" in os.readlink("/proc/self/fd/" + f)
    except OSError:
        return False

def stop(number, frame):
    HOW

signal.signal(signal.SIGTERM, stop)
client = tw.ServiceClient(base_url=URL, api_key=KEY)
training = client.create_lora_training_client("base").result(20)
sampling = client.create_sampling_client(base_model="base").result(20)
timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM))
try:
    timer.start()
    with client:
        # Busy on this thread, so that the signal comes in between anywhere.
        while True:
            sampling.sample(PROMPT, 1, PARAMS), training.optim_step(ADAM).result(20)
except (Stop, tw.ClientClosedError) as error:
    print("ended by", type(error).__name__)
timer.join()
del training, sampling
wait_until(lambda: not loop_threads(), "the thread ends")
wait_until(lambda: not [f for f in os.listdir("/proc/self/fd") if is_socket(f)], "no socket is left")
print("nothing is left")
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts sockets by /proc")
@pytest.mark.parametrize(
    ("call", "end"),
    [
        ("client.close('interrupted').result(10)", "ClientClosedError"),
        ("client.close('interrupted')", "ClientClosedError"),
        ("raise Stop", "Stop"),
        ("client.close(); raise Stop", "Stop"),
    ],
)
def test_signal_handlers_may_close(server: ScriptedServer, call: str, end: str) -> None:
    """A handler that closes, waits or raises ends the program in order, without threads or sockets left."""
    run = run_script(server, HANDLER.replace("HOW", call))
    assert run.stdout == f"ended by {end}\nnothing is left\n", run.stderr
    assert "Traceback" not in run.stderr


USE = """
client = tw.ServiceClient(base_url=URL, api_key=KEY)
training = client.create_lora_training_client("base")
training.optim_step(ADAM).result(20)
client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS).result(20)
"""


@pytest.mark.parametrize("end", ["", "del client, training; import gc; gc.collect()"])
def test_program_without_close_prints_nothing(server: ScriptedServer, end: str) -> None:
    """An unclosed client delays and disturbs neither the end of the program nor its own collection."""
    run = run_script(server, USE + end)
    assert (run.returncode, run.stderr) == (0, "")


def test_exit_logs_dropped_operations(server: ScriptedServer) -> None:
    """One log line names an operation that the end of the program drops."""
    server.on_poll("OptimStep", in_order(server.healthy_response, ScriptedResponse({"type": "try_again"}, delay_s=0.5)))
    run = run_script(server, USE + "pending = training.optim_step(ADAM)")
    assert run.returncode == 0
    assert "1 operation under way dropped: OptimStep" in run.stderr
    assert len(run.stderr.splitlines()) == 1


def test_clients_outlive_a_dropped_service(server: ScriptedServer) -> None:
    """Clients work on after their service was collected."""
    run = run_script(
        server,
        "training = tw.ServiceClient(base_url=URL, api_key=KEY).create_lora_training_client('base')\n"
        "import gc\ngc.collect()\nprint(training.optim_step(ADAM).result(20))",
    )
    assert "OptimStepResponse" in run.stdout, run.stderr


FORK = """
import multiprocessing as mp
CHILD = os.fork()
if CHILD == 0:
    try:
        training.optim_step(ADAM)
    except tw.ClientClosedError as error:
        assert "forked from" in str(error), error
    client.close().result(5)
    with tw.ServiceClient(base_url=URL, api_key=KEY) as mine:
        mine.create_lora_training_client("base").optim_step(ADAM).result(20)
    print("child is fine", flush=True)
    EXIT
_, status = os.waitpid(CHILD, 0)
for _ in range(3):
    training.optim_step(ADAM).result(20)
with client:
    pass
print("parent is fine, child's status", status)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.parametrize(
    "end", ["os._exit(0)", "sys.exit(0)", "del training, client; import gc; gc.collect(); sys.exit(0)"]
)
def test_forked_child_does_not_use_client_of_parent(server: ScriptedServer, end: str) -> None:
    """A forked child gets an error for its parent's client, can create its own, and leaves the parent's intact."""
    run = run_script(server, USE + FORK.replace("EXIT", end))
    assert "child is fine" in run.stdout, run.stderr
    assert "parent is fine, child's status 0" in run.stdout, run.stderr
