"""Reports on drift: text for terminals, JSON for programs, Markdown for pull requests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from .detection import Drift

FORMATS = ("text", "json", "markdown")


def render_report(
    drift_list: list[Drift], version: str, format_name: str, not_understood: Sequence[dict[str, Any]] = ()
) -> str:
    """Render the report on a release in one of FORMATS.

    ``not_understood`` lists the parts of the release that could not be read, each with file, line and text.
    """
    if format_name == "json":
        entries = [{**asdict(drift), "title": drift.title} for drift in drift_list]
        report = {"version": version, "drift": entries, "not_understood": list(not_understood)}
        return json.dumps(report, indent=1, ensure_ascii=False, default=str)
    places = [f"{problem['file']}:{problem['line']}: {problem['text']}" for problem in not_understood]
    render = _render_markdown if format_name == "markdown" else _render_text
    return render(drift_list, version, places)


def _render_text(drift_list: list[Drift], version: str, places: list[str]) -> str:
    if not drift_list and not places:
        return f"{version}: the contract matches the release"
    lines = [f"{version}: {_count(drift_list)} not in the contract"]
    for drift in drift_list:
        lines += ["", f"{drift.change}: {drift.title}", f"  {_describe_place(drift)}"]
        lines += [f"    {line}" if line else "" for line in drift.snippet.splitlines()]
    if places:
        lines += ["", f"not understood ({len(places)}); read these places:", *(f"  {place}" for place in places)]
    return "\n".join(lines)


def _render_markdown(drift_list: list[Drift], version: str, places: list[str]) -> str:
    if not drift_list and not places:
        return f"## Wire {version}\n\nThe contract matches the release."
    lines = [f"## Wire {version}: {_count(drift_list)} not in the contract", ""]
    if drift_list:
        lines += ["| change | title |", "| --- | --- |"]
    lines += [f"| {drift.change} | {_cell(drift.title)} |" for drift in drift_list]
    for drift in drift_list:
        language = "proto" if drift.kind.startswith("protobuf") else "yaml"
        lines += ["", f"<details><summary>{_cell(drift.title)}</summary>", "", _describe_place(drift)]
        lines += ["", f"```{language}", drift.snippet, "```", "", "</details>"]
    if places:
        lines += ["", "Not understood; read these places:", "", *(f"- {_cell(place)}" for place in places)]
    return "\n".join(lines)


def _count(drift_list: list[Drift]) -> str:
    return f"{len(drift_list)} change{'s' if len(drift_list) != 1 else ''}"


def _describe_place(drift: Drift) -> str:
    if not drift.snippet:
        return "no snippet; decide at the place"
    return f"to record it, in {drift.file or 'the file of its family'}:"


def _cell(text: str) -> str:
    for char, escaped in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "\\|")):
        text = text.replace(char, escaped)
    return text
