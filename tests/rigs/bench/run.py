"""The bench: our client beside official SDKs, by turns in fresh processes, and the gates.

python -m tests.rigs.bench.run                    all rows, and those of the gateway; writes docs/benchmark.md
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
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.rigs.bench import gateway
from tests.rigs.bench.cases import BARE_LIBRARY, GATES, MAX_DISTRIBUTIONS, OUR_CLIENT, Gate, Measurement
from tests.rigs.bench.delays import SAMPLE_S, waiting_server
from tests.rigs.bench.stub import stub_server
from tests.rigs.official.report import DOCS, write_section
from tests.rigs.official.venv import ROOT, ensure_official_python

ROUNDS = 5
FOLDER = Path(__file__).parent
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
            url = stack.enter_context(waiting_server(measurement.server, SAMPLE_S))
        command = [_find_python(measurement), str(FOLDER / measurement.script), *_list_arguments(measurement, url)]
        env = os.environ | {"TINKER_TELEMETRY": "0"}
        # Else neither side has the bytecode that a user's second import has, or one of them alone.
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        completed = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, env=env, check=False)
    # Releases of the official SDK may crash at their exit, after they have printed their figures.
    if completed.returncode and (measurement.client == OUR_CLIENT or not completed.stdout):
        raise SystemExit(
            f"bench: {_describe(measurement)}: exit code {completed.returncode}\n{completed.stderr[-3000:]}"
        )
    figures: dict[str, Any] = json.loads(completed.stdout.splitlines()[-1])
    return figures


def _find_python(measurement: Measurement) -> str:
    if measurement.client in (OUR_CLIENT, BARE_LIBRARY) or measurement.script == INSTALL:
        return sys.executable
    return str(ensure_official_python(measurement.client))


def _list_arguments(measurement: Measurement, url: str) -> list[str]:
    if measurement.script == INSTALL:
        return [str(ROOT) if measurement.client == OUR_CLIENT else f"tinker=={measurement.client}"]
    if measurement.client == BARE_LIBRARY:
        library, *counts = measurement.arguments
        return [library, url, *counts]
    module = OUR_CLIENT if measurement.client == OUR_CLIENT else "tinker"
    arguments = list(measurement.arguments)
    if measurement.script == "worker.py":
        return [module, arguments[0], url, *arguments[1:]]
    return [module, *([url] if url else []), *arguments]


def compute_ratio(gate: Gate, figures: Figures) -> float:
    """Return our median over theirs."""
    return _compute_median(figures[gate.measurement], gate.figure) / _compute_median(
        figures[gate.reference], gate.figure
    )


def render_report(gates: list[Gate], figures: Figures, rounds: int) -> str:
    """Return the Markdown report."""
    lines = [
        "Made by `make bench`: all clients in one run, by turns, each figure from a fresh process; "
        f"medians of {rounds} rounds (least to most). CPU is user and system time of all threads. The server is nginx "
        "on the same machine, which returns fixed bodies at once. Collections of garbage leave out the prompts. Values "
        "(datums, to_ints, top-k, dumps, pickles): the least of five repetitions, garbage collection included. Delays: "
        "from the moment when a sample is ready at the server to the caller; each sample takes "
        f"{SAMPLE_S.replace('-', ' to ')} s.",
        "",
        f"{_find_processor()}, {os.cpu_count()} cores, Python {platform.python_version()}.",
        "",
        "| work | unit | tinkerwire | against | its figure | ratio | allowed |",
        "|---|---|---:|---|---:|---:|---:|",
    ]
    for gate in gates:
        cells = [_render_cell(figures[measurement], gate.figure) for measurement in (gate.measurement, gate.reference)]
        ratio = compute_ratio(gate, figures)
        mark = "" if ratio <= gate.max_ratio else " (missed)"
        lines.append(
            f"| {gate.work} | {gate.unit} | {cells[0]} | {gate.against} | {cells[1]} | {ratio:.3f} | "
            f"{gate.max_ratio:.2f}{mark} |"
        )
    for gate in gates:
        if gate.measurement.script == INSTALL:
            counts = [figures[measurement][0]["distributions"] for measurement in (gate.measurement, gate.reference)]
            lines.append(
                f"| install | distributions | {counts[0]} | {gate.against} | {counts[1]} | | {MAX_DISTRIBUTIONS} |"
            )
    return "\n".join(lines) + "\n"


def find_misses(gates: list[Gate], figures: Figures) -> list[str]:
    """Return one line for every gate that our client does not pass."""
    lines = [
        f"{gate.work}, {gate.unit}: {ratio:.3f} of {gate.against}; at most {gate.max_ratio:g} is allowed"
        for gate in gates
        if (ratio := compute_ratio(gate, figures)) > gate.max_ratio
    ]
    for gate in gates:
        if gate.measurement.script == INSTALL and figures[gate.measurement][0]["distributions"] > MAX_DISTRIBUTIONS:
            lines.append(f"install: more than {MAX_DISTRIBUTIONS} distributions")
    return lines


def _render_cell(figures: list[dict[str, Any]], name: str) -> str:
    values = [process[name] for process in figures]
    return f"{_render_number(statistics.median(values))} ({_render_number(min(values))}-{_render_number(max(values))})"


def _compute_median(figures: list[dict[str, Any]], name: str) -> float:
    return statistics.median(process[name] for process in figures)


def _render_number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _describe(measurement: Measurement) -> str:
    parts = (measurement.script.removesuffix(".py"), *measurement.arguments, measurement.server)
    return f"{' '.join(part for part in parts if part)} with {measurement.client}"


def _find_processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _convert_to_json(figures: Figures) -> list[dict[str, Any]]:
    return [
        {"client": measurement.client, "work": _describe(measurement), "processes": processes}
        for measurement, processes in figures.items()
    ]


def _list_distinct(gates: list[Gate], select: Callable[[Gate], tuple[Measurement, ...]]) -> list[Measurement]:
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
    figures = measure(_list_distinct(gates, lambda gate: (gate.measurement, gate.reference)), options.rounds)
    text = render_report(gates, figures, options.rounds)
    sys.stdout.write(text)
    sys.stderr.write(f"measured in {time.monotonic() - start:.0f} s\n")
    is_whole = not options.only and options.rounds >= ROUNDS
    if is_whole:
        write_section(DOCS / "benchmark.md", "clients", text, title="Benchmark")
        (ROOT / "build").mkdir(exist_ok=True)
        (ROOT / "build" / "benchmark.json").write_text(json.dumps(_convert_to_json(figures), indent=1) + "\n")
    misses = find_misses(gates, figures)
    sys.stderr.write("".join(f"gate missed: {line}\n" for line in misses))
    is_gateway_slow = is_whole and bool(gateway.main())
    return 1 if misses or is_gateway_slow else 0


if __name__ == "__main__":
    sys.exit(main())
