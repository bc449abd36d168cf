"""Drift as text for a terminal, as JSON for programs, as Markdown for a pull request."""

from __future__ import annotations

import json
from dataclasses import asdict

from .detection import Drift

FORMATS = ("text", "json", "markdown")


def render_report(found: list[Drift], version: str, form: str) -> str:
    """The report on a release in one of FORMATS."""
    if form == "json":
        drift = [{**asdict(each), "title": each.title} for each in found]
        return json.dumps({"version": version, "drift": drift}, indent=1, ensure_ascii=False, default=str)
    return _markdown(found, version) if form == "markdown" else _text(found, version)


def _text(found: list[Drift], version: str) -> str:
    if not found:
        return f"{version}: the contract says what the release says"
    lines = [f"{version}: {_count(found)} not in the contract"]
    for each in found:
        lines += ["", f"{each.change}: {each.title}", f"  {_where_to(each)}"]
        lines += [f"    {line}" if line else "" for line in each.snippet.splitlines()]
    return "\n".join(lines)


def _markdown(found: list[Drift], version: str) -> str:
    if not found:
        return f"## Wire {version}\n\nThe contract says what the release says."
    lines = [f"## Wire {version}: {_count(found)} not in the contract", ""]
    lines += ["| change | what |", "| --- | --- |"]
    lines += [f"| {each.change} | {_cell(each.title)} |" for each in found]
    for each in found:
        form = "proto" if each.kind.startswith("protobuf") else "yaml"
        lines += ["", f"<details><summary>{_cell(each.title)}</summary>", "", _where_to(each)]
        lines += ["", f"```{form}", each.snippet, "```", "", "</details>"]
    return "\n".join(lines)


def _count(found: list[Drift]) -> str:
    return f"{len(found)} change{'s' if len(found) > 1 else ''}"


def _where_to(each: Drift) -> str:
    if not each.snippet:
        return "no snippet: look at the place and decide"
    return f"to record it, in {each.file or 'the file of its family'}:"


def _cell(text: str) -> str:
    for char, source in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "\\|")):
        text = text.replace(char, source)
    return text
