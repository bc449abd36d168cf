"""A trace in the Trace Event Format of Chrome, which https://ui.perfetto.dev and chrome://tracing open.

Each process of the run is a process of the format, and each kind of operation has as many tracks as it has operations
at once, since the slices of a track must not overlap. Phases are slices inside their operation.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from typing import Any

from .reading import Trace, TracedOperation
from .summary import PHASE_NAMES

MICROSECONDS = 1_000_000
INSTANTS = frozenset({"retry", "poll_error", "unready"})
"""Events that are drawn as marks on their operation."""


def to_perfetto(trace: Trace) -> dict[str, Any]:
    """Return the JSON object of a trace."""
    start = min((operation.asked for operation in trace.operations), default=0.0)
    events: list[dict[str, Any]] = []
    for number, process in enumerate(trace.processes, 1):
        name = {"name": f"process {process.id}"}
        events.append({"ph": "M", "name": "process_name", "pid": number, "tid": 0, "args": name})
        operations = [operation for operation in trace.operations if operation.process == process.id]
        for track, (label, row) in enumerate(_tracks(operations), 1):
            events.append({"ph": "M", "name": "thread_name", "pid": number, "tid": track, "args": {"name": label}})
            for operation in row:
                events += _slices(operation, number, track, start)
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"run": trace.run, "omitted": trace.omitted}}


def _tracks(operations: list[TracedOperation]) -> list[tuple[str, list[TracedOperation]]]:
    """Return rows of operations that do not overlap, with their labels."""
    kinds: dict[str, list[TracedOperation]] = defaultdict(list)
    for operation in operations:
        kinds[operation.kind].append(operation)
    tracks: list[tuple[str, list[TracedOperation]]] = []
    for kind, group in kinds.items():
        rows: list[list[TracedOperation]] = []
        free: list[tuple[float, int]] = []
        for operation in group:
            if free and free[0][0] <= operation.asked:
                _, row = heapq.heappop(free)
            else:
                row = len(rows)
                rows.append([])
            rows[row].append(operation)
            heapq.heappush(free, (operation.end, row))
        tracks += [(kind if number == 0 else f"{kind} {number + 1}", row) for number, row in enumerate(rows)]
    return tracks


def _slices(operation: TracedOperation, pid: int, tid: int, start: float) -> list[dict[str, Any]]:
    def stamp(seconds: float) -> float:
        return round((seconds - start) * MICROSECONDS, 3)

    place = {"pid": pid, "tid": tid}
    slices: list[dict[str, Any]] = [
        {
            "ph": "X",
            "name": operation.kind,
            "cat": "operation",
            "ts": stamp(operation.asked),
            "dur": stamp(operation.end) - stamp(operation.asked),
            "args": {
                "id": operation.number,
                "step": operation.step + 1,
                "outcome": operation.outcome,
                "error": operation.error,
                "model": operation.model,
                "requests": list(operation.requests),
                "retries": operation.summary.retries,
                "polls": operation.summary.polls,
                "bytes_out": operation.summary.bytes_out,
                "bytes_in": operation.summary.bytes_in,
                "input_tokens": operation.input_tokens,
                "output_tokens": operation.output_tokens,
            },
            **place,
        }
    ]
    at = operation.asked
    for phase, seconds in zip(PHASE_NAMES, operation.summary.phases, strict=True):
        if seconds > 0:
            begin, end = stamp(at), min(stamp(at + seconds), stamp(operation.end))
            slices.append(
                {"ph": "X", "name": phase, "cat": "phase", "ts": begin, "dur": max(0.0, end - begin), **place}
            )
        at += seconds
    for event in operation.events:
        if event[0] in INSTANTS:
            name = f"{event[0]} {event[3]}"
            slices.append({"ph": "i", "s": "t", "name": name, "cat": "event", "ts": stamp(event[1]), **place})
    return slices
