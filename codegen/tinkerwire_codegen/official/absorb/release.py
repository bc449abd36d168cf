"""``upstream X --write``: a release absorbed into a contract, with the generated code and the changelog."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from tinkerwire_base.conversion.versioning import project

from ...contract.bundle import load
from ...contract.evidence import load_evidence, write_evidence
from ...contract.lint import check_contract
from ...generate.package import generate
from ..comparison import Difference
from ..drift.behaviour import FILE as BEHAVIOUR_FILE
from ..drift.behaviour import compare_behaviour, complete_behaviour, has_record, read_record, record_behaviour
from ..evidence import add_release
from ..release.archive import Release
from .absorption import Absorption, absorb_facts
from .decisions import list_decisions
from .descriptions import read_descriptions

Json = dict[str, Any]

HEADING = "### Added"
RELEASED = re.compile(r"## .*\(\d{4}-\d\d-\d\d\)")
"""Heading of a section of the changelog that a release has closed."""
UNRELEASED = "## Unreleased"


def write_release(schema: Path, out: Path, changelog: Path | None, release: Release, facts: Json, version: str) -> str:
    """Absorb a release into the contract in ``schema``, generate ``out``, and write a line into ``changelog``.

    A contract with errors is not written.

    Returns:
        The report: the changes, and a list of decisions for a person.

    Raises:
        ValueError: the contract describes a later version already, or would have errors; or nothing is known of a file
            of the release, so that all that the file defines would be recorded as removed.
    """
    unread = facts.get("unread_files")
    if unread:
        raise ValueError(
            f"--write: cannot read {', '.join(unread)}, and would record as removed what is there; "
            "omit --write, and record the differences by hand"
        )
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / "schema"
        shutil.copytree(schema, copy)
        absorption = absorb_facts(copy, facts, read_descriptions(release), version)
        check_contract(copy)
        _record_evidence(copy, release, facts, version)
        for file in sorted(copy.iterdir()):
            original = schema / file.name
            if file.is_file() and (not original.exists() or file.read_bytes() != original.read_bytes()):
                shutil.copyfile(file, original)
    changed = []
    if has_record(schema):
        recorded = read_record(schema, version)
        behaviour = complete_behaviour(recorded, project(load(schema), version), facts)
        changed = compare_behaviour(recorded, behaviour)
        record_behaviour(schema, version, behaviour)
    generate(schema, out)
    if changelog and changelog.exists() and absorption.recorded:
        text = changelog.read_text(encoding="utf-8")
        changelog.write_text(add_entry(text, _render_entry(absorption)), encoding="utf-8", newline="\n")
    report = _render_report(absorption, schema)
    # The record is complete; a person reads it, because models and handlers do not follow from it.
    return "\n".join([report, *(f"- recorded in {BEHAVIOUR_FILE}: {difference}" for difference in changed)])


def _record_evidence(schema: Path, release: Release, facts: Json, version: str) -> None:
    """Add what the release shows to the evidence of the contract, if it has any."""
    evidence = load_evidence(schema)
    if evidence is not None:
        add_release(evidence, load(schema), version, release, facts)
        write_evidence(schema, evidence)


def add_entry(text: str, entry: str) -> str:
    """Add an entry under "Added" of the newest section of a changelog; an entry for the same version is replaced.

    A section whose heading has a date is closed: the entry goes to a new one above it.
    """
    start = entry.partition(",")[0]
    lines = [line for line in text.splitlines() if not line.startswith(f"{start},")]
    section = next((index for index, line in enumerate(lines) if line.startswith("## ")), len(lines))
    if section < len(lines) and RELEASED.match(lines[section]):
        lines[section:section] = [UNRELEASED, ""]
    end = next((i for i in range(section + 1, len(lines)) if lines[i].startswith("## ")), len(lines))
    heading = next((i for i in range(section, end) if lines[i] == HEADING), -1)
    if heading < 0:
        lines[section + 1 : section + 1] = ["", HEADING, "", entry]
    else:
        last = heading + 1
        while last < end and not lines[last].startswith("#"):
            last += 1
        while not lines[last - 1].strip() and last > heading + 2:
            last -= 1
        lines.insert(last, entry)
    return "\n".join(lines) + "\n"


def _render_entry(absorption: Absorption) -> str:
    return f"- `schema/`: wire version {absorption.version}, {_summarize(absorption.recorded)}."


def _summarize(differences: list[Difference]) -> str:
    """Count differences by kind: 2 new types, 1 removed field and 3 other changes."""
    counts: Counter[str] = Counter()
    for difference in differences:
        kind = "type" if difference.where == "types" else difference.kind
        if difference.ours is None:
            counts[f"new {kind}"] += 1
        elif difference.theirs is None:
            counts[f"removed {kind}"] += 1
        else:
            counts["changed element"] += 1
    parts = [f"{count} {name}{'s' if count > 1 else ''}" for name, count in sorted(counts.items())]
    return f"with {', '.join(parts[:-1])}{' and ' if len(parts) > 1 else ''}{parts[-1]}" if parts else "without changes"


def _render_report(absorption: Absorption, schema: Path) -> str:
    if not absorption.recorded and not absorption.open:
        return f"{absorption.version}: the contract matches the release"
    lines = [f"{absorption.version}: recorded in {schema} {_summarize(absorption.recorded)}"]
    decisions = list_decisions(absorption, schema)
    lines += ["", f"to decide ({len(decisions)}):"] if decisions else ["", "nothing to decide"]
    return "\n".join([*lines, *(f"- {decision}" for decision in decisions)])
