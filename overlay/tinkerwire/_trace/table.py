"""The report of a trace as text for a terminal."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Sequence

from .advice import Advice
from .analysis import Analysis
from .reading import Trace
from .sections import STEPS_TITLE, Cell, Section, describe_gaps, format_cell, format_counts, shared_sections
from .summary import PHASE_NAMES

MAX_STEPS = 20
MAX_TEXT_ROWS = 10
"""Rows of the other tables; the page and JSON have all."""
WIDTH = 100


def render_text(trace: Trace, analysis: Analysis, advice: Sequence[Advice]) -> str:
    """Return the report of a trace as text."""
    kinds = Section(
        "Operations: seconds from the call to the result",
        ("operation", "count", "failed", "retries", "p50", "p95", "p99", "max", "under way"),
        [
            (
                row.kind,
                row.count,
                row.failed + row.cancelled + row.unfinished,
                row.retries,
                *(row.p50, row.p95, row.p99, row.max, row.busy),
            )
            for row in analysis.kinds
        ],
    )
    phases = Section(
        "Phases: seconds in all, operations at the same time count each",
        ("operation", *PHASE_NAMES),
        [(row.kind, *row.phases.values()) for row in analysis.kinds],
    )
    parts = [
        _head(trace, analysis),
        _table(kinds),
        _table(phases),
        _table(_steps(analysis)),
        *(_table(_first_rows(section)) for section in shared_sections(analysis)),
        _silence(analysis),
        textwrap.fill(f"Cost: {analysis.cost}", WIDTH),
        _advice(advice),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(trace: Trace, analysis: Analysis) -> str:
    started = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(analysis.started_at))
    count = len(trace.processes)
    lines = [
        f"{trace.path}: {len(trace.operations):,} operations of {count} process{'es' if count > 1 else ''}, "
        f"from {started}, {analysis.duration:.3f} s; nothing under way for {analysis.idle:.3f} s",
        *describe_gaps(trace),
    ]
    return "\n".join(lines)


def _steps(analysis: Analysis) -> Section:
    rows = [
        (
            str(row.step) if row.is_complete else "after",
            row.duration,
            row.idle,
            format_counts(row.counts),
            ", ".join(f"{kind} {seconds:.3f}" for kind, seconds in list(row.busy.items())[:3]),
        )
        for row in analysis.steps
    ]
    title = STEPS_TITLE
    if len(rows) > MAX_STEPS:
        title += f" ({len(rows):,}; the first and last {MAX_STEPS // 2})"
        rows = [*rows[: MAX_STEPS // 2], *rows[-MAX_STEPS // 2 :]]
    return Section(title, ("step", "seconds", "idle", "operations", "seconds under way"), rows)


def _first_rows(section: Section) -> Section:
    if len(section.rows) <= MAX_TEXT_ROWS:
        return section
    title = f"{section.title} (the first {MAX_TEXT_ROWS} of {len(section.rows):,})"
    return Section(title, section.names, section.rows[:MAX_TEXT_ROWS])


def _silence(analysis: Analysis) -> str:
    silence = analysis.silence
    if silence is None:
        return ""
    return (
        f"Longest silence: {silence.duration:.3f} s without any event, {silence.start - analysis.started_at:.3f} s "
        f"after the start; under way: {format_counts(silence.under_way)}"
    )


def _advice(advice: Sequence[Advice]) -> str:
    if not advice:
        return "Advice: none; the trace shows no pattern that is known to cost time."
    lines = ["Advice"]
    for item in advice:
        text = f"{item.rule}: {item.text}"
        lines.append(textwrap.fill(text, WIDTH, initial_indent="* ", subsequent_indent="  "))
    return "\n".join(lines)


def _table(section: Section) -> str:
    if not section.rows:
        return ""
    columns = [_column(name, cells) for name, *cells in zip(section.names, *section.rows, strict=True)]
    return "\n".join([section.title, *(("  " + "  ".join(line)).rstrip() for line in zip(*columns, strict=True))])


def _column(name: str, values: Sequence[Cell]) -> list[str]:
    """Return the cells of a column in one width: text aligned to the left, numbers to the right."""
    cells = [format_cell(value) for value in values]
    is_text = not all(cell.replace(",", "").replace(".", "").isdigit() for cell in cells)
    width = max(map(len, (name, *cells)))
    return [cell.ljust(width) if is_text else cell.rjust(width) for cell in (name, *cells)]
