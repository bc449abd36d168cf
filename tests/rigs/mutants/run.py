"""Mutation testing of the packages that decide: each small change of the code must fail one of the package's own tests.

python -m tests.rigs.mutants.run [PACKAGE ...]     writes the section "measured" of docs/mutants.md

Environment variables: MUTANTS_COUNT (mutants drawn per package, 40), MUTANTS_ALL=1 (all instead), MUTANTS_SEED (1),
MUTANTS_SECONDS (time limit per package, 900).
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
import time
from collections import Counter
from pathlib import Path

import attrs
from tests.rigs.mutants.equivalents import (
    changes_prose_alone,
    read_equivalents,
    read_function,
)
from tests.rigs.mutants.packages import PACKAGES, Package
from tests.rigs.mutants.workspace import Workspace
from tests.rigs.official.report import DOCS, write_section
from tests.rigs.official.venv import ROOT, ensure_venv

GATE = 0.9
"""Least share of mutants that a package's own tests kill."""
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
RESULTS = ROOT / "build" / "mutants" / "results.json"
"""Rows of all packages, so that a run of one package keeps the rows of the others."""


@attrs.frozen
class Row:
    """Result of one package."""

    package: str
    total: int
    """Mutants of the package, without equivalent ones and changes of prose."""
    equivalent: int
    run: int
    killed: int
    timeouts: int
    survived: int
    seconds: float
    seed: int
    version: str
    drawn: int
    """Mutants that were drawn; fewer ran if the time limit ended the run."""

    @property
    def rate(self) -> float:
        """Share of the mutants that a test noticed; a mutant that hangs is noticed."""
        return (self.killed + self.timeouts) / self.run


def measure_package(package: Package, python: Path, version: str) -> Row:
    """Run mutants of a package and print those that survive."""
    start = time.monotonic()
    workspace = Workspace(package, python)
    diffs = workspace.list_mutants()
    equivalents = read_equivalents()
    candidates, equivalent = [], 0
    for name, diff in diffs.items():
        if any(entry.matches(name, diff) for entry in equivalents):
            equivalent += 1
        elif not changes_prose_alone(diff):
            candidates.append(name)
    seed = int(os.environ.get("MUTANTS_SEED", "1"))
    if os.environ.get("MUTANTS_ALL"):
        drawn = candidates
    else:
        count = min(int(os.environ.get("MUTANTS_COUNT", "40")), len(candidates))
        drawn = random.Random(f"{seed} {package.name}").sample(candidates, count)
    statuses = workspace.run(drawn, float(os.environ.get("MUTANTS_SECONDS", "900")))
    for name, status in statuses.items():
        if status in {"survived", "no tests"}:
            sys.stdout.write(f"\n{status}: {read_function(name)}\n{diffs[name]}\n")
    number = Counter(statuses.values())
    row = Row(
        package=package.name,
        total=len(candidates),
        equivalent=equivalent,
        run=len(statuses),
        killed=number["killed"],
        timeouts=number["timeout"],
        survived=number["survived"] + number["no tests"],
        seconds=time.monotonic() - start,
        seed=seed,
        version=version,
        drawn=len(drawn),
    )
    sys.stdout.write(f"\n{package.name}: {row.rate:.0%} of {row.run} mutants killed, {row.survived} survived\n")
    return row


def write_report(rows: list[Row]) -> None:
    """Write the table of all packages."""
    lines = [
        "| package | mutants | equivalent | drawn | run | killed | timeouts | survived | % | seconds | seed | mutmut |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|",
        *(
            f"| {row.package} | {row.total} | {row.equivalent} | {row.drawn} | {row.run} | {row.killed} | "
            f"{row.timeouts} | {row.survived} | {100 * row.rate:.0f} | {row.seconds:.0f} | {row.seed} | {row.version} |"
            for row in rows
        ),
    ]
    write_section(DOCS / "mutants.md", "measured", "\n".join(lines), title="Mutants")


def find_stale_equivalents(packages: list[Package], python: Path) -> list[str]:
    """Return the entries of the list of equivalent mutants that match no mutant of the packages."""
    diffs = {name: diff for package in packages for name, diff in Workspace(package, python).list_mutants().items()}
    modules = {name.partition(".x")[0] for name in diffs}
    return [
        f"{entry.function}: {entry.before}"
        for entry in read_equivalents()
        if any(entry.function.startswith(f"{module}.") for module in modules)
        and not any(entry.matches(name, diff) for name, diff in diffs.items())
    ]


def main(names: list[str]) -> int:
    """Test packages, write the report, and return 1 if one misses the gate."""
    unknown = set(names) - {package.name for package in PACKAGES}
    if unknown:
        raise SystemExit(f"mutants: unknown packages {', '.join(sorted(unknown))}")
    python = ensure_venv("mutants", REQUIREMENTS)
    packages = [package for package in PACKAGES if not names or package.name in names]
    stale = find_stale_equivalents(packages, python)
    if stale:
        raise SystemExit("mutants: equivalents.yaml names mutants that do not exist:\n" + "\n".join(stale))
    version = re.findall(r"(?m)^mutmut==(.+)$", REQUIREMENTS.read_text())[0]
    rows = {row["package"]: Row(**row) for row in (json.loads(RESULTS.read_text()) if RESULTS.exists() else [])}
    for package in packages:
        rows[package.name] = measure_package(package, python, version)
        RESULTS.write_text(json.dumps([attrs.asdict(row) for row in rows.values()], indent=1))
        write_report([rows[item.name] for item in PACKAGES if item.name in rows])
    return int(any(rows[package.name].rate < GATE for package in packages))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
