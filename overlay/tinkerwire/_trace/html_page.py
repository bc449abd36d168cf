"""The report of a trace as one page of HTML, without scripts and without network."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from .advice import Advice
from .analysis import Analysis, KindRow, StepRow
from .reading import Trace
from .summary import PHASE_NAMES
from .table import describe_gaps
from .timeline import render_timeline

MAX_PAGE_STEPS = 200
Cells = Sequence[str]


def render_page(trace: Trace, analysis: Analysis, advice: Sequence[Advice]) -> str:
    """Return the page."""
    title = f"Trace of {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(analysis.started_at))}"
    sections = [
        _facts(trace, analysis),
        _advice(advice),
        "<h2>Timeline</h2>" + render_timeline(trace, analysis),
        _kinds(analysis.kinds),
        _steps(analysis.steps),
        _table(
            "What waited for what: operations before they were sent, and the program",
            ("who waited", "for what", "count", "seconds", "longest"),
            ((row.kind, row.cause, row.count, row.total, row.longest) for row in analysis.waits),
        ),
        _table(
            "Stragglers: three times the median of their kind, or more",
            ("operation", "id", "seconds", "median", "mostly", "seconds", "retries"),
            (
                (row.kind, row.number, row.duration, row.median, row.phase, row.phase_s, row.retries)
                for row in analysis.stragglers
            ),
        ),
        _table(
            "Retries",
            ("operation", "reason", "count", "seconds paused"),
            ((row.kind, row.reason, row.count, row.paused) for row in analysis.retries),
        ),
        _table("Queue states in responses to polls", ("state", "polls"), sorted(analysis.queue_states.items())),
        _table(
            "Tokens",
            ("model", "trained", "forward", "prompt", "cached", "sampled"),
            (
                (
                    row.model,
                    row.trained_tokens,
                    row.forward_tokens,
                    row.prompt_tokens,
                    row.cached_prompt_tokens,
                    row.sampled_tokens,
                )
                for row in analysis.models
            ),
        ),
        f"<p>{escape(analysis.cost)}</p>",
    ]
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{escape(title)}</h1>\n" + "\n".join(section for section in sections if section) + "\n</main>\n</body>\n"
        "</html>\n"
    )


def _facts(trace: Trace, analysis: Analysis) -> str:
    facts = [
        (f"{analysis.duration:.3f} s", "duration"),
        (f"{len(trace.operations):,}", "operations"),
        (f"{len(trace.processes):,}", "process" if len(trace.processes) == 1 else "processes"),
        (f"{sum(row.retries for row in analysis.kinds):,}", "retries"),
        (f"{analysis.idle:.3f} s", "nothing under way"),
    ]
    if analysis.silence is not None:
        under_way = ", ".join(f"{count} {kind}" for kind, count in analysis.silence.under_way.items()) or "nothing"
        facts.append((f"{analysis.silence.duration:.3f} s", f"longest silence; under way: {under_way}"))
    items = "".join(f"<li><b>{escape(value)}</b> {escape(name)}</li>" for value, name in facts)
    gaps = "".join(f'<p class="gap">{escape(gap)}</p>' for gap in describe_gaps(trace))
    return f'<p class="path">{escape(trace.path)}</p>{gaps}<ul class="facts">{items}</ul>'


def _advice(advice: Sequence[Advice]) -> str:
    if not advice:
        return "<h2>Advice</h2><p>None: the trace shows no pattern that is known to cost time.</p>"
    items = "".join(f"<li><b>{escape(item.rule)}</b><br>{escape(item.text)}</li>" for item in advice)
    return f'<h2>Advice</h2><ul class="advice">{items}</ul>'


def _kinds(rows: Sequence[KindRow]) -> str:
    legend = "".join(f'<li><i class="p{number}"></i>{phase}</li>' for number, phase in enumerate(PHASE_NAMES))
    bars = []
    for row in rows:
        parts = "".join(
            f'<i class="p{number}" style="width:{100 * seconds / row.total:.3f}%" '
            f'title="{phase}: {seconds:.3f} s, {seconds / row.total:.0%}"></i>'
            for number, (phase, seconds) in enumerate(row.phases.items())
            if row.total and seconds > 0
        )
        bars.append(f'<div class="bar"><span>{escape(row.kind)}</span><div>{parts}</div></div>')
    table = _table(
        "Operations: seconds from the call to the result",
        ("operation", "count", "failed", "cancelled", "retries", "polls", "p50", "p95", "p99", "max", *PHASE_NAMES),
        (
            (
                row.kind,
                row.count,
                row.failed,
                row.cancelled + row.unfinished,
                row.retries,
                row.polls,
                *(row.p50, row.p95, row.p99, row.max),
                *row.phases.values(),
            )
            for row in rows
        ),
    )
    return f'<h2>Time by phase</h2><ul class="legend">{legend}</ul>{"".join(bars)}{table}'


def _steps(rows: Sequence[StepRow]) -> str:
    title = "Steps: an optim_step, and what came since the one before"
    if len(rows) > MAX_PAGE_STEPS:
        title += f" (the last {MAX_PAGE_STEPS} of {len(rows):,})"
    return _table(
        title,
        ("step", "seconds", "idle", "operations", "seconds under way"),
        (
            (
                str(row.step) if row.is_complete else "after the last",
                row.duration,
                row.idle,
                ", ".join(f"{count} {kind}" for kind, count in row.counts.items()),
                ", ".join(f"{kind} {seconds:.3f}" for kind, seconds in row.busy.items()),
            )
            for row in rows[-MAX_PAGE_STEPS:]
        ),
    )


def _table(title: str, names: Cells, rows: Iterable[Sequence[str | int | float]]) -> str:
    cells = list(rows)
    if not cells:
        return ""
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in cells)
    head = "".join(
        f"<th>{escape(name)}</th>" if isinstance(cell, str) else f'<th class="number">{escape(name)}</th>'
        for name, cell in zip(names, cells[0], strict=True)
    )
    return (
        f"<h2>{escape(title)}</h2>"
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _cell(value: str | int | float) -> str:
    if isinstance(value, str):
        return f"<td>{escape(value)}</td>"
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"
    return f'<td class="number">{text}</td>'
