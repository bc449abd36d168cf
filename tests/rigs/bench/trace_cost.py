"""CPU of a trace: the case `sample` of the bench with and without TINKERWIRE_TRACE, by turns in fresh processes.

python -m tests.rigs.bench.trace_cost [PAIRS]

Prints the CPU of each process in milliseconds per sample, and the median ratio of all pairs.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.rigs.bench.stub import stub_server

SAMPLES = 2_000
RUNS = 5
"""Times 2,000 samples in a process: one batch alone is too short to measure."""
TIMEOUT_S = 600


def measure_cpu_ms(url: str, trace: Path | None) -> float:
    """Return the CPU milliseconds per sample of a fresh process."""
    environment = {**os.environ, "TINKER_TELEMETRY": "0"}
    environment.pop("TINKERWIRE_TRACE", None)
    if trace is not None:
        environment["TINKERWIRE_TRACE"] = str(trace)
    worker = Path(__file__).with_name("worker.py")
    command = [sys.executable, str(worker), "tinkerwire", "sample", url, str(SAMPLES * RUNS)]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, env=environment, check=True)
    return float(json.loads(completed.stdout.splitlines()[-1])["cpu_ms"])


def main() -> None:
    """Measure the pairs."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    ratios = []
    with stub_server() as urls, tempfile.TemporaryDirectory() as folder:
        for number in range(pairs):
            figures: dict[bool, float] = {}
            for is_traced in (number % 2 == 0, number % 2 == 1):
                path = Path(folder, f"{number}.trace") if is_traced else None
                figures[is_traced] = measure_cpu_ms(urls.newest, path)
            ratios.append(figures[True] / figures[False])
            sys.stdout.write(f"without {figures[False]:.4f} ms, with {figures[True]:.4f} ms, ratio {ratios[-1]:.3f}\n")
            sys.stdout.flush()
        size = sum(path.stat().st_size for path in Path(folder).glob("*.trace")) / pairs / (SAMPLES * RUNS)
    sys.stdout.write(f"median ratio {statistics.median(ratios):.4f}; {size:.0f} bytes of trace per sample\n")


if __name__ == "__main__":
    main()
