"""Tests of ``tinkerwire record`` as a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    command = [sys.executable, "-m", "tinkerwire", "record", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_exit_code_is_that_of_the_program(tmp_path: Path) -> None:
    finished = run("--to", tmp_path / "a.tape", "--", sys.executable, "-c", "import sys; print('out'); sys.exit(7)")
    assert (finished.returncode, finished.stdout) == (7, "out\n")
    assert "nothing was recorded" in finished.stderr


def test_children_of_the_program_find_the_recording(tmp_path: Path) -> None:
    nested = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]], check=True)"
    inner = "import tinkerwire as tw; tw.ServiceClient(base_url='local').get_server_capabilities()"
    finished = run("--to", tmp_path / "a.tape", "--", sys.executable, "-c", nested, inner)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert "get_server_capabilities" in (tmp_path / "a.tape").read_text()


def test_existing_recording_is_replaced_only_on_request(tmp_path: Path) -> None:
    tape = tmp_path / "a.tape"
    tape.write_text("precious")
    program = ("--", sys.executable, "-c", "pass")
    finished = run("--to", tape, *program)
    assert finished.returncode == 1
    assert "exists; pass --overwrite to replace it" in finished.stderr
    assert tape.read_text() == "precious"
    assert run("--to", tape, "--overwrite", *program).returncode == 0
    assert tape.read_text().startswith('{"tinkerwire_tape":1}')


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (("--to", "a.tape"), 2, "no program to run; give it after --"),
        (("--", "true"), 2, "--to"),
        (("--to", "gone/a.tape", "--", "true"), 1, "cannot be written"),
        (("--to", "{folder}/a.tape", "--", "no-such-program"), 1, "no-such-program cannot be started"),
    ],
)
def test_wrong_usage_is_one_line(tmp_path: Path, arguments: tuple[str, ...], code: int, problem: str) -> None:
    finished = run(*(argument.format(folder=tmp_path) for argument in arguments))
    assert finished.returncode == code
    assert problem in finished.stderr
    assert finished.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name == "nt", reason="the system has no signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_the_program(tmp_path: Path, number: int) -> None:
    program = "import signal, sys, time; print('ready', flush=True); time.sleep(60)"
    command = [sys.executable, "-m", "tinkerwire", "record", "--to", str(tmp_path / "a.tape"), "--", sys.executable]
    process = subprocess.Popen(
        [*command, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    # A terminal sends Ctrl-C to all processes in front.
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    assert process.wait(30) in (128 + number, 1)
    process.stdout.close()
