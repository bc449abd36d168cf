"""Rollouts past one process: the examples of docs/rollouts.md, 20 processes at one server, and a fleet in simulation.

python -m tests.rigs.scale.run     writes the section "measured" of docs/rollouts.md
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.rigs.bench.stub import stub_server
from tests.rigs.official.report import DOCS, write_section
from tests.rigs.official.venv import ROOT, ensure_venv
from tests.rigs.scale.simulation import simulate
from tests.support.embedded import embedded_http_server

EXAMPLES = DOCS / "examples"
TOKENS = 8
"""Tokens of each sample of the examples."""
PROCESSES, SAMPLES = 20, 20_000
MACHINES, IN_FLIGHT = 100, 10_000
SHORTEST_S, LONGEST_S, SECONDS = 20.0, 120.0, 600.0
TIMEOUT_S = 600


def run_example(name: str, python: str, url: str, *arguments: object) -> tuple[int, float]:
    """Run an example and return the number that it prints and the seconds that it took."""
    path = os.pathsep.join(str(ROOT / folder) for folder in ("generated", "overlay"))
    environment = os.environ | {
        "PYTHONPATH": path,
        "TINKER_API_KEY": "tml-scale",
        "TINKER_TELEMETRY": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    command = [python, str(EXAMPLES / f"rollouts_{name}.py"), url, *map(str, arguments)]
    start = time.monotonic()
    completed = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=TIMEOUT_S, check=False)
    seconds = time.monotonic() - start
    if completed.returncode:
        raise SystemExit(f"scale: {' '.join(command)}: exit code {completed.returncode}\n{completed.stderr[-3000:]}")
    # Ray writes its log between the lines of the example.
    return next(int(line) for line in reversed(completed.stdout.splitlines()) if line.isdigit()), seconds


def measure_examples() -> list[str]:
    """Run every example against the embedded server, and return the rows of the report."""
    torch = ensure_venv("torch", ROOT / "tests/rigs/official/requirements-torch.txt", installer="pip")
    ray = ensure_venv("ray", Path(__file__).with_name("requirements-ray.txt"))
    cases = (
        ("processes, spawned", "processes", sys.executable, ("spawn", 4, 2000), 2000 * TOKENS),
        ("processes, forked", "processes", sys.executable, ("fork", 4, 2000), 2000 * TOKENS),
        ("workers of a DataLoader", "dataloader", str(torch), (4, 2000), 2000 * TOKENS),
        ("Ray actors, one killed on the way", "ray", str(ray), (4, 10_000), 10_000),
    )
    rows = []
    for title, name, python, arguments, expected in cases:
        with embedded_http_server() as url:
            number, seconds = run_example(name, python, url, *arguments)
        if number != expected:
            raise SystemExit(f"scale: {title}: expected {expected}, got {number}")
        rows.append(f"| {title} | {arguments[-1]:,} | {seconds:.0f} |")
    return rows


def measure_processes() -> str:
    """Sample in many processes at once against the bench's stub, and return the row of the report."""
    with stub_server() as urls:
        _, seconds = run_example("processes", sys.executable, urls.newest, "spawn", PROCESSES, SAMPLES)
    return f"| {PROCESSES} processes at a server that responds at once | {SAMPLES:,} | {seconds:.0f} |"


def plan_fleet() -> list[str]:
    """Simulate a machine of the fleet in each mode, and return the rows of the report."""
    rows = []
    for mode, title in (
        ("held", "holds polls"),
        ("batched", "offers batched polling"),
        ("fast", "returns 408 at once"),
    ):
        load = simulate(mode, IN_FLIGHT, SHORTEST_S, LONGEST_S, SECONDS)
        rows.append(
            f"| {title} | {load.connections:,} | {load.connections * MACHINES:,} | "
            f"{load.requests_per_s * MACHINES:,.0f} | {load.samples_per_s * MACHINES:,.0f} | "
            f"{load.p50_delay_s:.2f} | {load.p99_delay_s:.2f} |"
        )
    return rows


def main() -> int:
    """Measure and write the report."""
    lines = [
        "## Measured",
        "",
        f"Made by `make scale` on {os.cpu_count()} cores; seconds contain the start of all processes.",
        "",
        "| rollouts in | samples | seconds |",
        "|---|---:|---:|",
        *measure_examples(),
        measure_processes(),
        "",
        f"### {MACHINES * IN_FLIGHT:,} samples in flight over {MACHINES} machines",
        "",
        f"Simulated, not measured: each machine keeps {IN_FLIGHT:,} samples in flight, each of which takes "
        f"{SHORTEST_S:.0f} to {LONGEST_S:.0f} s, with the client's own constants. The delay is the time from a result "
        "that is ready at the server to the caller.",
        "",
        "| the server | connections of a machine | of the server | requests/s | samples/s | delay p50, s | p99, s |",
        "|---|---:|---:|---:|---:|---:|---:|",
        *plan_fleet(),
    ]
    text = "\n".join(lines) + "\n"
    sys.stdout.write(text)
    write_section(DOCS / "rollouts.md", "measured", text, title="Rollouts in many processes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
