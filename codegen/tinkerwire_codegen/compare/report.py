"""Reports on the changes between two contracts: text for terminals, JSON for programs, Markdown for pull requests."""

from __future__ import annotations

import json
from typing import Any

from .change import LEVELS, NO_EXAMPLE, Change

FORMATS = ("text", "json", "markdown")
SHOWN_OPERATIONS = 3
SENTENCES = {
    "breaking": "clients of the old contract fail",
    "risky": "clients of the old contract may notice",
    "safe": "clients of the old contract are not affected",
}


def render_report(changes: list[Change], old: str, new: str, format_name: str) -> str:
    """Render the report in one of FORMATS."""
    if format_name == "json":
        counts = {level: sum(change.level == level for change in changes) for level in LEVELS}
        report = {"old": old, "new": new, "counts": counts, "changes": [_to_json(change) for change in changes]}
        return json.dumps(report, indent=1, ensure_ascii=False)
    return _render_markdown(changes, old, new) if format_name == "markdown" else _render_text(changes, old, new)


def _to_json(change: Change) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "level": change.level,
        "direction": change.direction,
        "where": change.where,
        "reason": change.reason,
        "operations": change.operations,
    }
    if change.example is not NO_EXAMPLE:
        fields |= {"example": change.example, "example_of": change.example_of}
    return fields


def _render_text(changes: list[Change], old: str, new: str) -> str:
    if not changes:
        return f"{old} to {new}: no change"
    lines = [f"{old} to {new}: {_summarize(changes)}"]
    for level in LEVELS:
        for change in (change for change in changes if change.level == level):
            lines += ["", f"{level} {change.direction}: {change.where}: {change.reason}"]
            lines.append(f"  in {_list_operations(change)}")
            if change.example is not NO_EXAMPLE:
                lines.append(f"  {_introduce_example(change)} as {change.example_of}: {_example_json(change)}")
    return "\n".join(lines)


def _render_markdown(changes: list[Change], old: str, new: str) -> str:
    if not changes:
        return f"## Contract {old} to {new}\n\nNo change."
    lines = [f"## Contract {old} to {new}: {_summarize(changes)}"]
    for level in LEVELS:
        selected = [change for change in changes if change.level == level]
        if not selected:
            continue
        table = ["| direction | where | what | operations | example |", "| --- | --- | --- | --- | --- |"]
        for change in selected:
            example = _code(_example_json(change)) if change.example is not NO_EXAMPLE else ""
            cells = [
                change.direction,
                _code(change.where),
                _cell(change.reason),
                _cell(_list_operations(change)),
                example,
            ]
            table.append(f"| {' | '.join(cells)} |")
        title = f"{len(selected)} {level}: {SENTENCES[level]}"
        if level == "safe":
            lines += ["", f"<details><summary>{title}</summary>", "", *table, "", "</details>"]
        else:
            lines += ["", f"### {title}", "", *table]
    return "\n".join(lines)


def _summarize(changes: list[Change]) -> str:
    return ", ".join(f"{sum(change.level == level for change in changes)} {level}" for level in LEVELS)


def _list_operations(change: Change) -> str:
    shown, more = change.operations[:SHOWN_OPERATIONS], len(change.operations) - SHOWN_OPERATIONS
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def _introduce_example(change: Change) -> str:
    taken_before = (change.level == "breaking") == (change.direction == "request")
    return "for example, valid before and not now" if taken_before else "for example, valid now and not before"


def _example_json(change: Change) -> str:
    return json.dumps(change.example, ensure_ascii=False)


def _code(text: str) -> str:
    return f"`{_cell(text)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
