"""The history of the contract, replayed: cut off at an early version, it absorbs each later release from its wheel.

python -m tests.rigs.absorb.run     writes docs/absorb.md
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

from tests.rigs.absorb.decisions import DECISIONS, Decision
from tests.rigs.absorb.meaning import compare_documents, compare_messages, compare_models
from tests.rigs.absorb.truncation import truncate_contract
from tests.rigs.official.report import DOCS, write_section
from tests.rigs.official.venv import ROOT

from tinkerwire_base.conversion.versioning import parse_version
from tinkerwire_codegen.contract.bundle import load
from tinkerwire_codegen.contract.lint import check_contract
from tinkerwire_codegen.official.absorb.absorption import absorb_facts
from tinkerwire_codegen.official.absorb.descriptions import read_descriptions
from tinkerwire_codegen.official.drift.detection import find_drift
from tinkerwire_codegen.official.release.archive import Release, open_release
from tinkerwire_codegen.official.release.read import read_facts

SCHEMA = ROOT / "schema"
BUILD = ROOT / "build" / "absorb"
WHEELS = ROOT / "build" / "releases"
STARTS = {"0.18.2": 20, "0.4.1": None}
"""Versions to start from, and the greatest number of decisions that is accepted."""


@dataclass
class Replay:
    """One replay: its steps as (version, recorded, open, seconds), and the differences at the end by first version."""

    start: str
    steps: list[tuple[str, int, int, float]] = field(default_factory=list)
    differences: dict[str, str] = field(default_factory=dict)

    def decisions(self) -> list[Decision]:
        """Return the decisions that explain a difference."""
        return [item for item in DECISIONS if any(item.explains(text) for text in self.differences)]

    def unexplained(self) -> list[str]:
        """Return the differences that no decision explains."""
        return [
            f"{version}: {text}"
            for text, version in self.differences.items()
            if not any(item.explains(text) for item in DECISIONS)
        ]


def main() -> int:
    """Replay from each start and write the report; return 1 for an unexplained difference or too many decisions."""
    with ProcessPoolExecutor(len(STARTS)) as pool:
        replays = list(pool.map(replay, STARTS))
    write_section(DOCS / "absorb.md", "measured", render(replays), title="The history of the contract, replayed")
    failed = False
    for item in replays:
        limit = STARTS[item.start]
        for line in item.unexplained():
            print(f"from {item.start}: unexplained: {line}")  # noqa: T201
        print(f"from {item.start}: {len(item.steps)} releases, {len(item.decisions())} decisions")  # noqa: T201
        failed |= bool(item.unexplained()) or (limit is not None and len(item.decisions()) > limit)
    return 1 if failed else 0


def replay(start: str) -> Replay:
    """Cut the contract off at a version, absorb each later release, and compare with the contract."""
    folder = BUILD / start / "schema"
    shutil.rmtree(folder, ignore_errors=True)
    truncate_contract(SCHEMA, folder, start)
    result = Replay(start)
    versions = load(SCHEMA)["info"]["x-versions"]
    for version in versions[versions.index(start) + 1 :]:
        release = download(version)
        begin = time.monotonic()
        facts = read_facts(release)
        absorption = absorb_facts(folder, facts, read_descriptions(release), version)
        seconds = time.monotonic() - begin
        left = find_drift(folder, facts, version)
        result.steps.append((version, len(absorption.recorded), len(left), seconds))
        print(f"from {start}: {version}: {len(absorption.recorded)} recorded, {len(left)} open")  # noqa: T201
    check_contract(folder)
    for version in versions:
        lines = compare_messages(SCHEMA, folder, version)
        if parse_version(version) <= parse_version(start):
            # The versions up to the start must not change at all.
            lines = [f"before the start: {line}" for line in [*lines, *compare_documents(SCHEMA, folder, version)]]
        else:
            lines += compare_documents(SCHEMA, folder, version)
        for line in lines:
            result.differences.setdefault(line, version)
    for version, line in compare_models(SCHEMA, folder):
        result.differences.setdefault(line, version)
    return result


def download(version: str) -> Release:
    """Download the wheel of a version, unless the folder of wheels has it."""
    WHEELS.mkdir(parents=True, exist_ok=True)
    pattern = f"tinker-{version}-*.whl"
    if not list(WHEELS.glob(pattern)):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        command += ["--ignore-requires-python", "--dest", str(WHEELS), f"tinker=={version}"]
        subprocess.run(command, check=True, timeout=120)
    return open_release(str(next(WHEELS.glob(pattern))))


def render(replays: list[Replay]) -> str:
    """Render the report as Markdown."""
    lines = [
        "`make absorb-history` cuts the contract off at an early version: it drops everything later. It then",
        "absorbs each later release from its wheel, as `upstream --write` does, and compares the result with the",
        "contract: the documents and messages of every version, and the fields and marks of models. Descriptions and",
        "names that are not on the wire do not count. Each remaining difference follows from a decision of a person.",
    ]
    for item in replays:
        recorded = sum(step[1] for step in item.steps)
        seconds = max(step[3] for step in item.steps)
        lines += ["", f"## From {item.start}", ""]
        lines += [f"{len(item.steps)} releases, {recorded} changes recorded, {len(item.decisions())} decisions,"]
        lines += [f"{len(item.unexplained())} unexplained differences; at most {seconds:.1f} s a release.", ""]
        lines += ["| release | recorded | left open |", "|---|---|---|"]
        lines += [f"| {version} | {count} | {left} |" for version, count, left, _ in item.steps]
        lines += ["", "| since | decision | reason |", "|---|---|---|"]
        lines += [f"| {item.since} | {item.title} | {item.reason} |" for item in item.decisions()]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
