"""The report of a trace as one page of HTML, without scripts and without network."""

from __future__ import annotations

import time
from collections.abc import Sequence
from html import escape
from pathlib import Path

from .._page.document import render_document, render_facts
from .advice import Advice
from .analysis import Analysis, KindRow, StepRow
from .reading import Trace
from .sections import STEPS_TITLE, Cell, Section, describe_gaps, format_cell, format_counts, shared_sections
from .summary import PHASE_NAMES
from .timeline import render_timeline

MAX_PAGE_STEPS = 200


def render_page(trace: Trace, analysis: Analysis, advice: Sequence[Advice]) -> str:
    """Return the page."""
    title = f"Trace of {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(analysis.started_at))}"
    sections = [
        _facts(trace, analysis),
        _advice(advice),
        "<h2>Timeline</h2>" + render_timeline(trace, analysis),
        _kinds(analysis.kinds),
        _table(_steps(analysis.steps)),
        *map(_table, shared_sections(analysis)),
        f"<p>{escape(analysis.cost)}</p>",
    ]
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    return render_document(title, sections, style=style)


def _facts(trace: Trace, analysis: Analysis) -> str:
    facts = [
        (f"{analysis.duration:.3f} s", "duration"),
        (f"{len(trace.operations):,}", "operations"),
        (f"{len(trace.processes):,}", "process" if len(trace.processes) == 1 else "processes"),
        (f"{sum(row.retries for row in analysis.kinds):,}", "retries"),
        (f"{analysis.idle:.3f} s", "nothing under way"),
    ]
    if analysis.silence is not None:
        under_way = format_counts(analysis.silence.under_way)
        facts.append((f"{analysis.silence.duration:.3f} s", f"longest silence; under way: {under_way}"))
    gaps = "".join(f'<p class="gap">{escape(gap)}</p>' for gap in describe_gaps(trace))
    return f'<p class="path">{escape(trace.path)}</p>{gaps}{render_facts(facts)}'


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
    table = Section(
        "Operations: seconds from the call to the result",
        ("operation", "count", "failed", "cancelled", "retries", "polls", "p50", "p95", "p99", "max", *PHASE_NAMES),
        [
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
        ],
    )
    return f'<h2>Time by phase</h2><ul class="legend">{legend}</ul>{"".join(bars)}{_table(table)}'


def _steps(rows: Sequence[StepRow]) -> Section:
    title = STEPS_TITLE
    if len(rows) > MAX_PAGE_STEPS:
        title += f" (the last {MAX_PAGE_STEPS} of {len(rows):,})"
    return Section(
        title,
        ("step", "seconds", "idle", "operations", "seconds under way"),
        [
            (
                str(row.step) if row.is_complete else "after the last",
                row.duration,
                row.idle,
                format_counts(row.counts),
                ", ".join(f"{kind} {seconds:.3f}" for kind, seconds in row.busy.items()),
            )
            for row in rows[-MAX_PAGE_STEPS:]
        ],
    )


def _table(section: Section) -> str:
    if not section.rows:
        return ""
    head = "".join(
        f"<th{_class_of(cell)}>{escape(name)}</th>" for name, cell in zip(section.names, section.rows[0], strict=True)
    )
    body = "".join(
        f"<tr>{''.join(f'<td{_class_of(cell)}>{escape(format_cell(cell))}</td>' for cell in row)}</tr>"
        for row in section.rows
    )
    return (
        f"<h2>{escape(section.title)}</h2>"
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _class_of(cell: Cell) -> str:
    return "" if isinstance(cell, str) else ' class="number"'
