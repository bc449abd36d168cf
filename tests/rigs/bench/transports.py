"""Candidate transports for the hot path, side by side: `make bench-transports`.

The table goes to docs/benchmark.md.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.rigs.bench.stub import stub_server
from tests.rigs.bench.transport_worker import HOSTILE_TIMEOUT_S, TRANSPORTS
from tests.rigs.official.report import DOCS, write_section
from tests.rigs.official.venv import ensure_venv

from support.hostile_responses import HOSTILE

COLUMNS = {
    "cpu_ms": "CPU ms/sample",
    "per_s": "requests/s",
    "import_ms": "import CPU ms",
    "import_mib": "import MiB",
    "peak_mib": "peak MiB",
}
CRASHED = "died at exit"
OUTCOMES = ("rejected", "accepted", "hung", "mixed up")
ROOT = Path(__file__).parents[3]


def measure(rounds: int, requests: int, in_flight: int) -> dict[str, dict[str, list[float]]]:
    """Run every transport once a round, in turn, so that a slow minute of the machine meets them all."""
    python = ensure_venv("transports", Path(__file__).with_name("requirements-transports.txt"))
    worker = str(Path(__file__).with_name("transport_worker.py"))
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in ("tests", "overlay", "generated"))
    }
    figures: dict[str, dict[str, list[float]]] = {name: {} for name in TRANSPORTS}

    def run_hostile(name: str, response: str) -> str:
        command = [str(python), worker, name, "hostile", response]
        try:
            completed = subprocess.run(
                command, capture_output=True, text=True, timeout=6 * HOSTILE_TIMEOUT_S, check=False, env=environment
            )
        except subprocess.TimeoutExpired:
            return "hung"
        return str(json.loads(completed.stdout)) if completed.stdout else "rejected"

    def run(*arguments: str) -> tuple[dict[str, float], float]:
        command = [str(python), worker, *arguments]
        completed = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
        if not completed.stdout:
            raise SystemExit(f"{arguments[0]}: exit code {completed.returncode}\n{completed.stderr[-2000:]}")
        return json.loads(completed.stdout), float(completed.returncode != 0)

    with stub_server() as urls:
        for _ in range(rounds):
            for name, columns in figures.items():
                values, crashed = run(name, urls.json, str(requests), str(in_flight))
                for column, value in (values | {"crashed": crashed}).items():
                    columns.setdefault(column, []).append(value)
    for name, columns in figures.items():
        outcomes = Counter(run_hostile(name, response) for response in [*HOSTILE, "two responses"])
        columns |= {outcome: [float(outcomes[outcome])] for outcome in OUTCOMES}
    return figures


def render_table(figures: dict[str, dict[str, list[float]]]) -> str:
    """Return a Markdown table of medians, least and most CPU beside them, the cheapest first."""
    heads = [*COLUMNS.values(), CRASHED, f"hostile responses: {', '.join(OUTCOMES)}"]
    lines = [f"| transport | {' | '.join(heads)} |", "|---|" + "---:|" * len(heads)]
    for name in sorted(figures, key=lambda name: statistics.median(figures[name]["cpu_ms"])):
        cells = [f"{statistics.median(figures[name][column]):.3g}" for column in COLUMNS]
        low, high = min(figures[name]["cpu_ms"]), max(figures[name]["cpu_ms"])
        cells[0] += f" ({low:.3g}-{high:.3g})"
        cells[1] = f"{statistics.median(figures[name]['per_s']):,.0f}"
        crashes = figures[name]["crashed"]
        cells.append(f"{sum(crashes):.0f} of {len(crashes)}")
        cells.append(", ".join(f"{figures[name][outcome][0]:.0f}" for outcome in OUTCOMES))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=8000)
    parser.add_argument("--in-flight", type=int, default=200)
    options = parser.parse_args()
    text = render_table(measure(options.rounds, options.requests, options.in_flight))
    intro = (
        f"## Transports\n\nMade by `make bench-transports`: {options.requests:,} requests, "
        f"{options.in_flight} in flight, bytes in and bytes out; median of {options.rounds} processes each. Hostile "
        "responses (tests/support/hostile_responses.py, and two responses to one request) are malformed or endless, "
        "and the server leaves the connection open: a client has hung if it neither raises an error nor returns "
        f"within {HOSTILE_TIMEOUT_S:g} s. Right is to reject all but the first of the two responses.\n\n"
    )
    write_section(DOCS / "benchmark.md", "transports", intro + text, title="Benchmark")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
