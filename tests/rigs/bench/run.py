"""The bench: our client and the official SDK 0.16.1 by turns, a fresh process for every figure, and the gates.

python -m tests.rigs.bench.run                     both clients, docs/benchmark.md and docs/benchmark.json
python -m tests.rigs.bench.run --clients tinker    the official SDK alone, printed only
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.rigs.bench.stub import stub_server
from tests.rigs.official.report import DOCS, write_section
from tests.rigs.official.venv import official_python

OURS, THEIRS = "tinkerwire", "tinker"
# case: (its title, what a figure is per, our greatest share of the official CPU)
CASES = {
    "sample": ("1,000 samples at once (1,000-token prompt, 256 tokens and logprobs back)", "sample", 1 / 4),
    "forward_backward": ("forward_backward of 64 x 4,096 tokens, three numpy tensors, JSON", "call", 1 / 10),
    "import": ("import", "import", 1 / 2),
}
UNITS = {
    "cpu_ms": "CPU, ms",
    "cpu_with_numpy_ms": "CPU once numpy is loaded too, ms",
    "wall_ms": "wall, ms",
    "start_mib": "memory before, MiB",
    "peak_mib": "memory at the peak, MiB",
    "rss_mib": "memory after, MiB",
    "added_mib": "memory added, MiB",
    "modules": "modules loaded",
}
TIMES_A_ROUND = {"import": 5}
"""Of cases so short that whatever else the machine does shows in them."""
Values = dict[str, dict[str, dict[str, list[float]]]]  # case, figure, client


def measure(clients: list[str], rounds: int) -> tuple[Values, dict[str, str]]:
    """Run every case with every client once a round; return the values and the versions of the clients."""
    pythons = {OURS: sys.executable, THEIRS: str(official_python())}
    values: Values = {case: {} for case in CASES}
    versions: dict[str, str] = {}
    with stub_server() as url:
        # A first import writes the bytecode; it is not what a user pays every day.
        for name in clients:
            _worker(pythons[name], name, "import", url)
        for number in range(rounds):
            turn = clients if number % 2 == 0 else clients[::-1]
            for case, name in ((c, n) for c in CASES for _ in range(TIMES_A_ROUND.get(c, 1)) for n in turn):
                figures = _worker(pythons[name], name, case, url)
                versions[name] = figures.pop("version")
                for figure, value in figures.items():
                    values[case].setdefault(figure, {}).setdefault(name, []).append(value)
    return values, versions


def _worker(python: str, client: str, case: str, url: str) -> dict[str, Any]:
    worker = Path(__file__).with_name("worker.py")
    env = os.environ | {"TINKER_TELEMETRY": "0"}
    # Else neither side has the bytecode that a user's second import has, or one of them alone.
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [python, str(worker), client, case, url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=env, check=False)
    if done.returncode:
        raise SystemExit(f"bench {case} with {client}: exit code {done.returncode}\n{done.stderr[-3000:]}")
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def summary(values: Values) -> dict[str, Any]:
    """Return median, least and most of every figure, and our median over theirs where both were measured."""
    cases: dict[str, Any] = {}
    for case, figures in values.items():
        cases[case] = {}
        for figure, by_client in figures.items():
            row: dict[str, Any] = {
                name: {"median": statistics.median(of), "min": min(of), "max": max(of), "values": of}
                for name, of in by_client.items()
            }
            if OURS in row and THEIRS in row:
                row["ratio"] = row[OURS]["median"] / row[THEIRS]["median"]
            cases[case][figure] = row
    return cases


def report(cases: dict[str, Any], versions: dict[str, str], rounds: int) -> str:
    """Return the Markdown report."""
    names = {OURS: f"tinkerwire {versions.get(OURS, '')}", THEIRS: f"official SDK {versions.get(THEIRS, '')}"}
    shown = [name for name in names if name in versions]
    lines = [
        "Made by `make bench`. Both clients in one run, by turns, each figure from a fresh process after a "
        f"warm-up; median of {rounds} rounds (least to most), with {TIMES_A_ROUND['import']} imports in each. CPU is "
        "user and system time of all threads. "
        "The server is nginx on the same machine, answering fixed bodies at once.",
        "",
        f"{_processor()}, {os.cpu_count()} cores, Python {platform.python_version()}.",
    ]
    for case, (title, unit, gate) in CASES.items():
        lines += ["", f"## {title[0].upper()}{title[1:]}", ""]
        lines.append(f"| per {unit} | {' | '.join(names[n] for n in shown)} | ours / theirs | allowed |")
        lines.append(f"|---|{'---:|' * len(shown)}---:|---:|")
        for figure, row in cases[case].items():
            cells = [f"{_n(row[n]['median'])} ({_n(row[n]['min'])}-{_n(row[n]['max'])})" for n in shown]
            ratio = f"{row['ratio']:.3f}" if "ratio" in row else ""
            allowed = f"{gate:.3f}" if figure == "cpu_ms" else ""
            lines.append(f"| {UNITS[figure]} | {' | '.join(cells)} | {ratio} | {allowed} |")
    return "\n".join(lines) + "\n"


def misses(cases: dict[str, Any]) -> list[str]:
    """Return one line for every gate that our client does not pass."""
    lines = []
    for case, (_, unit, gate) in CASES.items():
        row = cases[case]["cpu_ms"]
        if row["ratio"] > gate:
            lines.append(
                f"{case}: {_n(row[OURS]['median'])} ms CPU per {unit} is {row['ratio']:.3f} of the official "
                f"{_n(row[THEIRS]['median'])} ms; at most {gate:.3f} is allowed"
            )
    return lines


def _n(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def main() -> int:
    """Measure, report, and return 1 when a gate is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", nargs="+", choices=[OURS, THEIRS], default=[OURS, THEIRS])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    values, versions = measure(options.clients, options.rounds)
    cases = summary(values)
    text = report(cases, versions, options.rounds)
    sys.stdout.write(text)
    if len(options.clients) < 2:
        return 0
    write_section(DOCS / "benchmark.md", "clients", text, title="Benchmark")
    (DOCS / "benchmark.json").write_text(json.dumps({"versions": versions, "cases": cases}, indent=1) + "\n")
    missed = misses(cases)
    sys.stderr.write("".join(f"gate missed: {line}\n" for line in missed))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
