"""Delays from a sample that is ready at the server to the caller, with more samples than `make bench` has.

    python -m tests.rigs.bench.delays [--only TEXT]

The section goes to docs/benchmark.md. Exit code 1 if a delay is longer than that of the official SDK, or if fewer
samples finish in a second.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
from tests.rigs.bench.cases import NEWEST_SDK, OUR_CLIENT
from tests.rigs.bench.stub import is_healthy
from tests.rigs.bench.worker_process import FOLDER, run_worker
from tests.rigs.official.process import ServerProcess, find_free_port
from tests.rigs.official.report import DOCS, write_section

SAMPLE_S = "5-10"
"""Time that each sample takes."""
MIXED_S = "1,1,1,1,1,1,1,12,12,12"
"""Three in ten samples take 12 s, the others 1 s."""
MAX_SECONDS = 240
"""Time after which the samples that remain are cancelled: some clients would need a quarter of an hour."""
MODES = {"held": "holds polls", "fast": "returns 408 at once", "batched": "offers batched polling"}
CLIENTS = (OUR_CLIENT, NEWEST_SDK)


@attrs.frozen
class Case:
    """Samples and their callers.

    Args:
        title: what the callers do.
        samples: number of samples.
        callers: coroutines that take the samples one after the other.
        in_flight: most samples that a client keeps in flight; the others wait in the client.
        seconds: times that samples take at the server.
    """

    title: str
    samples: int
    callers: int
    in_flight: int
    seconds: str


CASES = (
    Case("10,000 called at once, all in flight", 10_000, 10_000, 10_000, SAMPLE_S),
    Case("100,000 called at once, 10,000 in flight", 100_000, 100_000, 10_000, SAMPLE_S),
    Case("8,000 by 800 callers, 3 in 10 take 12 s, the others 1 s", 8_000, 800, 800, MIXED_S),
)


@contextmanager
def waiting_server(mode: str, seconds: str) -> Iterator[str]:
    """Run a server whose samples take time, and yield its URL; see waiting_server.py for the arguments."""
    url = f"http://127.0.0.1:{(port := find_free_port())}"
    command = [sys.executable, str(FOLDER / "waiting_server.py"), str(port), mode, seconds]
    with tempfile.TemporaryDirectory() as folder, ServerProcess(command, log=Path(folder, "log.txt")) as server:
        server.wait_until("healthy", lambda: is_healthy(url), timeout_s=20)
        yield url


def measure(client: str, mode: str, case: Case) -> dict[str, Any]:
    """Return the figures of one client in a fresh process, on a fresh server."""
    counts = map(str, (case.samples, case.callers, case.in_flight, MAX_SECONDS))
    with waiting_server(mode, case.seconds) as url:
        return run_worker(client, "delay_worker.py", url, *counts)


def main() -> int:
    """Measure, report, and return 1 if the official SDK is better at anything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only rows that contain this text, printed only")
    only = parser.parse_args().only
    rows, is_worse = [], False
    for mode, server in MODES.items():
        for case in CASES:
            if only not in f"{mode} {case.title}":
                continue
            ours, theirs = (measure(client, mode, case) for client in CLIENTS)
            is_behind = ours["p99_ms"] > theirs["p99_ms"] or ours["per_s"] < theirs["per_s"]
            is_worse |= is_behind
            cells = " | ".join(_render_figures(figures, case.samples) for figures in (ours, theirs))
            rows.append(f"| {server} | {case.title} | {cells} |{' worse' if is_behind else ''}")
            sys.stderr.write(f"{rows[-1]}\n")
    text = _render(rows)
    sys.stdout.write(text)
    if not only:
        write_section(DOCS / "benchmark.md", "delays", text, title="Benchmark")
    return int(is_worse)


def _render_figures(figures: dict[str, Any], samples: int) -> str:
    share = "" if figures["finished"] == samples else f" ({figures['finished']:,} finished)"
    return f"{figures['p50_ms']:,.0f} | {figures['p99_ms']:,.0f} | {figures['per_s']:,.0f}{share}"


def _render(rows: list[str]) -> str:
    return (
        "\n".join(
            [
                "## Delays with many samples",
                "",
                f"Made by `make bench-delays`, {os.cpu_count()} cores, Python {platform.python_version()}, one run "
                "each: milliseconds from the moment when a sample is ready at the server to the caller, and finished "
                "samples per second. Samples take 5 to 10 s, unless the row names a time. Client and server share the "
                f"machine. After {MAX_SECONDS} s a run ends, and its figures are those of the finished samples.",
                "",
                f"| the server | samples | tinkerwire p50 | p99 | per s | {NEWEST_SDK} p50 | p99 | per s |",
                "|---|---|---:|---:|---:|---:|---:|---:|",
                *rows,
            ]
        )
        + "\n"
    )


if __name__ == "__main__":
    sys.exit(main())
