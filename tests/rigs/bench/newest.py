"""Second part of the bench: values and delays, with our client and the official SDK 0.38.0 by turns, and the gates.

python -m tests.rigs.bench.newest              section "newest" of docs/benchmark.md
python -m tests.rigs.bench.newest --rounds 1   a quick look, printed only
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.rigs.bench.run import OURS, THEIRS
from tests.rigs.bench.stub import is_answering
from tests.rigs.official.process import ServerProcess, free_port
from tests.rigs.official.report import DOCS, write_section
from tests.rigs.official.venv import official_python

VERSION = "0.38.0"
ROUNDS = 5
FOLDER = Path(__file__).parent
VALUES = {
    "datums_numpy": "1,000 datums from numpy arrays",
    "datums_tensor_numpy": "1,000 datums from TensorData of arrays",
    "datums_tensor_data": "1,000 datums from TensorData of lists",
    "datums_lists": "1,000 datums from lists",
    "to_ints": "to_ints of 100,000 tokens",
    "topk_lists": "top-k lists, 8 x 4,096 x 20",
    "topk_prompt": "top-k lists of a prompt, 32,768 x 20",
    "pickles": "1,000 datums pickled and unpickled",
}
DELAYS = {
    "held 1,000": ("held", 1_000),
    "held 10,000": ("held", 10_000),
    "408 at once 1,000": ("fast", 1_000),
    "batched polling 1,000": ("batched", 1_000),
}
"""The kind of polling and the number of samples in flight; each sample takes 5 to 10 s."""
SHORTEST_S, LONGEST_S = 5, 10
MAX_RATIO = 1.0
Figures = dict[str, dict[str, list[float]]]  # case, client


def measure_values(rounds: int) -> Figures:
    """Return the CPU milliseconds of every case by client, each from a fresh process."""
    figures: Figures = {}
    for client, python in _turns(rounds):
        for case, value in _run([python, str(FOLDER / "values.py"), client]).items():
            figures.setdefault(case, {}).setdefault(client, []).append(value)
    return figures


def measure_delays(rounds: int) -> Figures:
    """Return the milliseconds at the 99th percentile from ready to caller, by case and client."""
    figures: Figures = {}
    for case, (mode, samples) in DELAYS.items():
        for client, python in _turns(rounds):
            with _waiting_server(mode) as url:
                worker = _run([python, str(FOLDER / "delay_worker.py"), client, url, str(samples), str(samples)])
            figures.setdefault(case, {}).setdefault(client, []).append(worker["p99_ms"])
    return figures


def _turns(rounds: int) -> Iterator[tuple[str, str]]:
    clients = [(OURS, sys.executable), (THEIRS, str(official_python(VERSION)))]
    for number in range(rounds):
        yield from clients if number % 2 == 0 else clients[::-1]


def _run(command: list[str]) -> dict[str, Any]:
    env = os.environ | {"TINKER_TELEMETRY": "0"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, env=env, check=False)
    if done.returncode:
        raise SystemExit(f"bench: {' '.join(command)}: exit code {done.returncode}\n{done.stderr[-3000:]}")
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


@contextmanager
def _waiting_server(mode: str) -> Iterator[str]:
    url = f"http://127.0.0.1:{(port := free_port())}"
    command = [sys.executable, str(FOLDER / "waiting_server.py"), str(port), mode, str(SHORTEST_S), str(LONGEST_S)]
    with tempfile.TemporaryDirectory() as folder, ServerProcess(command, log=Path(folder, "log.txt")) as server:
        server.wait_until("answering", lambda: is_answering(url), timeout_s=20)
        yield url


def report(values: Figures, delays: Figures, rounds: dict[str, int]) -> str:
    """Return the Markdown report."""
    lines = [f"## Values and delays against the official SDK {VERSION}", ""]
    lines.append(
        "Made by `make bench`. Both clients by turns in fresh processes; "
        f"medians of {rounds['values']} rounds of values and {rounds['delays']} of delays (least to most). "
        "Values: CPU, ms, the least of five repetitions with garbage collection. "
        "Delays: ms from the moment when a sample is ready at the server to the caller, 99th percentile; "
        f"each sample takes {SHORTEST_S} to {LONGEST_S} s."
    )
    lines += ["", "| case | tinkerwire | official SDK | ours / theirs | allowed |", "|---|---:|---:|---:|---:|"]
    titles = VALUES | {case: f"ready to caller, p99, {case} in flight" for case in DELAYS}
    for case, row in (values | delays).items():
        cells = [
            f"{statistics.median(row[name]):,.2f} ({min(row[name]):,.2f}-{max(row[name]):,.2f})"
            for name in (OURS, THEIRS)
        ]
        lines.append(f"| {titles[case]} | {' | '.join(cells)} | {ratio(row):.3f} | {MAX_RATIO:.3f} |")
    return "\n".join(lines) + "\n"


def ratio(row: dict[str, list[float]]) -> float:
    """Return our median over theirs."""
    return statistics.median(row[OURS]) / statistics.median(row[THEIRS])


def main() -> int:
    """Measure, report, and return 1 when a gate is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--delay-rounds", type=int, default=None)
    options = parser.parse_args()
    rounds = {"values": options.rounds, "delays": options.delay_rounds or options.rounds}
    start = time.monotonic()
    values, delays = measure_values(rounds["values"]), measure_delays(rounds["delays"])
    text = report(values, delays, rounds)
    sys.stdout.write(text)
    sys.stderr.write(f"measured in {time.monotonic() - start:.0f} s\n")
    if options.rounds >= ROUNDS:
        write_section(DOCS / "benchmark.md", "newest", text, title="Benchmark")
    missed = [case for case, row in (values | delays).items() if ratio(row) > MAX_RATIO]
    sys.stderr.write("".join(f"gate missed: {case}\n" for case in missed))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
