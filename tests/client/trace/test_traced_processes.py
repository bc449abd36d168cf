"""Trace files of processes that end, are killed, or run at the same time."""

from __future__ import annotations

import logging
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.clients import KEY, PARAMS, PROMPT, open_client
from support.scripted import Gate, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._trace.reading import read_trace


def test_operations_of_a_program_that_ends_are_unfinished(server: ScriptedServer, path: Path) -> None:
    gate = Gate()
    response = server.healthy_response
    server.rules["get_server_capabilities"] = in_order(*[response] * 3, ScriptedResponse(gate=gate))
    with run_program(server, path, "waiting = service._capabilities(); time.sleep(0.5)") as program:
        assert program.wait(60) == 0
    gate.release()
    assert [operation.outcome for operation in read_trace(path).operations] == [*["done"] * 3, "unfinished"]


PROGRAM = """
import sys, time
import tinkerwire as tw
service = tw.ServiceClient(base_url=sys.argv[1], api_key="tml-x", wire_version="0.16.1")
for _ in range(3):
    service.get_server_capabilities()
"""


def run_program(server: ScriptedServer, path: Path, code: str) -> subprocess.Popen[str]:
    """Start a program that is traced."""
    environment = {**os.environ, "TINKERWIRE_TRACE": str(path), "TINKER_TELEMETRY": "0"}
    command = [sys.executable, "-c", PROGRAM + code, server.url]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def test_program_without_close_has_a_complete_trace(server: ScriptedServer, path: Path) -> None:
    with run_program(server, path, "") as program:
        assert program.wait(60) == 0
    assert [operation.outcome for operation in read_trace(path).operations] == ["done"] * 3


def test_killed_process_leaves_a_readable_trace(server: ScriptedServer, path: Path) -> None:
    """All operations but those of the last moment are there; half a line at the end is skipped and reported."""
    with run_program(server, path, "time.sleep(2); print('ready', flush=True); time.sleep(60)") as program:
        assert program.stdout is not None
        program.stdout.readline()
        program.send_signal(signal.SIGKILL)
        program.wait(60)
    with path.open("ab") as file:
        file.write(b'{"id":99,"kind":"Sam')
    trace = read_trace(path)
    assert (len(trace.operations), trace.unreadable) == (3, 1)


def test_next_process_continues_after_half_a_line(server: ScriptedServer, path: Path) -> None:
    with run_program(server, path, "") as program:
        program.wait(60)
    with path.open("ab") as file:
        file.write(b'{"id":99,"kind":"Sam')
    with run_program(server, path, "") as program:
        program.wait(60)
    trace = read_trace(path)
    assert (trace.runs, len(trace.operations), trace.unreadable) == (2, 3, 1)


def test_processes_at_once_write_to_files_of_their_own(server: ScriptedServer, path: Path) -> None:
    """The report joins them: their times overlap."""
    code = "print('ready', flush=True); sys.stdin.readline()"
    environment = {**os.environ, "TINKERWIRE_TRACE": str(path), "TINKER_TELEMETRY": "0"}
    command = [sys.executable, "-c", PROGRAM + code, server.url]
    programs = [
        subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for program in programs:
        assert program.stdout is not None
        program.stdout.readline()
    for program in programs:
        program.communicate("\n", timeout=60)
    assert sorted(file.name for file in path.parent.iterdir()) == ["run.trace", "run.trace.1", "run.trace.2"]
    trace = read_trace(path)
    assert (len(trace.processes), len(trace.operations), trace.runs) == (3, 9, 1)


WORKERS = """
import multiprocessing, sys
import tinkerwire as tw

def work(sampling):
    sampling.sample(tw.ModelInput.from_ints([1]), 1, tw.SamplingParams(max_tokens=1)).result(60)

if __name__ == "__main__":
    url, method, path = sys.argv[1:]
    service = tw.ServiceClient(base_url=url, api_key="tml-x", wire_version="0.16.1", trace=path)
    sampling = service.create_sampling_client(base_model="base").result()
    context = multiprocessing.get_context(method)
    workers = [context.Process(target=work, args=(sampling,)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0, worker.exitcode
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_write_files_of_their_own(server: ScriptedServer, path: Path, method: str, tmp_path: Path) -> None:
    """A forked sampler and a pickled one are traced where trace= was given, without the variable."""
    script = tmp_path / "program.py"
    script.write_text(WORKERS)
    environment = {**os.environ, "TINKER_TELEMETRY": "0", "TINKER_API_KEY": KEY}
    command = [sys.executable, "-W", "ignore", str(script), server.url, method, str(path)]
    subprocess.run(command, env=environment, check=True, timeout=100)
    trace = read_trace(path)
    samples = [operation for operation in trace.operations if operation.kind == "Sample"]
    assert len(samples) == 2
    assert samples[0].process != trace.operations[0].process
    assert all(operation.outcome == "done" for operation in trace.operations)


def test_pickle_without_trace_has_no_path(server: ScriptedServer) -> None:
    with open_client(server.url) as service:
        sampling = service.create_sampling_client(base_model="base").result()
        copy = pickle.loads(pickle.dumps(sampling))
        copy.sample(PROMPT, 1, PARAMS).result()
        assert copy._connection.operations.recorder is None
        del copy


def test_copy_whose_path_cannot_be_written_still_samples(
    server: ScriptedServer, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As on another machine: the missing trace is logged."""
    folder = path.parent / "gone"
    folder.mkdir()
    with open_client(server.url, trace=folder / "run.trace") as service:
        sampling = service.create_sampling_client(base_model="base").result()
        text = pickle.dumps(sampling)
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    with caplog.at_level(logging.WARNING):
        copy = pickle.loads(text)
    copy.sample(PROMPT, 1, PARAMS).result()
    assert "a copy of a sampling client is not traced: trace: " in caplog.text
    del copy
