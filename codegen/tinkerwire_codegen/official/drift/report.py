"""Reports on drift: text for terminals, JSON for programs, Markdown for pull requests."""

from __future__ import annotations

import json
from dataclasses import asdict

from .detection import Drift

FORMATS = ("text", "json", "markdown")


def render_report(drift_list: list[Drift], version: str, format_name: str) -> str:
    """Render the report on a release in one of FORMATS."""
    if format_name == "json":
        entries = [{**asdict(drift), "title": drift.title} for drift in drift_list]
        return json.dumps({"version": version, "drift": entries}, indent=1, ensure_ascii=False, default=str)
    return _render_markdown(drift_list, version) if format_name == "markdown" else _render_text(drift_list, version)


def _render_text(drift_list: list[Drift], version: str) -> str:
    if not drift_list:
        return f"{version}: the contract matches the release"
    lines = [f"{version}: {_count(drift_list)} not in the contract"]
    for drift in drift_list:
        lines += ["", f"{drift.change}: {drift.title}", f"  {_describe_place(drift)}"]
        lines += [f"    {line}" if line else "" for line in drift.snippet.splitlines()]
    return "\n".join(lines)


def _render_markdown(drift_list: list[Drift], version: str) -> str:
    if not drift_list:
        return f"## Wire {version}\n\nThe contract matches the release."
    lines = [f"## Wire {version}: {_count(drift_list)} not in the contract", ""]
    lines += ["| change | title |", "| --- | --- |"]
    lines += [f"| {drift.change} | {_cell(drift.title)} |" for drift in drift_list]
    for drift in drift_list:
        language = "proto" if drift.kind.startswith("protobuf") else "yaml"
        lines += ["", f"<details><summary>{_cell(drift.title)}</summary>", "", _describe_place(drift)]
        lines += ["", f"```{language}", drift.snippet, "```", "", "</details>"]
    return "\n".join(lines)


def _count(drift_list: list[Drift]) -> str:
    return f"{len(drift_list)} change{'s' if len(drift_list) > 1 else ''}"


def _describe_place(drift: Drift) -> str:
    if not drift.snippet:
        return "no snippet; decide at the place"
    return f"to record it, in {drift.file or 'the file of its family'}:"


def _cell(text: str) -> str:
    for char, escaped in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "\\|")):
        text = text.replace(char, escaped)
    return text
