"""Outcomes of each test in two runs of the same files, and their report."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import attrs

KINDS = {"failure": "failed", "error": "error", "skipped": "skipped"}
ORDER = ("passed", "failed", "error", "skipped")


@attrs.frozen
class Outcome:
    """Outcome of one test (passed, failed, error or skipped) and its message."""

    kind: str
    reason: str = ""


def read_outcomes(junit: Path) -> dict[str, Outcome]:
    """Return the outcome of each test in a JUnit report by name."""
    outcomes = {}
    for case in ET.parse(junit).iter("testcase"):
        outcome = Outcome("passed")
        for element in case:
            if element.tag in KINDS:
                message = element.get("message") or element.text or ""
                outcome = Outcome(KINDS[element.tag], " ".join(message.split())[:300])
        outcomes[f"{case.get('classname')}::{case.get('name')}"] = outcome
    return outcomes


def find_lost(official: Mapping[str, Outcome], tinkerwire: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """Return the tests that pass with the official SDK and not with tinkerwire."""
    absent = Outcome("absent", "the test was not run")
    passed = [name for name, outcome in official.items() if outcome.kind == "passed"]
    return {name: tinkerwire.get(name, absent) for name in passed if tinkerwire.get(name, absent).kind != "passed"}


def render_section(title: str, official: Mapping[str, Outcome], tinkerwire: Mapping[str, Outcome]) -> str:
    """Return the section of the report on one set of tests."""
    lines = [f"## {title}", "", f"| | {' | '.join(ORDER)} |", "|---|" + "---|" * len(ORDER)]
    for name, run in (("official SDK", official), ("tinkerwire", tinkerwire)):
        counts = Counter(outcome.kind for outcome in run.values())
        lines.append(f"| {name} | {' | '.join(str(counts[kind]) for kind in ORDER)} |")
    missing = find_lost(official, tinkerwire)
    gained = find_lost(tinkerwire, official)
    lines += ["", f"Pass with the official SDK and not with tinkerwire: {len(missing) or 'none'}."]
    lines += [f"- {name}: {outcome.kind}, `{outcome.reason}`" for name, outcome in sorted(missing.items())]
    lines += ["", f"Pass with tinkerwire and not with the official SDK: {len(gained) or 'none'}."]
    lines += [f"- {name}" for name in sorted(gained)]
    return "\n".join(lines)
