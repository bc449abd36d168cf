"""The report of a trace as text for a terminal."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Sequence

from .advice import Advice
from .analysis import Analysis
from .reading import Trace
from .summary import PHASE_NAMES

MAX_STEPS = 20
MAX_WAITS = 10
WIDTH = 100


def render_text(trace: Trace, analysis: Analysis, advice: Sequence[Advice]) -> str:
    """Return the report of a trace as text."""
    sections = [
        _head(trace, analysis),
        _section(
            "Operations: seconds from the call to the result",
            ("operation", "count", "failed", "retries", "p50", "p95", "p99", "max", "under way"),
            [
                (
                    row.kind,
                    f"{row.count:,}",
                    _blank(row.failed + row.cancelled + row.unfinished),
                    _blank(row.retries),
                    *(f"{value:.3f}" for value in (row.p50, row.p95, row.p99, row.max, row.busy)),
                )
                for row in analysis.kinds
            ],
        ),
        _section(
            "Phases: seconds in all, operations at the same time count each",
            ("operation", *PHASE_NAMES),
            [(row.kind, *(f"{row.phases[phase]:.3f}" for phase in PHASE_NAMES)) for row in analysis.kinds],
        ),
        _steps(analysis),
        _section(
            "What waited for what: operations before they were sent, and the program",
            ("who waited", "for what", "count", "seconds", "longest"),
            [
                (row.kind, row.cause, f"{row.count:,}", f"{row.total:.3f}", f"{row.longest:.3f}")
                for row in analysis.waits[:MAX_WAITS]
            ],
        ),
        _section(
            "Stragglers: three times the median of their kind, or more",
            ("operation", "id", "seconds", "median", "mostly", "seconds", "retries"),
            [
                (
                    row.kind,
                    str(row.number),
                    f"{row.duration:.3f}",
                    f"{row.median:.3f}",
                    row.phase,
                    f"{row.phase_s:.3f}",
                    _blank(row.retries),
                )
                for row in analysis.stragglers
            ],
        ),
        _section(
            "Retries",
            ("operation", "reason", "count", "paused"),
            [(row.kind, row.reason, f"{row.count:,}", f"{row.paused:.3f}") for row in analysis.retries],
        ),
        _section(
            "Queue states in responses to polls",
            ("state", "polls"),
            [(state, f"{count:,}") for state, count in sorted(analysis.queue_states.items())],
        ),
        _silence(analysis),
        _section(
            "Tokens",
            ("model", "trained", "forward", "prompt", "cached", "sampled"),
            [
                (
                    row.model,
                    f"{row.trained_tokens:,}",
                    f"{row.forward_tokens:,}",
                    f"{row.prompt_tokens:,}",
                    f"{row.cached_prompt_tokens:,}",
                    f"{row.sampled_tokens:,}",
                )
                for row in analysis.models
            ],
        ),
        textwrap.fill(f"Cost: {analysis.cost}", WIDTH),
        _advice(advice),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def describe_gaps(trace: Trace) -> list[str]:
    """Return sentences about what a trace lacks."""
    gaps = []
    if trace.runs > 1:
        gaps.append(f"The file holds {trace.runs} runs; this is number {trace.run}.")
    if trace.omitted:
        gaps.append(f"{trace.omitted:,} older operations are omitted, because the file reached its maximum size.")
    if trace.lost:
        gaps.append(f"{trace.lost:,} operations could not be written.")
    if trace.unreadable:
        gaps.append(f"{trace.unreadable:,} lines could not be read, as after the end of a killed process.")
    return gaps


def _head(trace: Trace, analysis: Analysis) -> str:
    started = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(analysis.started_at))
    count = len(trace.processes)
    lines = [
        f"{trace.path}: {len(trace.operations):,} operations of {count} process{'es' if count > 1 else ''}, "
        f"from {started}, {analysis.duration:.3f} s; nothing under way for {analysis.idle:.3f} s",
        *describe_gaps(trace),
    ]
    return "\n".join(lines)


def _steps(analysis: Analysis) -> str:
    rows = [
        (
            f"{row.step}" if row.is_complete else "after",
            f"{row.duration:.3f}",
            f"{row.idle:.3f}",
            ", ".join(f"{count} {kind}" for kind, count in row.counts.items()),
            ", ".join(f"{kind} {seconds:.3f}" for kind, seconds in list(row.busy.items())[:3]),
        )
        for row in analysis.steps
    ]
    shown = rows if len(rows) <= MAX_STEPS else [*rows[: MAX_STEPS // 2], *rows[-MAX_STEPS // 2 :]]
    title = "Steps: an optim_step, and what came since the one before"
    if len(shown) < len(rows):
        title += f" ({len(rows)}; the first and last {MAX_STEPS // 2})"
    return _section(title, ("step", "seconds", "idle", "operations", "seconds under way"), shown, left=(3, 4))


def _silence(analysis: Analysis) -> str:
    silence = analysis.silence
    if silence is None:
        return ""
    under_way = ", ".join(f"{count} {kind}" for kind, count in silence.under_way.items()) or "nothing"
    return (
        f"Longest silence: {silence.duration:.3f} s without any event, {silence.start - analysis.started_at:.3f} s "
        f"after the start; under way: {under_way}"
    )


def _advice(advice: Sequence[Advice]) -> str:
    if not advice:
        return "Advice: none; the trace shows no pattern that is known to cost time."
    lines = ["Advice"]
    for item in advice:
        text = f"{item.rule}: {item.text}"
        lines.append(textwrap.fill(text, WIDTH, initial_indent="* ", subsequent_indent="  "))
    return "\n".join(lines)


def _section(title: str, names: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] | None = None) -> str:
    """Return a table; columns of text are aligned to the left, columns of numbers to the right."""
    if not rows:
        return ""
    aligned = [_is_text([row[i] for row in rows]) if left is None else i in left for i in range(len(names))]
    widths = [max(len(names[i]), *(len(row[i]) for row in rows)) for i in range(len(names))]
    lines = [title]
    for row in (names, *rows):
        cells = [
            cell.ljust(width) if is_left else cell.rjust(width)
            for cell, width, is_left in zip(row, widths, aligned, strict=True)
        ]
        lines.append(("  " + "  ".join(cells)).rstrip())
    return "\n".join(lines)


def _is_text(cells: Sequence[str]) -> bool:
    return not all(cell.replace(",", "").replace(".", "").isdigit() for cell in cells if cell)


def _blank(number: int) -> str:
    return f"{number:,}" if number else ""
