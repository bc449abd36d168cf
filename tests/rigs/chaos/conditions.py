"""Train and sample with full disks, read-only folders, clock jumps and suspended processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import attrs
from tests.rigs.chaos.client import ClientResult, count_samples
from tests.rigs.chaos.clients import read_results, start_clients
from tests.rigs.chaos.settings import Settings
from tests.rigs.chaos.short_session import run_short_session_server
from tests.rigs.chaos.state import check_journal, read_checkpoint
from tests.support.embedded import ServerProcess

STEPS, PAUSE_S = 60, 0.2
MAX_SECONDS = 300.0
HOUR_S = 3600
OPTIONS = ("--wire", "0.38.0", "--long-poll", "5", "--api-key", "tml-chaos", "--flag", "pjwt_auth_enabled=true")
CLOCK = Path(__file__).with_name("clock")
"""Folder of the module that moves the wall clock of a process."""
DISK_MIB = 64
FULL_S = 6.0
POLL_S, LIMIT_S, HEARTBEATS_S = 8.0, 75.0, 35.0
"""Suspensions: longer than a held poll, than each time limit of a request, and than three heartbeats."""


@attrs.frozen
class Scene:
    """A server and a client at work.

    Args:
        folder: folder of the server.
        server: the server.
        client: process id of the client.
        clocks: file with the offset of each process's clock, ``client`` and ``server``.
    """

    folder: Path
    server: ServerProcess
    client: int
    clocks: dict[str, Path]


@attrs.frozen
class Outcome:
    """The outcome of one condition: its time, and what differs from the expected outcome."""

    seconds: float
    result: ClientResult
    state: dict[str, bytes]
    problems: list[str]


def fill_disk(scene: Scene) -> None:
    """Leave no space on the disk of the server for a while."""
    ballast = scene.folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\1" * 4096)
        except OSError:
            pass
        time.sleep(FULL_S)
    ballast.unlink()


def move_clock(process: str, hours: float, scene: Scene) -> None:
    """Move the wall clock of a process."""
    scene.clocks[process].write_text(str(hours * HOUR_S))


def start_later(hours: float, scene: Scene) -> None:
    """Kill the server, and start it again after hours, as its wall clock shows."""
    scene.server.kill()
    move_clock("server", hours, scene)
    scene.server.start()


def suspend(pid: int, seconds: float) -> None:
    """Suspend a process, and let it go on."""
    os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(pid, signal.SIGCONT)


def suspend_server(seconds: float, scene: Scene) -> None:
    """Suspend the server, and with it each request that is in flight."""
    suspend(scene.server.pid, seconds)


def suspend_client(seconds: float, scene: Scene) -> None:
    """Suspend the client, and with it its heartbeats."""
    suspend(scene.client, seconds)


CONDITIONS: dict[str, Callable[[Scene], None]] = {
    f"the disk of the server is full for {FULL_S:.0f} s": fill_disk,
    "the server's clock jumps 3 hours forward": partial(move_clock, "server", 3),
    "the server's clock jumps 3 hours back": partial(move_clock, "server", -3),
    "the server is killed, and started again 3 hours later": partial(start_later, 3),
    "the client's clock jumps 3 hours forward": partial(move_clock, "client", 3),
    "the client's clock jumps 3 hours back": partial(move_clock, "client", -3),
    f"the server is suspended for {POLL_S:.0f} s, longer than a held poll": partial(suspend_server, POLL_S),
    f"the server is suspended for {LIMIT_S:.0f} s, longer than all requests may take": partial(suspend_server, LIMIT_S),
    f"the client is suspended for {HEARTBEATS_S:.0f} s, three heartbeats": partial(suspend_client, HEARTBEATS_S),
}


@contextmanager
def mount_disk(parent: Path) -> Iterator[Path]:
    """Mount a small file system in memory; only root can."""
    folder = parent / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", str(folder)], check=True, timeout=30)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True, timeout=30)


def run_condition(disturb: Callable[[Scene], None] | None) -> Outcome:
    """Train and sample under a condition; return the outcome without the comparison."""
    with tempfile.TemporaryDirectory() as parent, mount_disk(Path(parent)) as folder:
        clocks = {process: Path(parent) / process for process in ("client", "server")}
        variables = {}
        for process, file in clocks.items():
            file.write_text("0")
            variables[process] = {
                "PYTHONPATH": os.pathsep.join([str(CLOCK), str(Path.cwd())]),
                "CHAOS_CLOCK": str(file),
            }
        server = ServerProcess(folder / "data", *OPTIONS, variables=variables["server"])
        server.start()
        started = time.monotonic()
        try:
            fields = ("--steps", STEPS, "--pause", PAUSE_S, "--discovers")
            client = start_clients(server.url, *fields, variables=variables["client"])
            _wait_for_model(folder / "data")
            if disturb is not None:
                disturb(Scene(folder, server, client.pid, clocks))
            (result,) = read_results(client, MAX_SECONDS) or [ClientResult(0, problem="the work did not end")]
        finally:
            server.stop()
        seconds = time.monotonic() - started
        problems = [] if result.problem is None else [result.problem]
        problems += [] if problems else check_journal(folder / "data", count_samples(STEPS))
        state = {} if problems else read_checkpoint(folder / "data", result.path)
        return Outcome(seconds, result, state, problems)


def _wait_for_model(folder: Path) -> None:
    """Wait until the client has a model, so that the condition meets training and sampling."""
    end = time.monotonic() + 60
    while not list(folder.glob("runs/*/run.json")) and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(1.0)


def run_read_only() -> tuple[float, str]:
    """Train on a server whose folder is read-only; return the time and the error."""
    with tempfile.TemporaryDirectory() as parent, mount_disk(Path(parent)) as folder:
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True, timeout=30)
        server = ServerProcess(folder, *OPTIONS)
        server.start()
        started = time.monotonic()
        try:
            (result,) = read_results(start_clients(server.url, "--steps", 1, "--discovers"), MAX_SECONDS)
        finally:
            server.stop()
        return time.monotonic() - started, str(result.problem)


def run_expired_session() -> tuple[float, str]:
    """Suspend a client for longer than the life of its session; return the time and the error."""
    with run_short_session_server() as url:
        started = time.monotonic()
        client = start_clients(url, "--steps", STEPS, "--pause", PAUSE_S)
        time.sleep(6.0)
        suspend(client.pid, HEARTBEATS_S)
        (result,) = read_results(client, MAX_SECONDS)
        return time.monotonic() - started, str(result.problem)


ERRORS: dict[str, tuple[Callable[[], tuple[float, str]], str]] = {
    "the folder of the server is read-only": (run_read_only, "InternalServerError"),
    f"the client is suspended for {HEARTBEATS_S:.0f} s, longer than its session lives": (
        run_expired_session,
        "SessionExpiredError",
    ),
}
"""Conditions that end in an error, and its name."""


def run_conditions(settings: Settings) -> tuple[str, bool]:
    """Run all conditions, several at a time; return the report and whether all had the expected outcome."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "### Conditions of the machine\n\nNot run: a small disk can only be mounted by root on Linux.", True
    with ThreadPoolExecutor(settings.workers) as pool:
        calm_job = pool.submit(run_condition, None)
        jobs = {name: pool.submit(run_condition, disturb) for name, disturb in CONDITIONS.items()}
        error_jobs = {name: pool.submit(run_case) for name, (run_case, _) in ERRORS.items()}
    calm = calm_job.result()
    rows, is_expected = [], not calm.problems
    rows.append(f"| undisturbed | {calm.seconds:.0f} s | {'; '.join(calm.problems) or 'the reference'} |")
    for name, job in jobs.items():
        outcome = job.result()
        problems = list(outcome.problems)
        problems += [] if problems or outcome.state == calm.state else ["weights or optimizer differ"]
        problems += [] if problems or outcome.result.texts == calm.result.texts else ["samples differ"]
        is_expected &= not problems
        rows.append(f"| {name} | {outcome.seconds:.0f} s | {'; '.join(problems) or 'equal to the bit'} |")
    for name, error_job in error_jobs.items():
        seconds, problem = error_job.result()
        is_expected &= problem.startswith(f"{ERRORS[name][1]}:")
        rows.append(f"| {name} | {seconds:.0f} s | {_shorten(problem)} |")
    table = "\n".join(rows)
    report = f"""\
### Conditions of the machine

A client trains {STEPS} steps and draws {count_samples(STEPS)} samples, with tokens in place of its key, on a server
whose folder is on a disk of {DISK_MIB} MiB (a tmpfs). A clock that jumps is ``time.time`` of one process, while its
monotonic clock is not affected. Suspensions are SIGSTOP and SIGCONT; those of the server also stall every request that
is in flight. After each run, the weights, the optimizer and all samples must be equal to those of the undisturbed run
to the bit, or the call raises the named error.

| condition | time | outcome |
|---|---|---|
{table}
"""
    return report, is_expected


def _shorten(problem: str) -> str:
    """Return the beginning of an error, without ids, addresses and paths."""
    for pattern, replacement in ((r"s-[0-9a-f]{32}", "ID"), (r"http://\S+/api/v1/", ""), (r"'/[^']*'", "PATH")):
        problem = re.sub(pattern, replacement, problem)
    return problem.partition(";")[0]
