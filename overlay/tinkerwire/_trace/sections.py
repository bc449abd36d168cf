"""Parts of the report that the text and the page share: sentences, and tables without their form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from .analysis import Analysis
from .reading import Trace

Cell = str | int | float
"""Text, a number of things, or seconds."""
STEPS_TITLE = "Steps: each optim_step, with the operations since the one before"


@attrs.frozen
class Section:
    """One table of the report."""

    title: str
    names: Sequence[str]
    rows: Sequence[Sequence[Cell]]


def shared_sections(analysis: Analysis) -> list[Section]:
    """Return the tables that text and page have in the same form; those without rows, too."""
    return [
        Section(
            "Waits: operations before they were sent, and the program for results",
            ("operation", "waited for", "count", "seconds", "longest"),
            [(row.kind, row.cause, row.count, row.total, row.longest) for row in analysis.waits],
        ),
        Section(
            "Stragglers: three times the median of their kind, or more",
            ("operation", "id", "seconds", "median", "longest phase", "its seconds", "retries"),
            [
                (row.kind, str(row.number), row.duration, row.median, row.phase, row.phase_s, row.retries)
                for row in analysis.stragglers
            ],
        ),
        Section(
            "Retries",
            ("operation", "reason", "count", "seconds paused"),
            [(row.kind, row.reason, row.count, row.paused) for row in analysis.retries],
        ),
        Section("Queue states in responses to polls", ("state", "polls"), sorted(analysis.queue_states.items())),
        Section(
            "Tokens",
            ("model", "trained", "forward", "prompt", "cached", "sampled"),
            [
                (
                    row.model,
                    row.trained_tokens,
                    row.forward_tokens,
                    row.prompt_tokens,
                    row.cached_prompt_tokens,
                    row.sampled_tokens,
                )
                for row in analysis.models
            ],
        ),
    ]


def format_cell(value: Cell) -> str:
    """Return a cell as text; seconds have three decimal places."""
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"


def format_counts(counts: Mapping[str, int]) -> str:
    """Return numbers of operations by kind as text."""
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.items()) or "nothing"


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
