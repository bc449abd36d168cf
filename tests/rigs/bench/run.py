"""The bench: our client beside official SDKs, by turns in fresh processes, and the gates.

python -m tests.rigs.bench.run                    all rows, written to docs/benchmark.md and docs/benchmark.json
python -m tests.rigs.bench.run --only sample      rows whose work has this text, printed only
python -m tests.rigs.bench.run --rounds 1         a quick look, printed only
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.rigs.bench.cases import BARE, GATES, HEAVY_ROUNDS, MAX_DISTRIBUTIONS, OURS, Gate, Measurement
from tests.rigs.bench.stub import is_answering, stub_server
from tests.rigs.official.process import ServerProcess, free_port
from tests.rigs.official.report import DOCS, write_section
from tests.rigs.official.venv import ROOT, official_python

ROUNDS = 5
FOLDER = Path(__file__).parent
SHORTEST_S, LONGEST_S = 5, 10
"""Time that each sample of the waiting server takes."""
TIMEOUT_S = 1800
INSTALL = "install_worker.py"
Figures = dict[Measurement, list[dict[str, Any]]]


def measure(measurements: list[Measurement], rounds: int) -> Figures:
    """Make every measurement once a round, forwards and backwards by turns; return the figures of the processes."""
    figures: Figures = {measurement: [] for measurement in measurements}
    with ExitStack() as stack:
        urls: dict[str, str] = {}
        if any(measurement.server in ("json", "newest") for measurement in measurements):
            stub = stack.enter_context(stub_server())
            urls |= {"json": stub.json, "newest": stub.newest}
        # A first import writes the bytecode; it is not what a user pays every day.
        for client in {measurement.client for measurement in measurements if measurement.script == "worker.py"}:
            _run(Measurement(client, "worker.py", ("import",)), urls)
        for number in range(rounds):
            for measurement in measurements if number % 2 == 0 else measurements[::-1]:
                if measurement.max_rounds is not None and number >= measurement.max_rounds:
                    continue
                for _ in range(measurement.times):
                    figures[measurement].append(_run(measurement, urls))
                sys.stderr.write(f"round {number + 1} of {rounds}: {_describe(measurement)}\n")
    return figures


def _run(measurement: Measurement, urls: dict[str, str]) -> dict[str, Any]:
    with ExitStack() as stack:
        if measurement.server in ("", *urls):
            url = urls.get(measurement.server, "")
        else:
            url = stack.enter_context(_waiting_server(measurement.server))
        command = [_python(measurement), str(FOLDER / measurement.script), *_arguments(measurement, url)]
        env = os.environ | {"TINKER_TELEMETRY": "0"}
        # Else neither side has the bytecode that a user's second import has, or one of them alone.
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, env=env, check=False)
    # Releases of the official SDK may crash at their exit, after they have printed their figures.
    if done.returncode and (measurement.client == OURS or not done.stdout):
        raise SystemExit(f"bench: {_describe(measurement)}: exit code {done.returncode}\n{done.stderr[-3000:]}")
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _python(measurement: Measurement) -> str:
    if measurement.client in (OURS, BARE) or measurement.script == INSTALL:
        return sys.executable
    return str(official_python(measurement.client))


def _arguments(measurement: Measurement, url: str) -> list[str]:
    if measurement.script == INSTALL:
        return [str(ROOT) if measurement.client == OURS else f"tinker=={measurement.client}"]
    if measurement.client == BARE:
        library, *counts = measurement.arguments
        return [library, url, *counts]
    module = OURS if measurement.client == OURS else "tinker"
    arguments = list(measurement.arguments)
    if measurement.script == "worker.py":
        return [module, arguments[0], url, *arguments[1:]]
    return [module, *([url] if url else []), *arguments]


@contextmanager
def _waiting_server(mode: str) -> Iterator[str]:
    url = f"http://127.0.0.1:{(port := free_port())}"
    command = [sys.executable, str(FOLDER / "waiting_server.py"), str(port), mode, str(SHORTEST_S), str(LONGEST_S)]
    with tempfile.TemporaryDirectory() as folder, ServerProcess(command, log=Path(folder, "log.txt")) as server:
        server.wait_until("answering", lambda: is_answering(url), timeout_s=20)
        yield url


def ratio(gate: Gate, figures: Figures) -> float:
    """Return our median over theirs."""
    return _median(figures[gate.ours], gate.figure) / _median(figures[gate.theirs], gate.figure)


def report(gates: list[Gate], figures: Figures, rounds: int) -> str:
    """Return the Markdown report."""
    lines = [
        "Made by `make bench`: all clients in one run, by turns, each figure from a fresh process; "
        f"medians of {rounds} rounds (least to most), of {HEAVY_ROUNDS} for 100,000 samples, 20,000 at once and "
        "10,000 held. CPU is user and system time of all threads. The server is nginx "
        "on the same machine, which answers fixed bodies at once. Values (datums, to_ints, top-k, dumps, pickles): the "
        "least of five repetitions, garbage collection included. Delays: from the moment when a sample is ready at the "
        f"server to the caller; each sample takes {SHORTEST_S} to {LONGEST_S} s.",
        "",
        f"{_processor()}, {os.cpu_count()} cores, Python {platform.python_version()}.",
        "",
        "| work | unit | tinkerwire | against | its figure | ratio | allowed |",
        "|---|---|---:|---|---:|---:|---:|",
    ]
    for gate in gates:
        cells = [_cell(figures[measurement], gate.figure) for measurement in (gate.ours, gate.theirs)]
        share, mark = ratio(gate, figures), "" if ratio(gate, figures) <= gate.max_ratio else " (missed)"
        lines.append(
            f"| {gate.work} | {gate.unit} | {cells[0]} | {gate.against} | {cells[1]} | {share:.3f} | "
            f"{gate.max_ratio:.2f}{mark} |"
        )
    for gate in gates:
        if gate.ours.script == INSTALL:
            ours, theirs = (figures[each][0]["distributions"] for each in (gate.ours, gate.theirs))
            lines.append(f"| install | distributions | {ours} | {gate.against} | {theirs} | | {MAX_DISTRIBUTIONS} |")
    return "\n".join(lines) + "\n"


def misses(gates: list[Gate], figures: Figures) -> list[str]:
    """Return one line for every gate that our client does not pass."""
    lines = [
        f"{gate.work}, {gate.unit}: {ratio(gate, figures):.3f} of {gate.against}; at most {gate.max_ratio:g} is allowed"
        for gate in gates
        if ratio(gate, figures) > gate.max_ratio
    ]
    for gate in gates:
        if gate.ours.script == INSTALL and figures[gate.ours][0]["distributions"] > MAX_DISTRIBUTIONS:
            lines.append(f"install: more than {MAX_DISTRIBUTIONS} distributions")
    return lines


def _cell(figures: list[dict[str, Any]], name: str) -> str:
    values = [process[name] for process in figures]
    return f"{_number(statistics.median(values))} ({_number(min(values))}-{_number(max(values))})"


def _median(figures: list[dict[str, Any]], name: str) -> float:
    return statistics.median(process[name] for process in figures)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _describe(measurement: Measurement) -> str:
    parts = (measurement.script.removesuffix(".py"), *measurement.arguments, measurement.server)
    return f"{' '.join(part for part in parts if part)} with {measurement.client}"


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _as_json(figures: Figures) -> list[dict[str, Any]]:
    return [
        {"client": key.client, "work": _describe(key), "processes": processes} for key, processes in figures.items()
    ]


def _distinct(gates: list[Gate], select: Callable[[Gate], tuple[Measurement, ...]]) -> list[Measurement]:
    return list(dict.fromkeys(measurement for gate in gates for measurement in select(gate)))


def main() -> int:
    """Measure, report, and return 1 if a gate is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only rows whose work contains this text")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    gates = [gate for gate in GATES if options.only in gate.work]
    if not gates:
        parser.error(f"--only {options.only!r}: no row has this text")
    start = time.monotonic()
    figures = measure(_distinct(gates, lambda gate: (gate.ours, gate.theirs)), options.rounds)
    text = report(gates, figures, options.rounds)
    sys.stdout.write(text)
    sys.stderr.write(f"measured in {time.monotonic() - start:.0f} s\n")
    if not options.only and options.rounds >= ROUNDS:
        write_section(DOCS / "benchmark.md", "clients", text, title="Benchmark")
        (DOCS / "benchmark.json").write_text(json.dumps(_as_json(figures), indent=1) + "\n")
    missed = misses(gates, figures)
    sys.stderr.write("".join(f"gate missed: {line}\n" for line in missed))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
