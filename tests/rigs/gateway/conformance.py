"""The conformance kit through the gateway, compared with the kit directly at the server of its own version.

    python -m tests.rigs.gateway.conformance                     all cases; writes docs/gateway.md
    python -m tests.rigs.gateway.conformance 0.25.0:0.38.0       kit at 0.25.0, server of 0.38.0; printed only

Each case is run twice: the gateway discovers what the server supports, and it gets the server's version. The direct run
is that of the kit's version at the embedded server of that version. Exit code 1 if a requirement that holds in the
direct run does not hold through the gateway, unless :data:`DIFFERENT` has the reason.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tests.rigs.conformance.run import examine
from tests.rigs.gateway.parties import run_gateway, run_server
from tests.rigs.official.report import DOCS, write_section

PAIRS = (
    *(("0.16.1", "0.16.1"), ("0.25.0", "0.25.0"), ("0.38.0", "0.38.0")),
    *(("0.16.1", "0.38.0"), ("0.25.0", "0.16.1"), ("0.38.0", "0.25.0")),
)
"""Wire versions of the kit and of the server."""
DIFFERENT: Mapping[str, str] = {}
"""Requirements that cannot hold between versions, each with the reason."""


class Case(NamedTuple):
    """One run of the kit."""

    kit: str
    server: str
    mode: str
    """``direct``, ``discovered`` or ``--to-wire``."""


def run_case(case: Case) -> tuple[Case, dict[str, Any]]:
    """Run the kit against a new server, through a new gateway unless the case is direct."""
    with run_server(case.server) as server:
        if case.mode == "direct":
            return case, examine(server.url, case.kit)
        options = ("--to-wire", case.server) if case.mode == "--to-wire" else ()
        with run_gateway(server.url, *options) as url:
            return case, examine(url, case.kit)


def list_cases(pairs: Sequence[tuple[str, str]]) -> list[Case]:
    """Return the direct runs of the kit's versions, and the runs through the gateway."""
    direct = [Case(kit, kit, "direct") for kit in dict.fromkeys(kit for kit, _ in pairs)]
    return direct + [Case(*pair, mode) for pair in pairs for mode in ("discovered", "--to-wire")]


def judge(through: Mapping[str, Any], direct: Mapping[str, Any]) -> dict[str, str]:
    """Return the requirements that hold in the direct run only."""
    return {name: text for name, text in through["wrong"].items() if name not in direct["wrong"]}


def render(found: Mapping[Case, Mapping[str, Any]]) -> str:
    """Return the section of the report."""
    lines = [
        "## The conformance kit",
        "",
        "Made by `make gateway-conformance`: the musts and shoulds of [Conformance](conformance.md) at the wire "
        "version of the kit, through the gateway to the embedded server of another or the same version. The gateway "
        "discovers what the server supports, or gets its version by --to-wire. Additional failures are requirements "
        "that hold for the kit directly at the embedded server of its own version, and fail through the gateway.",
        "",
        "| Kit | Server | Found by | Hold directly | Through the gateway | Do not apply | Additional failures |",
        "|---|---|---|---:|---:|---:|---|",
    ]
    for case, result in found.items():
        if case.mode == "direct":
            continue
        direct = found[Case(case.kit, case.kit, "direct")]
        failures = ", ".join(judge(result, direct)) or "0"
        lines.append(
            f"| {case.kit} | {case.server} | {case.mode} | {direct['must'] + direct['should']} "
            f"| {result['must'] + result['should']} | {result['skipped']} | {failures} |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run the cases, print their failures, and return 1 if a requirement does not hold without a reason."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="*", metavar="KIT:SERVER", help="wire versions; printed only")
    parser.add_argument("--jobs", type=int, default=2, help="runs at the same time")
    options = parser.parse_args()
    chosen = [tuple(pair.split(":")) for pair in options.pairs] or PAIRS
    cases = list_cases([(kit, server) for kit, server in chosen])
    found: dict[Case, dict[str, Any]] = {}
    has_failed = False
    with multiprocessing.get_context("spawn").Pool(options.jobs, maxtasksperchild=1) as pool:
        for case, result in pool.imap(run_case, cases, chunksize=1):
            found[case] = result
            wrong = judge(result, found[Case(case.kit, case.kit, "direct")])
            has_failed = has_failed or bool(wrong.keys() - DIFFERENT.keys())
            held = result["must"] + result["should"]
            name = f"kit {case.kit}, server {case.server}, {case.mode}"
            sys.stdout.write(f"{name}: {held} hold, {len(wrong)} more fail\n")
            sys.stdout.write("".join(f"  {key}: {text}\n" for key, text in wrong.items()))
            sys.stdout.flush()
    if not options.pairs:
        write_section(DOCS / "gateway.md", "conformance", render(found), title="The gateway")
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main())
