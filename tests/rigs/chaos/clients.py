"""Run many clients in many processes against one server, through failures; compare each with a replay."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path

from tests.rigs.chaos.client import ClientResult, count_samples
from tests.rigs.chaos.memory import GROWTH_MIB, check_level, read_memory_mib
from tests.rigs.chaos.proxy import KINDS, run_failure_proxy
from tests.rigs.chaos.settings import Settings
from tests.rigs.chaos.state import check_journal, read_checkpoint
from tests.support.embedded import ServerProcess

SHARE = 0.1
PAUSE_S = 4.0
"""Mean pause of a client between two steps."""
MEMORY_INTERVAL_S = 5.0
LATE_S = 300.0
"""Time for the operations that are in flight at the end."""
RETAINED_KIB = 4
"""Memory that the server may retain for an operation: its result and its keys for an hour, and weights for sampling."""
OPTIONS = ("--wire", "0.38.0", "--long-poll", "5")


def start_clients(url: str, *options: object, variables: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Start a process of clients, with further environment variables."""
    command = [sys.executable, "-m", "tests.rigs.chaos.client", url, *map(str, options)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **(variables or {})})


def read_results(process: subprocess.Popen[str], timeout_s: float) -> list[ClientResult]:
    """Wait for a process of clients and return its results."""
    try:
        output, _ = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
    return [ClientResult(**json.loads(line)) for line in output.splitlines()]


def _run_all(folder: Path, settings: Settings) -> tuple[list[ClientResult], dict[str, int], list[float]]:
    """Run all processes through the proxy; return the results, the failures and the memory of the server."""
    server = ServerProcess(folder, *OPTIONS)
    server.start()
    memory: list[float] = []
    try:
        with run_failure_proxy(server.url, SHARE, settings.seed) as (url, proxy):
            fields = ("--clients", settings.clients, "--seconds", settings.seconds, "--pause", PAUSE_S)
            numbers = range(0, settings.processes * settings.clients, settings.clients)
            processes = [start_clients(url, "--first", number, *fields) for number in numbers]
            end = time.monotonic() + settings.seconds + LATE_S
            while time.monotonic() < end and any(process.poll() is None for process in processes):
                memory.append(read_memory_mib(server.pid))
                time.sleep(MEMORY_INTERVAL_S)
            results = [result for process in processes for result in read_results(process, 1.0)]
        return results, dict(proxy.counts), memory
    finally:
        server.stop()


def _replay(results: Sequence[ClientResult], url: str) -> list[ClientResult]:
    """Repeat the operations of the clients of one process without failures."""
    steps = [result.steps for result in results]
    process = start_clients(url, "--first", results[0].number, "--clients", len(steps), "--steps", *steps)
    missing = [ClientResult(result.number, problem="the replay did not end") for result in results]
    return read_results(process, LATE_S) or missing


def _compare(folder: Path, results: list[ClientResult], settings: Settings) -> list[str]:
    """Compare the final states and samples of clients with those of a replay."""
    with tempfile.TemporaryDirectory() as name:
        server = ServerProcess(name, *OPTIONS)
        server.start()
        try:
            groups = [results[index : index + settings.clients] for index in range(0, len(results), settings.clients)]
            with ThreadPoolExecutor(settings.workers) as pool:
                replayed_groups = list(pool.map(partial(_replay, url=server.url), groups))
            replays = list(chain.from_iterable(replayed_groups))
        finally:
            server.stop()
        problems = []
        for result, replay in zip(results, replays, strict=True):
            if replay.problem is not None:
                problems.append(f"replay of client {result.number}: {replay.problem}")
            elif replay.texts != result.texts:
                problems.append(f"samples of client {result.number} differ")
            elif read_checkpoint(Path(name), replay.path) != read_checkpoint(folder, result.path):
                problems.append(f"weights or optimizer of client {result.number} differ")
    return problems


def run_clients(settings: Settings) -> tuple[str, bool]:
    """Run the clients and their replays; return the report and whether all were equal."""
    count = settings.processes * settings.clients
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        results, failures, memory = _run_all(folder, settings)
        problems = [f"client {result.number}: {result.problem}" for result in results if result.problem is not None]
        problems += [] if len(results) == count else [f"{count - len(results)} clients did not end"]
        samples = sum(count_samples(result.steps) for result in results)
        problems += [] if problems else check_journal(folder, samples)
        started = time.monotonic()
        problems += [] if problems else _compare(folder, results, settings)
        replay_s = time.monotonic() - started
    steps = [result.steps for result in results]
    # A step has two operations, and two thirds of all operations follow the first third.
    retained_mib = (samples + 2 * sum(steps)) * 2 / 3 * RETAINED_KIB / 1024
    problems += check_level("server", memory, retained_mib)
    injected = sum(failures.get(kind, 0) for kind in KINDS)
    kinds = ", ".join(f"{kind} {failures.get(kind, 0)}" for kind in KINDS)
    third = memory[len(memory) // 3] if memory else 0.0
    report = f"""\
### {count} clients in {settings.processes} processes

For {settings.seconds} s, each client trains and samples with its own model on one embedded server, through the proxy,
which injects failures into {SHARE:.0%} of the requests, seed {settings.seed}. Afterwards each client's operations are
replayed without failures: final weights, optimizer and all samples must be equal to the bit. No error may reach a
caller, each sample must be drawn once, and no operation pending. The memory of the server may grow by at most
{GROWTH_MIB:.0f} MiB from the end of the first third to the end, and by {RETAINED_KIB} KiB for each operation: it
retains results and keys for an hour (`RetentionPolicy`), and weights for sampling as long as their session.

| clients | {count} |
|---|---|
| training steps | {sum(steps)}, {min(steps, default=0)} to {max(steps, default=0)} of each client, \
median {statistics.median(steps) if steps else 0:.0f} |
| samples | {samples} |
| requests | {sum(failures.values())} |
| failures injected | {injected}: {kinds} |
| memory of the server, after a third and at the end | {third:.0f}, {memory[-1] if memory else 0:.0f} MiB |
| time of the replays | {replay_s:.0f} s |
| outcome | {"; ".join(problems[:10]) or "equal to the bit"} |
"""
    return report, not problems
