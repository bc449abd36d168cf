"""The timeline of a trace as SVG: a row for each kind of operation, darker where more are under way at once."""

from __future__ import annotations

from html import escape

from .analysis import Analysis
from .reading import Trace, TracedOperation

TIMELINE_WIDTH = 600
"""Parts of the time that are drawn."""
ROW_HEIGHT, BAR_HEIGHT = 26, 20
MAX_STEP_MARKS = 200


def render_timeline(trace: Trace, analysis: Analysis) -> str:
    """Return the timeline as HTML."""
    if not trace.operations or analysis.duration <= 0:
        return "<p>The trace has no operations.</p>"
    rows = [row.kind for row in analysis.kinds]
    height = ROW_HEIGHT * len(rows)
    shapes: list[str] = []
    for number, kind in enumerate(rows):
        operations = [operation for operation in trace.operations if operation.kind == kind]
        shapes += _bars(operations, analysis, number * ROW_HEIGHT + (ROW_HEIGHT - BAR_HEIGHT) / 2)
    steps = [row.start for row in analysis.steps]
    if len(steps) <= MAX_STEP_MARKS:
        for start in steps:
            x = TIMELINE_WIDTH * (start - analysis.started_at) / analysis.duration
            shapes.append(f'<line class="step" x1="{x:.2f}" x2="{x:.2f}" y1="0" y2="{height}"/>')
    labels = "".join(f"<li>{escape(kind)}</li>" for kind in rows)
    return (
        f'<div class="timeline"><ol>{labels}</ol>'
        f'<svg viewBox="0 0 {TIMELINE_WIDTH} {height}" preserveAspectRatio="none" style="height:{height}px" role="img" '
        f'aria-label="Operations under way over {analysis.duration:.3f} seconds">{"".join(shapes)}</svg></div>'
        f'<p class="scale"><span>0 s</span><span>{analysis.duration / 2:.3f} s</span>'
        f"<span>{analysis.duration:.3f} s</span></p>"
    )


def _bars(operations: list[TracedOperation], analysis: Analysis, y: float) -> list[str]:
    """Return a rectangle for each stretch of time with the same number of operations under way."""
    changes: dict[int, int] = {}
    scale = TIMELINE_WIDTH / analysis.duration
    for operation in operations:
        begin = min(TIMELINE_WIDTH - 1, int((operation.asked - analysis.started_at) * scale))
        end = max(begin + 1, min(TIMELINE_WIDTH, round((operation.end - analysis.started_at) * scale)))
        changes[begin] = changes.get(begin, 0) + 1
        changes[end] = changes.get(end, 0) - 1
    stretches: list[tuple[int, int, int]] = []
    count, begin = 0, 0
    for column in sorted(changes):
        if count:
            stretches.append((begin, column, count))
        count, begin = count + changes[column], column
    most = max((number for _, _, number in stretches), default=1)
    return [
        f'<rect x="{start}" y="{y:g}" width="{end - start}" height="{BAR_HEIGHT}" '
        f'opacity="{0.35 + 0.65 * number / most:.2f}"><title>{number} under way, '
        f"{start / scale:.3f} s to {end / scale:.3f} s</title></rect>"
        for start, end, number in stretches
    ]
