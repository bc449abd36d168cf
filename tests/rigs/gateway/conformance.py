"""The conformance kit through the gateway, compared with the kit directly at the server of its own version.

    python -m tests.rigs.gateway.conformance                     all cases; writes docs/gateway.md
    python -m tests.rigs.gateway.conformance --reuse             only the cases that have no result yet
    python -m tests.rigs.gateway.conformance 0.25.0:0.38.0       kit at 0.25.0, server of 0.38.0; the table keeps others

The direct run is that of the kit's version at the embedded server of that version. A pair of one version is run twice
through the gateway, which discovers what the server supports, or gets its version; a pair of two versions once. The
results are kept in build/gateway/conformance. Exit code 1 if a requirement that holds in the direct run does not hold
through the gateway, unless :data:`DIFFERENT` has the reason.
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

SAME = ("0.3.0", "0.4.1", "0.7.0", "0.9.0", "0.14.0", "0.16.1", "0.18.2", "0.25.0", "0.30.4", "0.38.0")
"""Wire versions of the kit, each with a server of its own version."""
OTHER = (("0.16.1", "0.38.0"), ("0.25.0", "0.16.1"), ("0.38.0", "0.25.0"))
"""Wire versions of the kit and of a server of another version."""
PAIRS = (*((wire, wire) for wire in SAME), *OTHER)
DIFFERENT: Mapping[str, str] = {}
"""Requirements that cannot hold between versions, each with the reason."""
DIRECT, DISCOVERED, TO_WIRE = "direct", "discovered", "--to-wire"
FINDINGS = BUILD / "conformance"


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


def judge(through: Mapping[str, Any], direct: Mapping[str, Any]) -> dict[str, str]:
    """Return the requirements that hold in the direct run only."""
    return {name: text for name, text in through["wrong"].items() if name not in direct["wrong"]}


def render(found: Mapping[Case, Mapping[str, Any]]) -> str:
    """Return the section of the report."""
    wanted = [case for case in list_cases(PAIRS) if case.mode != DIRECT]
    lines = [
        "## The conformance kit",
        "",
        "Made by `make gateway-conformance`: the musts and shoulds of [Conformance](conformance.md) at the wire "
        "version of the kit, through the gateway to the embedded server of the same or another version. The gateway "
        "discovers what the server supports, or gets its version by --to-wire. Additional failures are requirements "
        "that hold for the kit directly at the embedded server of its own version, and fail through the gateway.",
        "",
        "| Kit | Server | Found by | Hold directly | Through the gateway | Do not apply | Additional failures |",
        "|---|---|---|---:|---:|---:|---|",
    ]
    count = 0
    seen: dict[str, None] = {}
    for case in wanted:
        result, direct = found.get(case), found.get(Case(case.kit, case.kit, DIRECT))
        if result is None or direct is None:
            continue
        count += 1
        failures = judge(result, direct)
        seen |= dict.fromkeys(failures)
        lines.append(
            f"| {case.kit} | {case.server} | {case.mode} | {direct['must'] + direct['should']} "
            f"| {result['must'] + result['should']} | {result['skipped']} | {', '.join(failures) or '0'} |"
        )
    lines += ["", f"{count} of {len(wanted)} runs through the gateway were made."]
    reasons = [f"- {name}: {DIFFERENT[name]}" for name in seen if name in DIFFERENT]
    if reasons:
        lines += ["", "Requirements that cannot hold between two versions:", "", *reasons]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run the cases, print their failures, and return 1 if a requirement does not hold without a reason."""
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
        wrong = judge(known[case], known[Case(case.kit, case.kit, DIRECT)])
        has_failed = has_failed or bool(wrong.keys() - DIFFERENT.keys())
        for key, text in wrong.items():
            sys.stdout.write(f"kit {case.kit}, server {case.server}, {case.mode}: {key}: {text}\n")
    write_section(DOCS / "gateway.md", "conformance", render(known), title="The gateway")
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main())
