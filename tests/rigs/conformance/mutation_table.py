"""The tables of mutations and requirements as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.rigs.conformance.mutations import Mutation, load_groups, load_mutations

from tinkerwire._conformance.requirement import Requirement

Compare = Callable[[Mutation, dict[str, Any]], list[str]]


def render(
    findings: Mapping[str, dict[str, Any]],
    compare: Compare,
    requirements: Sequence[Requirement],
    untripped: Mapping[str, str],
) -> str:
    """Return the section: the table of mutations, and the requirements that none of them trips.

    Args:
        findings: the findings of full runs by mutation.
        compare: returns in which ways a finding differs from what is meant.
        requirements: the requirements of a full run.
        untripped: why a requirement is tripped by no mutation, by id.
    """
    mutations = load_mutations()
    wrong = [name for name, found in findings.items() if compare(mutations[name], found)]
    tripped = {item for found in findings.values() for item in found["failed"]}
    counts = (
        f"{len(findings)} of {len(mutations)} mutations ran; {len(findings) - len(wrong)} trip exactly what is meant"
    )
    lines = [
        "Made by `make conformance-mutations`: each row is the embedded server with one change, in a process of its",
        "own, and a whole run of the kit with musts, shoulds and mays, without the area `client_versions`. The",
        "requirements are those that failed; requirements that need a failed one are blocked, and not listed. Requests",
        "go to the server in the same process; where the wire has `HTTP`, they go over sockets.",
        "",
        f"{counts}, and {len(wrong)} do not (marked).",
        f"{len(tripped)} of {len(requirements)} requirements failed in at least one run.",
        "",
    ]
    for group in load_groups():
        ran = [mutation for mutation in group.mutations if mutation.name in findings]
        if not ran:
            continue
        lines += [f"## {group.title}", "", "| mutation | change | wire | requirements that fail |", "|---|---|---|---|"]
        for mutation in ran:
            found = findings[mutation.name]
            wire = f"{mutation.wire}, HTTP" if mutation.over_http else mutation.wire
            lines.append(f"| {mutation.name} | {mutation.change} | {wire} | {_describe(mutation, found, compare)} |")
        lines.append("")
    return "\n".join([*lines, *_render_untripped(requirements, tripped, untripped)])


def _describe(mutation: Mutation, found: Mapping[str, Any], compare: Compare) -> str:
    text = ", ".join(found["failed"]) or found["start"]
    text = text or f"none: {mutation.unseen}"
    problems = compare(mutation, dict(found))
    return f"{text} **(not as meant: {'; '.join(problems)})**" if problems else text


def _render_untripped(requirements: Sequence[Requirement], tripped: set[str], reasons: Mapping[str, str]) -> list[str]:
    missing = [requirement for requirement in requirements if requirement.id not in tripped]
    if not missing:
        return []
    lines = ["## Requirements that no run above tripped", "", "| requirement | sentence | reason |", "|---|---|---|"]
    return lines + [
        f"| {item.id} | {item.sentence} | {reasons.get(item.id, 'no run yet of a mutation that breaks it')} |"
        for item in missing
    ]
