"""Every client through the gateway to every server, compared with the best official SDK directly at that server.

    python -m tests.rigs.gateway.run                                     all; writes docs/gateway.md
    python -m tests.rigs.gateway.run --clients 0.38.0 --servers 0.16.1   some; the table keeps the other results
    python -m tests.rigs.gateway.run --reuse                             only what has no result yet

The results are kept in build/gateway. Exit code 1 when a step that works for the best official SDK directly at the
server, and for the client directly at a server of its own version, does not work through the gateway, or when a number
differs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping

import attrs
from tests.rigs.gateway.parties import (
    BUILD,
    CLIENTS,
    OUR_CLIENT,
    SERVERS,
    THIRD_PARTY,
    Steps,
    best_official_version,
    own_server,
    run_flow,
    server_title,
)
from tests.rigs.official.report import DOCS, write_section

COMPILING_DEADLINES = 4
"""Deadlines of a step of the direct run at a third-party server, which compiles what later runs load."""


@attrs.frozen
class Cell:
    """The steps that one client can do at one server through the gateway.

    Args:
        works: number of steps that work through the gateway.
        expected: number of steps that have to work.
        failures: steps that do not work although they have to, and numbers that differ.
    """

    works: int
    expected: int
    failures: list[str]


def judge(through: Steps, best: Steps, own: Steps) -> Cell:
    """Compare a run through the gateway with the runs that show what the server and the client can do.

    Args:
        through: the client through the gateway.
        best: the best official SDK directly at the server.
        own: the client directly at the embedded server of its own version.
    """
    records = {step["step"]: step for step in through}
    working = [{step["step"] for step in steps if step["outcome"] == "works"} for steps in (best, own)]
    expected = working[0] & working[1]
    failures = [
        f"{name}: {record['outcome']}: {record['detail']}"
        for name, record in records.items()
        if name in expected and record["outcome"] != "works"
    ]
    failures += [f"{name}: not run" for name in expected - records.keys()]
    if "numbers" not in working[0]:
        failures.append("numbers: the best official SDK has none directly at the server")
    if "numbers" in expected and records.get("numbers", {}).get("outcome") == "works":
        failures += _compare_numbers(records["numbers"]["numbers"], _find_numbers(best))
    works = sum(record["outcome"] == "works" for record in records.values())
    return Cell(works, len(expected), failures)


def _find_numbers(steps: Steps) -> Mapping[str, list[object]]:
    return next(step["numbers"] for step in steps if step["step"] == "numbers")


def _compare_numbers(through: Mapping[str, list[object]], best: Mapping[str, list[object]]) -> list[str]:
    names = [*best, *(name for name in through if name not in best)]
    return [f"numbers: {name} differ" for name in names if through.get(name) != best.get(name)]


class Results:
    """Records of runs, kept in files.

    Args:
        reuses: whether a run whose records are there is not repeated.
        timeout_s: deadline of one step.
    """

    def __init__(self, *, reuses: bool, timeout_s: float) -> None:
        self._reuses = reuses
        self._timeout_s = timeout_s
        self._done: set[str] = set()

    def get(self, client: str, server: str, *, through_gateway: bool) -> Steps:
        """Return the records of a run, after the run unless it was done already."""
        name = f"{client}-{'through' if through_gateway else 'at'}-{server}"
        file = BUILD / f"{name}.json"
        # The direct runs are shared by many cells.
        if name not in self._done and not (self._reuses and file.exists()):
            compiles = server in THIRD_PARTY and not through_gateway
            timeout_s = self._timeout_s * (COMPILING_DEADLINES if compiles else 1)
            steps = run_flow(client, server, through_gateway=through_gateway, timeout_s=timeout_s)
            BUILD.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(steps, indent=1))
        self._done.add(name)
        records: Steps = json.loads(file.read_text())
        return records

    def has_cell(self, client: str, server: str) -> bool:
        """Return whether all runs of a cell have records."""
        return all((BUILD / f"{name}.json").exists() for name in _names_of_cell(client, server))

    def cell(self, client: str, server: str) -> Cell:
        """Return the outcome of a cell."""
        own = self.get(client, own_server(client), through_gateway=False)
        best = self.get(best_official_version(server), server, through_gateway=False)
        return judge(self.get(client, server, through_gateway=True), best, own)


def _names_of_cell(client: str, server: str) -> list[str]:
    return [
        f"{client}-at-{own_server(client)}",
        f"{best_official_version(server)}-at-{server}",
        f"{client}-through-{server}",
    ]


def render_table(cells: Mapping[tuple[str, str], Cell]) -> str:
    """Return the section of the report: a row for each client, a column for each server."""
    lines = [
        "## Clients and servers",
        "",
        "Made by `make gateway`: the steps of tests/rigs/official/steps_*.py with each client through the gateway, "
        "which discovers what the server supports. A cell has the number of steps that work. In brackets is the number "
        "of steps that have to work: those that work for the best official SDK directly at the server (that of its "
        "version, or 0.16.1 for skyrl-tx and 0.25.0 for skyrl), and for the client directly at the embedded server of "
        "its own version. One of the steps trains and samples a model with seeds: its losses, logprobs, samples and "
        "saved weights are equal to the bit to those of the best official SDK directly at the server. `-`: not run.",
        "",
        f"| Client | {' | '.join(server_title(server) for server in SERVERS)} |",
        f"|---|{'---|' * len(SERVERS)}",
    ]
    for client in CLIENTS:
        title = client if client == OUR_CLIENT else f"official SDK {client}"
        texts = [_render_cell(cells.get((client, server))) for server in SERVERS]
        lines.append(f"| {title} | {' | '.join(texts)} |")
    failures = [
        f"- {client} to {server_title(server)}: {failure}"
        for (client, server), cell in cells.items()
        for failure in cell.failures
    ]
    lines += [
        "",
        f"{len(cells)} of {len(CLIENTS) * len(SERVERS)} pairs were run; {len(failures)} steps failed.",
        *failures,
    ]
    return "\n".join(lines) + "\n"


def _render_cell(cell: Cell | None) -> str:
    if cell is None:
        return "-"
    return f"{cell.works} ({cell.expected})" if not cell.failures else f"**{cell.works} ({cell.expected})**"


def main() -> int:
    """Run the chosen cells, write the table, and return 1 if a cell failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", nargs="+", choices=CLIENTS, default=list(CLIENTS))
    parser.add_argument("--servers", nargs="+", choices=SERVERS, default=list(SERVERS))
    parser.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="deadline of one step")
    parser.add_argument("--reuse", action="store_true", help="use the results of earlier runs")
    options = parser.parse_args()
    results = Results(reuses=options.reuse, timeout_s=options.timeout)
    has_failed = False
    for server in options.servers:
        for client in options.clients:
            cell = results.cell(client, server)
            has_failed = has_failed or bool(cell.failures)
            sys.stdout.write(f"{client} to {server}: {cell.works} ({cell.expected})\n")
            sys.stdout.write("".join(f"  FAILED {failure}\n" for failure in cell.failures))
            sys.stdout.flush()
    kept = Results(reuses=True, timeout_s=options.timeout)
    pairs = [(client, server) for server in SERVERS for client in CLIENTS if kept.has_cell(client, server)]
    cells = {pair: kept.cell(*pair) for pair in pairs}
    write_section(DOCS / "gateway.md", "matrix", render_table(cells), title="The gateway")
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main())
