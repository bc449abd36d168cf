"""A JSON report of the conformance kit as a page of the documentation, in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tinkerwire._conformance.report.run_report import join_ids

STATUSES = ("passed", "failed", "blocked", "skipped", "not run", "error")
MAX_LINE = 2000
"""Characters of a request or a response in the page; the JSON report has the rest."""


def render_page(title: str, command: str, report: dict[str, Any]) -> str:
    """Return the page of a server: counts by area, predictions, and each failure with its exchange.

    Args:
        title: name and version of the server.
        command: the command that made the report.
        report: the JSON report, with the load of the machine.
    """
    requirements: list[dict[str, Any]] = report["requirements"]
    failed = [item for item in requirements if item["status"] in ("failed", "error")]
    parts = [
        [f"# Conformance of {title}"],
        [
            f"Made by `{command}`, which runs `tinkerwire conformance URL` on the server with a tiny random model on a "
            "CPU; `make conformance-third-party` does so for all servers. "
            "[Test a server for conformance](../conformance.md) explains levels and outcomes."
        ],
        [f"**{report['verdict']}.**"],
        [
            f"All results come from one run, which took {report['seconds']:.0f} s, at a load average of "
            f"{report['load']:.1f} on {report['cores']} cores. The wire version {report['wire']} was found out:"
        ],
        [f"- {_escape(line)}" for line in report["wire_evidence"]],
        ["## Areas"],
        _render_areas(report),
        ["## Clients"],
        _render_predictions(report["predictions"] or []),
        ["## Failures"],
        ["No must or should failed."] if not any(item["level"] != "may" for item in failed) else [],
        *_render_failures(item for item in failed if item["level"] != "may" or item["status"] == "error"),
        *_render_list("Optional parts that are absent", (item for item in failed if item["level"] == "may")),
        *_render_groups("Blocked", requirements, "blocked"),
        *_render_groups("Skipped", requirements, "skipped"),
        *_render_groups("Not run", requirements, "not run"),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _render_areas(report: dict[str, Any]) -> list[str]:
    shown = [name for name in STATUSES if report["counts"][name] or name in ("passed", "failed")]
    lines = [f"| Area | {' | '.join(shown)} |", f"|---|{'---:|' * len(shown)}"]
    rows = [*((area["name"], area["counts"]) for area in report["areas"]), ("all", report["counts"])]
    return lines + [f"| {name} | {' | '.join(str(counts[status]) for status in shown)} |" for name, counts in rows]


def _render_predictions(predictions: Sequence[dict[str, Any]]) -> list[str]:
    if not predictions:
        return ["The run made no predictions."]
    lines = ["| Client | Prediction | What does not work | Requirements |", "|---|---|---|---|"]
    for item in predictions:
        broken = dict.fromkeys(f"{part['feature']}: {_shorten(part['words'], 160)}" for part in item["broken"])
        reasons = join_ids(list(dict.fromkeys(item["reasons"])))
        lines.append(f"| {item['client']} | {item['verdict']} | {_escape('; '.join(broken))} | {reasons} |")
    return lines


def _render_failures(items: Iterable[dict[str, Any]]) -> Iterator[list[str]]:
    for item in items:
        yield [f"### {item['id']} ({item['level']})"]
        yield [_escape(item["sentence"])]
        facts = [
            *((("Expected", item["expected"]), ("Received", item["received"])) if item["expected"] else ()),
            *((("Reason", item["reason"]),) if item["reason"] else ()),
            *((f"Part: {part['name']}", part["reason"]) for part in item["parts"]),
            ("Remedy", item["remedy"]),
            *(("Breaks", breakage["text"]) for breakage in item["breaks"]),
        ]
        yield [f"- {name}: {_escape(_shorten(text, 600))}" for name, text in facts]
        exchanges = [exchange for exchange in (item["submission"], item["exchange"]) if exchange]
        if exchanges:
            yield ["```text", *(line for exchange in exchanges for line in _render_exchange(exchange)), "```"]


def _render_exchange(exchange: dict[str, Any]) -> list[str]:
    response = exchange["response"]
    if response is None:
        answer = exchange["error"]
    else:
        body = response["body"] if response["body"] is not None else "(binary)"
        answer = f"HTTP {response['status']} {_shorten(body, 600)}".strip()
    return [_shorten(exchange["curl"], MAX_LINE), *(f"# {line}" for line in answer.splitlines())]


def _render_list(title: str, items: Iterable[dict[str, Any]]) -> Iterator[list[str]]:
    lines = [f"- {item['id']}: {_escape(item['sentence'])}" for item in items]
    if lines:
        yield [f"## {title}"]
        yield lines


def _render_groups(title: str, requirements: Sequence[dict[str, Any]], status: str) -> Iterator[list[str]]:
    """Yield the ids of requirements with a status, by reason."""
    groups: dict[str, list[str]] = {}
    for item in requirements:
        if item["status"] == status:
            groups.setdefault(item["reason"] or "", []).append(item["id"])
    if groups:
        yield [f"## {title}"]
        yield [f"- {_escape(_shorten(reason, 300))}: {join_ids(ids)}" for reason, ids in groups.items()]


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]} ..."


def _escape(text: str) -> str:
    """Return a text in which nothing is markup, on one line."""
    line = " ".join(text.split())
    for character in "\\`*_[]<>|":
        line = line.replace(character, f"\\{character}")
    return line
