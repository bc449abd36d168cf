"""Changes between two contracts as text for a terminal, as JSON for programs, as Markdown for a pull request."""

from __future__ import annotations

import json
from typing import Any

from .change import LEVELS, NO_EXAMPLE, Change

FORMATS = ("text", "json", "markdown")
FEW = 3
SENTENCES = {
    "breaking": "who speaks the old contract fails",
    "risky": "who speaks the old contract may notice",
    "safe": "who speaks the old contract need not care",
}


def render_report(changes: list[Change], old: str, new: str, form: str) -> str:
    """The report in one of FORMATS."""
    if form == "json":
        counts = {level: sum(each.level == level for each in changes) for level in LEVELS}
        found = {"old": old, "new": new, "counts": counts, "changes": [_plain(each) for each in changes]}
        return json.dumps(found, indent=1, ensure_ascii=False)
    return _markdown(changes, old, new) if form == "markdown" else _text(changes, old, new)


def _plain(change: Change) -> dict[str, Any]:
    found: dict[str, Any] = {
        "level": change.level,
        "direction": change.direction,
        "where": change.where,
        "reason": change.reason,
        "operations": change.operations,
    }
    if change.example is not NO_EXAMPLE:
        found |= {"example": change.example, "example_of": change.example_of}
    return found


def _text(changes: list[Change], old: str, new: str) -> str:
    if not changes:
        return f"{old} to {new}: no change"
    lines = [f"{old} to {new}: {_counts(changes)}"]
    for level in LEVELS:
        for change in (each for each in changes if each.level == level):
            lines += ["", f"{level} {change.direction}: {change.where}: {change.reason}"]
            lines.append(f"  in {_operations(change)}")
            if change.example is not NO_EXAMPLE:
                lines.append(f"  {_example_word(change)} as {change.example_of}: {_json(change)}")
    return "\n".join(lines)


def _markdown(changes: list[Change], old: str, new: str) -> str:
    if not changes:
        return f"## Contract {old} to {new}\n\nNo change."
    lines = [f"## Contract {old} to {new}: {_counts(changes)}"]
    for level in LEVELS:
        found = [each for each in changes if each.level == level]
        if not found:
            continue
        table = ["| direction | where | what | operations | example |", "| --- | --- | --- | --- | --- |"]
        for each in found:
            example = _code(_json(each)) if each.example is not NO_EXAMPLE else ""
            cells = [each.direction, _code(each.where), _cell(each.reason), _cell(_operations(each)), example]
            table.append(f"| {' | '.join(cells)} |")
        title = f"{len(found)} {level}: {SENTENCES[level]}"
        if level == "safe":
            lines += ["", f"<details><summary>{title}</summary>", "", *table, "", "</details>"]
        else:
            lines += ["", f"### {title}", "", *table]
    return "\n".join(lines)


def _counts(changes: list[Change]) -> str:
    return ", ".join(f"{sum(each.level == level for each in changes)} {level}" for level in LEVELS)


def _operations(change: Change) -> str:
    shown, more = change.operations[:FEW], len(change.operations) - FEW
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def _example_word(change: Change) -> str:
    taken_before = (change.level == "breaking") == (change.direction == "request")
    return "for example, valid before and not now" if taken_before else "for example, valid now and not before"


def _json(change: Change) -> str:
    return json.dumps(change.example, ensure_ascii=False)


def _code(text: str) -> str:
    return f"`{_cell(text)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
