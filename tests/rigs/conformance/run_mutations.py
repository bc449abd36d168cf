"""Mutations of the embedded server, each of which trips exactly the requirements that are meant.

    python -m tests.rigs.conformance.run_mutations                  all; writes docs/conformance/mutations.md
    python -m tests.rigs.conformance.run_mutations seed-ignored quirk-failure-500
    python -m tests.rigs.conformance.run_mutations seed-ignored --only SMP
    python -m tests.rigs.conformance.run_mutations --report         compares the findings of earlier runs again

Every mutation changes one thing in a new process, which runs the whole kit, except for the predictions, against the
embedded server. A requirement that fails and is not meant to, or the reverse, is a failure: the exit code is 1.
Findings are kept in build/conformance, and the table has them all.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import multiprocessing
import os
import sys
import time
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

# One thread for each process: several processes run at the same time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from tests.rigs.conformance import in_process
from tests.rigs.conformance.mutation_table import render
from tests.rigs.conformance.mutations import Group, Mutation, load_mutations
from tests.rigs.conformance.mutations.patches import KEY
from tests.rigs.conformance.mutations.untripped import UNTRIPPED
from tests.rigs.official.report import DOCS, write_section
from tests.rigs.official.venv import ROOT

from tinkerwire._conformance.areas import bad_requests
from tinkerwire._conformance.catalogue import select_requirements, with_needs
from tinkerwire._conformance.client import wire_client
from tinkerwire._conformance.discovery.discover import open_server
from tinkerwire._conformance.outcome import Outcome
from tinkerwire._conformance.requirement import Requirement
from tinkerwire._conformance.runner import run_requirements
from tinkerwire._conformance.violation import ServerLost, Violation
from tinkerwire._testing.local_server import start_listener
from tinkerwire.local import EmbeddedServer, FaultInjection, Quirks

FINDINGS = ROOT / "build" / "conformance" / "mutations"
"""A JSON file for each mutation."""
LEFT_OUT = "client_versions"
"""The area of the predictions, which has a calibration of its own."""
ABSENT = frozenset({"SRV-038", "SRV-039"})
"""Optional parts that the embedded server does not have; they fail with and without a mutation."""
GAP_WAIT_S = 4.0
"""Time for which the server holds operations behind a gap: shorter than by default, since two tests wait for it."""
MAX_RUN_S = 1200.0
PREPARED_WIRES = {"0.38.0"}
"""Wire versions with many mutations."""
SEED = 1


def choose(only: Sequence[str] = ()) -> list[Requirement]:
    """Return the requirements to run."""
    return [item for item in with_needs(select_requirements(only)) if item.area != LEFT_OUT]


def run_one(mutation: Mutation, only: Sequence[str] = ()) -> dict[str, Any]:
    """Run the kit against the server with one mutation, which stays in this process; return the finding."""
    logging.disable(logging.CRITICAL)
    settings = dict(mutation.settings)
    if "quirks" in settings:
        settings["quirks"] = Quirks.parse(settings["quirks"])
    planned = settings.pop("planned", None)
    if "fault_injection" in settings:
        settings["fault_injection"] = FaultInjection.parse(settings["fault_injection"], seed=SEED)
    elif planned:
        settings["fault_injection"] = FaultInjection()
    mutation.apply()
    started = time.monotonic()
    settings = {"api_key": KEY, "seed": SEED, "gap_wait_s": GAP_WAIT_S, **settings}
    server = EmbeddedServer(wire_version=mutation.wire, **settings)
    listener = start_listener(server) if mutation.over_http else None
    in_process.use(server if listener is None else None)
    try:
        plan = (lambda: planned(settings["fault_injection"])) if planned else lambda: None
        outcomes = asyncio.run(_run_kit(listener.url if listener else in_process.URL, mutation, only, plan))
        error = ""
    except (Violation, ServerLost) as reason:
        outcomes, error = [], f"the kit does not start: {reason}"
    finally:
        if listener is not None:
            listener.close()
        server.close()
    by_status: dict[str, list[str]] = {}
    for outcome in outcomes:
        by_status.setdefault(outcome.status.value, []).append(outcome.requirement.id)
    return {
        "name": mutation.name,
        "only": list(only),
        "failed": [item for item in by_status.get("failed", []) if item not in ABSENT],
        "blocked": by_status.get("blocked", []),
        "passed": len(by_status.get("passed", [])),
        "errors": [f"{item.requirement.id}: {item.reason}" for item in outcomes if item.status.value == "error"],
        "not_run": len(by_status.get("not run", [])),
        "details": {
            item.requirement.id: f"{item.expected} | {item.received}"[:400]
            for item in outcomes
            if item.status.value == "failed"
        },
        "start": error,
        "seconds": time.monotonic() - started,
    }


async def _run_kit(url: str, mutation: Mutation, only: Sequence[str], plan: Any) -> list[Outcome]:
    kit = await open_server(url, KEY, mutation.wire)
    plan()
    outcomes = await run_requirements(kit, choose(only), max_s=MAX_RUN_S)
    await kit.close()
    return outcomes


def compare(mutation: Mutation, finding: dict[str, Any]) -> list[str]:
    """Return in which ways a finding differs from what is meant."""
    failed = set(finding["failed"])
    meant = set(mutation.trips)
    if finding["only"]:
        meant &= {item.id for item in choose(finding["only"])}
    problems = [f"{item} fails" for item in sorted(failed - meant)]
    problems += [f"{item} does not fail" for item in sorted(meant - failed)]
    problems += finding["errors"]
    if finding["not_run"]:
        problems.append(f"{finding['not_run']} requirements were not run")
    if not finding["failed"] and not finding["start"] and not mutation.unseen:
        problems.append("nothing fails")
    return problems


def prepare(wires: Iterable[str], only: Sequence[str] = ()) -> None:
    """Run the kit without a mutation, so that processes which are forked later have what it imports and compiles.

    Raises:
        RuntimeError: a requirement fails without a mutation.
    """
    made = bad_requests.generate_requests
    kept: dict[tuple[str, str, str], Any] = {}

    def generate(document: Any, method: str, path: str, count: int) -> Any:
        # They depend on the contract and a fixed seed only.
        key = (document["info"]["version"], method, path)
        if key not in kept:
            kept[key] = made(document, method, path, count)
        return kept[key]

    bad_requests.generate_requests = generate  # type: ignore[assignment]
    wire_client.Contract = cache(wire_client.Contract)  # type: ignore[assignment,misc]
    for wire in wires:
        group = Group("Without a mutation")
        group.add("none", "Nothing changes.", lambda: None, wire=wire)
        finding = run_one(group.mutations[0], only)
        if finding["failed"] or finding["errors"] or finding["start"]:
            raise RuntimeError(f"without a mutation at wire {wire}: {finding}")


@cache
def store(name: str) -> Path:
    """Return the file of the finding of a mutation."""
    FINDINGS.mkdir(parents=True, exist_ok=True)
    return FINDINGS / f"{name}.json"


def load_findings() -> dict[str, dict[str, Any]]:
    """Return the stored findings of the mutations that exist, by name."""
    return {name: json.loads(store(name).read_text()) for name in load_mutations() if store(name).exists()}


def _run_in_child(arguments: tuple[str, Sequence[str]]) -> dict[str, Any]:
    name, only = arguments
    return run_one(load_mutations()[name], only)


def run_all(names: Iterable[str], only: Sequence[str], jobs: int) -> Iterable[dict[str, Any]]:
    """Run mutations, each in a process of its own, and yield their findings as they come."""
    names = list(names)
    prepare(sorted({load_mutations()[name].wire for name in names} & PREPARED_WIRES), only)
    with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=1) as pool:
        yield from pool.imap_unordered(_run_in_child, [(name, only) for name in names], chunksize=1)


def main() -> int:
    """Run mutations, print a line for each, and return 1 if one of them trips something else than is meant."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="names of mutations; by default all")
    parser.add_argument("--only", action="append", default=[], help="an area or a requirement, with what it needs")
    parser.add_argument("--jobs", type=int, default=2, help="processes that run at the same time")
    parser.add_argument("--new", action="store_true", help="only mutations without a stored finding")
    parser.add_argument("--report", action="store_true", help="run nothing; compare the stored findings again")
    options = parser.parse_args()
    mutations = load_mutations()
    unknown = [name for name in options.names if name not in mutations]
    if unknown:
        parser.error(f"no mutation is called {', '.join(unknown)}")
    names = options.names or list(mutations)
    if options.new:
        names = [name for name in names if not store(name).exists()]
    is_wrong = False
    findings: Iterable[dict[str, Any]]
    if options.report:
        stored = load_findings()
        findings = [stored[name] for name in names if name in stored]
    else:
        findings = run_all(names, options.only, options.jobs)
    for finding in findings:
        if not options.report and not options.only:
            store(finding["name"]).write_text(json.dumps(finding, indent=1))
        problems = compare(mutations[finding["name"]], finding)
        is_wrong = is_wrong or bool(problems)
        mark = f"WRONG {'; '.join(problems)}" if problems else "right"
        tripped = " ".join(finding["failed"]) or finding["start"]
        sys.stdout.write(f"{finding['name']:36} {finding['seconds']:5.0f} s  {mark} ({tripped})\n")
        sys.stdout.flush()
    if not options.only:
        page = DOCS / "conformance" / "mutations.md"
        write_section(page, "mutations", render(load_findings(), compare, choose(), UNTRIPPED), title="Mutations")
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
