"""The report of a trace file: as text, as JSON, as a page, and for Perfetto."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import orjson

from .advice import find_advice
from .analysis import analyze
from .html_page import render_page
from .perfetto import to_perfetto
from .reading import Trace, is_trace, read_trace
from .table import render_text

REPORT_VERSION = 1
"""Version of the object that to_json returns; it changes when a member changes its meaning or goes."""

__all__ = ["format_table", "read_trace", "to_json", "write_html", "write_perfetto"]


def format_table(trace: Trace) -> str:
    """Return the report as text."""
    return render_text(trace, analyze(trace), find_advice(trace))


def to_json(trace: Trace) -> dict[str, Any]:
    """Return the report as values of JSON. Times are in seconds, and Unix times where they are moments."""
    return {
        "version": REPORT_VERSION,
        "path": trace.path,
        "run": trace.run,
        "runs": trace.runs,
        "processes": [
            {"id": process.id, "started_at": process.started_at, "tinkerwire": process.tinkerwire}
            for process in trace.processes
        ],
        "operations": len(trace.operations),
        "omitted": trace.omitted,
        "lost": trace.lost,
        "unreadable": trace.unreadable,
        **attrs.asdict(analyze(trace)),
        "advice": [attrs.asdict(advice) for advice in find_advice(trace)],
    }


def write_html(trace: Trace, path: str | Path) -> None:
    """Write the report as a page that needs no network.

    Raises:
        OSError: the file cannot be written.
        ValueError: the file is a trace.
    """
    _write(path, render_page(trace, analyze(trace), find_advice(trace)).encode())


def write_perfetto(trace: Trace, path: str | Path) -> None:
    """Write the trace in the Trace Event Format, for https://ui.perfetto.dev.

    Raises:
        OSError: the file cannot be written.
        ValueError: the file is a trace.
    """
    _write(path, orjson.dumps(to_perfetto(trace)))


def _write(path: str | Path, content: bytes) -> None:
    file = Path(path)
    if file.exists() and is_trace(file):
        raise ValueError(f"{path}: this is a trace, and would be overwritten; give another path")
    file.write_bytes(content)
