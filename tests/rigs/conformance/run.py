"""The embedded server under the conformance kit: at 14 wire versions, and with all flags of client/config.

    python -m tests.rigs.conformance.run                    all runs; writes docs/conformance/embedded.md
    python -m tests.rigs.conformance.run 0.38.0 0.16.1      some wire versions

Each run starts a server that listens on a port, in a process of its own, and tests all musts and shoulds. The exit code
is 1 if one of them fails, is blocked or remains unknown that the options of the server are not meant to break, or if
one holds that they are meant to break. Findings are kept in build/conformance.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
from tests.rigs.official.report import DOCS, write_section
from tests.rigs.official.venv import ROOT

from tinkerwire._conformance.interruption import Interruption
from tinkerwire._conformance.outcome import Status
from tinkerwire._conformance.requirement import Level
from tinkerwire._conformance.run import RunObserver, RunSettings, perform_run
from tinkerwire._server.http.openapi import load_contract
from tinkerwire._testing.local_server import start_listener
from tinkerwire.local import EmbeddedServer

WIRES = (
    *("0.3.0", "0.4.1", "0.6.0", "0.7.0", "0.9.0", "0.14.0", "0.16.1"),
    *("0.18.2", "0.22.7", "0.24.1", "0.25.0", "0.30.4", "0.36.0", "0.38.0"),
)
FINDINGS = ROOT / "build" / "conformance" / "embedded"
"""A JSON file for each server."""
NEEDS_TORCH = "custom_loss_server_side"
"""A flag that the server refuses without torch, which the development environment does not have."""
REFUSED = frozenset({NEEDS_TORCH, "enable_grpc_retrieve_future", "grpc_target"})
LIMITS = {"sample_max_concurrent_requests": 64, "fwdbwd_max_chunk_len": 16, "fwdbwd_max_chunk_bytes_count": 100_000}
"""Small values of limits that are integers; the other ones keep their defaults."""
BROKEN_BY_STRICT_SEQUENCE = frozenset({"ORD-022", "ORD-023"})
"""A rejected request leaves a gap, and the server rejects all operations after it, as some servers do."""
KEY = "tml-conformance"
OK = (Status.PASSED, Status.SKIPPED)


@attrs.frozen
class Case:
    """One server.

    Args:
        wire: its wire version.
        options: its options, as a text for the table.
        settings: its arguments.
        broken: the requirements that its options break, and those that need them.
    """

    wire: str
    options: str
    settings: Mapping[str, Any]
    broken: frozenset[str] = frozenset()


def list_cases() -> Iterator[Case]:
    """Yield all servers."""
    for wire in WIRES:
        yield Case(wire, "", {})
    for wire in WIRES:
        flags = changed_flags(wire)
        if flags:
            yield Case(wire, "each flag changed", {"client_config": flags})
    for wire in ("0.16.1", "0.38.0"):
        yield Case(wire, "--long-poll 1", {"long_poll_s": 1.0})
        strict = {"strict_sequence": True, "long_poll_s": 1.0}
        yield Case(wire, "--strict-sequence --long-poll 1", strict, BROKEN_BY_STRICT_SEQUENCE)


def changed_flags(wire: str) -> dict[str, Any]:
    """Return a value other than the default for each flag of a wire version: booleans inverted, limits small."""
    schemas = load_contract(wire)["components"]["schemas"]
    flags: dict[str, Any] = {}
    for model in ("ClientConfigResponse", "ClientDynamicConfigResponse"):
        for name, schema in schemas.get(model, {}).get("properties", {}).items():
            if name in REFUSED:
                continue
            if schema.get("type") == "boolean":
                flags[name] = not schema["default"]
            elif name in LIMITS:
                flags[name] = LIMITS[name]
    return flags


def run_case(case: Case) -> dict[str, Any]:
    """Run the kit against one server, and return the finding."""
    settings = {"seed": 1, "api_key": KEY, **case.settings}
    server = EmbeddedServer(wire_version=case.wire, **settings)
    listener = start_listener(server)
    try:
        return {"wire": case.wire, "options": case.options, **examine(listener.url, case.wire)}
    finally:
        listener.close()
        server.close()


def examine(url: str, wire: str) -> dict[str, Any]:
    """Test all musts and shoulds of a wire version at a server; return how many hold, and those that do not."""
    wanted = RunSettings(url=url, api_key=KEY, wire=wire, level=Level.SHOULD)
    report = asyncio.run(perform_run(wanted, RunObserver(), Interruption()))
    counts = Counter((item.requirement.level.value, item.status.value) for item in report.outcomes)
    return {
        "must": counts["must", "passed"],
        "should": counts["should", "passed"],
        "skipped": counts["must", "skipped"] + counts["should", "skipped"],
        "seconds": report.seconds,
        "wrong": {
            item.requirement.id: f"{item.status.value}: {item.expected} | {item.received} {item.reason}"
            for item in report.outcomes
            if item.status not in OK
        },
    }


def store(found: dict[str, Any]) -> None:
    """Keep the finding of a server."""
    FINDINGS.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"\W+", "-", f"{found['wire']} {found['options']}")
    (FINDINGS / f"{name}.json").write_text(json.dumps(found, indent=1))


def load_findings() -> dict[str, dict[str, Any]]:
    """Return the stored findings by wire version and options."""
    stored = [json.loads(file.read_text()) for file in sorted(FINDINGS.glob("*.json"))]
    return {f"{found['wire']} {found['options']}": found for found in stored}


def render(findings: Mapping[str, dict[str, Any]]) -> str:
    """Return the table."""
    cases = list(list_cases())
    count = sum(f"{case.wire} {case.options}" in findings for case in cases)
    lines = [
        "Made by `make conformance`: the kit against the embedded server at each wire version, over HTTP, with the",
        "default options, with another value for each flag of `client/config`, and with options that change polls",
        f"and order. `{NEEDS_TORCH}` needs torch and keeps its default; gRPC does not exist. `--strict-sequence`",
        f"emulates servers that break {' and '.join(sorted(BROKEN_BY_STRICT_SEQUENCE))}.",
        "Seconds depend on the machine.",
        f"{count} of {len(cases)} servers were tested.",
        "",
        "| wire | options | musts that hold | shoulds that hold | do not apply | neither | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for case in cases:
        found = findings.get(f"{case.wire} {case.options}")
        if found:
            wrong = ", ".join(found["wrong"]) or "0"
            lines.append(
                f"| {case.wire} | {case.options} | {found['must']} | {found['should']} | {found['skipped']} | {wrong} "
                f"| {found['seconds']:.0f} |"
            )
    return "\n".join(lines)


def main() -> int:
    """Run the cases, print a line for each, and return 1 if a must or a should does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wires", nargs="*", metavar="WIRE", help="wire versions; by default all")
    parser.add_argument("--jobs", type=int, default=2, help="servers that run at the same time")
    options = parser.parse_args()
    cases = [case for case in list_cases() if not options.wires or case.wire in options.wires]
    is_wrong = False
    broken = {(case.wire, case.options): case.broken for case in cases}
    with multiprocessing.get_context("fork").Pool(options.jobs, maxtasksperchild=1) as pool:
        for found in pool.imap_unordered(run_case, cases, chunksize=1):
            store(found)
            is_wrong = is_wrong or found["wrong"].keys() != broken[found["wire"], found["options"]]
            sys.stdout.write(
                f"{found['wire']:7} {found['options']:32} {found['seconds']:5.0f} s {found['must']} musts, "
            )
            sys.stdout.write(f"{found['should']} shoulds hold; {found['wrong'] or 'nothing fails'}\n")
            sys.stdout.flush()
    write_section(
        DOCS / "conformance" / "embedded.md", "embedded", render(load_findings()), title="The embedded server"
    )
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
