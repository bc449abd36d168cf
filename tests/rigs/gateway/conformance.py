"""The conformance kit through the gateway, compared with the kit directly at the server of its own version.

    python -m tests.rigs.gateway.conformance                     all cases; writes docs/gateway.md
    python -m tests.rigs.gateway.conformance --reuse             only the cases that have no result yet
    python -m tests.rigs.gateway.conformance 0.25.0:0.38.0       kit at 0.25.0, server of 0.38.0; the table keeps others

The direct run is that of the kit's version at the embedded server of that version. A pair of one version is run twice
through the gateway, which discovers what the server supports, or gets its version; a pair of two versions once. The
results are kept in build/gateway/conformance. Exit code 1 if a requirement that holds in the direct run does not hold
through the gateway, unless it rests on a part of the contract that the server's version does not have.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.rigs.conformance.run import examine
from tests.rigs.gateway.parties import BUILD, run_gateway, run_server
from tests.rigs.official.report import DOCS, write_section

from tinkerwire._conformance.catalogue import load_requirements
from tinkerwire._conformance.client.contract import Contract
from tinkerwire_generated.operations import OPERATIONS

SAME = ("0.3.0", "0.4.1", "0.7.0", "0.9.0", "0.14.0", "0.16.1", "0.18.2", "0.25.0", "0.30.4", "0.38.0")
"""Wire versions of the kit, each with a server of its own version."""
OTHER = (("0.16.1", "0.38.0"), ("0.25.0", "0.16.1"), ("0.38.0", "0.25.0"))
"""Wire versions of the kit and of a server of another version."""
PAIRS = (*((wire, wire) for wire in SAME), *OTHER)
DIRECT, DISCOVERED, TO_WIRE = "direct", "discovered", "--to-wire"
FINDINGS = BUILD / "conformance"
TESTED = ("failed", "blocked")
"""Outcomes that a part which the server lacks explains; a run that ends early has others."""


class Case(NamedTuple):
    """One run of the kit."""

    kit: str
    server: str
    mode: str
    """:data:`DIRECT`, :data:`DISCOVERED` or :data:`TO_WIRE`."""

    @property
    def file(self) -> Path:
        """Return the file of the result."""
        return FINDINGS / f"{self.kit}-{self.server}-{self.mode.strip('-')}.json"

    def load(self) -> dict[str, Any] | None:
        """Return the stored result; None before the run."""
        if not self.file.exists():
            return None
        found: dict[str, Any] = json.loads(self.file.read_text())
        return found


def run_case(case: Case) -> tuple[Case, dict[str, Any]]:
    """Run the kit against a new server, through a new gateway unless the case is direct; keep the result."""
    with run_server(case.server) as server:
        if case.mode == DIRECT:
            found = examine(server.url, case.kit)
        else:
            options = ("--to-wire", case.server) if case.mode == TO_WIRE else ()
            with run_gateway(server.url, *options) as url:
                found = examine(url, case.kit)
    FINDINGS.mkdir(parents=True, exist_ok=True)
    case.file.write_text(json.dumps(found, indent=1))
    return case, found


def list_cases(pairs: Sequence[tuple[str, str]]) -> list[Case]:
    """Return the runs of pairs, and the direct runs that they are compared with."""
    cases = [case for kit, server in pairs for case in (Case(kit, kit, DIRECT), Case(kit, server, DISCOVERED))]
    cases += [Case(kit, server, TO_WIRE) for kit, server in pairs if kit == server]
    return list(dict.fromkeys(cases))


def judge(case: Case, through: Mapping[str, Any], direct: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the requirements that fail through the gateway, and not in the direct run.

    Returns:
        those that fail, with their finding; those that the server's version cannot meet, with the part that it lacks.
    """
    found = {name: text for name, text in through["wrong"].items() if name not in direct["wrong"]}
    tested = [name for name, text in found.items() if text.startswith(TESTED)]
    parts = {name: part for name in tested if (part := find_missing_part(name, case.server)) is not None}
    failures = {name: text for name, text in found.items() if name not in parts}
    held, held_directly = (result["must"] + result["should"] for result in (through, direct))
    if case.kit == case.server and held + len(found) < held_directly:
        failures["skipped"] = f"{held_directly - held - len(found)} requirements apply in the direct run only"
    return failures, parts


def find_missing_part(name: str, server: str) -> str | None:
    """Return the first part of the contract that a requirement rests on and the server's version lacks."""
    requirement, contract = load_requirements()[name], Contract(server)
    for part in (*requirement.operations, *(text.partition(" ")[0] for text in requirement.contract)):
        model, _, field = part.partition(".")
        has_part = contract.has_field(model, field) if field else part not in OPERATIONS or contract.has_operation(part)
        if not has_part:
            return part
    return None


def render(found: Mapping[Case, Mapping[str, Any]]) -> str:
    """Return the section of the report."""
    wanted = [case for case in list_cases(PAIRS) if case.mode != DIRECT]
    lines = [
        "## The conformance kit",
        "",
        "Made by `make gateway-conformance`: the musts and shoulds of [Conformance](conformance.md) at the wire "
        "version of the kit, through the gateway to the embedded server of the same or another version. The gateway "
        "discovers what the server supports, or gets its version by --to-wire. Failures are requirements that fail "
        "through the gateway, and not directly at the embedded server of the kit's version. Those that rest on a part "
        "of the contract that the server's version lacks are counted apart.",
        "",
        "| Kit | Server | Found by | Hold directly | Through the gateway | Do not apply | Part lacks | Failures |",
        "|---|---|---|---:|---:|---:|---:|---|",
    ]
    count = 0
    absent: dict[str, dict[str, None]] = {}
    for case in wanted:
        result, direct = found.get(case), found.get(Case(case.kit, case.kit, DIRECT))
        if result is None or direct is None:
            continue
        count += 1
        failures, parts = judge(case, result, direct)
        absent.setdefault(case.server, {}).update(dict.fromkeys(parts.values()))
        lines.append(
            f"| {case.kit} | {case.server} | {case.mode} | {direct['must'] + direct['should']} "
            f"| {result['must'] + result['should']} | {result['skipped']} | {len(parts)} "
            f"| {', '.join(failures) or '0'} |"
        )
    lines += ["", f"{count} of {len(wanted)} runs through the gateway were made.", ""]
    lines += [f"- A server of {server} lacks {', '.join(parts)}." for server, parts in absent.items() if parts]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run the cases, print their failures, and return 1 if a requirement fails that the server can meet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="*", metavar="KIT:SERVER", help="wire versions; by default all")
    parser.add_argument("--jobs", type=int, default=2, help="runs at the same time")
    parser.add_argument("--reuse", action="store_true", help="use the results of earlier runs")
    options = parser.parse_args()
    chosen = [tuple(pair.split(":")) for pair in options.pairs] or PAIRS
    cases = list_cases([(kit, server) for kit, server in chosen])
    with multiprocessing.get_context("spawn").Pool(options.jobs, maxtasksperchild=1) as pool:
        missing = [case for case in cases if not (options.reuse and case.file.exists())]
        for case, result in pool.imap_unordered(run_case, missing, chunksize=1):
            held = result["must"] + result["should"]
            sys.stdout.write(f"kit {case.kit}, server {case.server}, {case.mode}: {held} hold\n")
            sys.stdout.flush()
    known = {case: found for case in list_cases([*PAIRS, *chosen]) if (found := case.load()) is not None}
    has_failed = False
    for case in cases:
        failures, parts = judge(case, known[case], known[Case(case.kit, case.kit, DIRECT)])
        has_failed = has_failed or bool(failures)
        title = f"kit {case.kit}, server {case.server}, {case.mode}"
        sys.stdout.write("".join(f"{title}: FAILED {name}: {text}\n" for name, text in failures.items()))
        sys.stdout.write("".join(f"{title}: {name}: the server has no {part}\n" for name, part in parts.items()))
    write_section(DOCS / "gateway.md", "conformance", render(known), title="The gateway")
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main())
