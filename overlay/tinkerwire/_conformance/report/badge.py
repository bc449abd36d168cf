"""The badge: the wire version, and how many requirements hold, as SVG."""

from __future__ import annotations

from html import escape

from .run_report import RunReport

CHARACTER_WIDTH = 6.6
"""Width of a character of the badge's font, in pixels; the text is stretched to its box."""
PADDING = 8
GREEN, YELLOW, RED = "#2e7d32", "#8a6100", "#b3261e"
"""Colors on which white text has a contrast of at least 5 to 1."""


def render_badge(report: RunReport) -> str:
    """Return the picture: green if all musts and shoulds hold, yellow if all musts do, red otherwise."""
    passed, applicable = report.score()
    label, value = f"tinker wire {report.wire}", f"{passed}/{applicable}"
    color = RED if not report.holds else GREEN if passed == applicable else YELLOW
    left, right = _width(label), _width(value)
    title = escape(f"{label}: {passed} of {applicable} requirements hold")
    texts = "".join(
        f'<text x="{x}" y="14" textLength="{width - 2 * PADDING}">{escape(text)}</text>'
        for x, width, text in ((PADDING, left, label), (left + PADDING, right, value))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="{title}">'
        f"<title>{title}</title>"
        f'<rect width="{left + right}" height="20" rx="3" fill="#444c56"/>'
        f'<path d="M{left} 0h{right - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-{right - 3}z" fill="{color}"/>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">{texts}</g></svg>\n'
    )


def _width(text: str) -> int:
    return round(len(text) * CHARACTER_WIDTH) + 2 * PADDING
