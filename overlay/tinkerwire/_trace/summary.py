"""The summary of one operation: its time by phase, bytes, retries and polls, from its events.

The live client and the report of a file use the same rules. The phases follow each other without gaps, so that they
add up to the time from the call to the result. Of an operation with several requests, which overlap, ``server`` begins
when the last request is accepted.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from .events import Event

PHASE_NAMES = ("queue", "encode", "submit", "server", "decode", "deliver")
"""Waiting for a turn or a slot; encoding and waiting for a connection; sending until accepted, retries included; the
server's work and the polls for it; decoding; delivery to the caller."""
BEFORE_ENCODING = frozenset({"start", "turn", "slot"})


@attrs.define(slots=True)
class Summary:
    """Figures of one operation."""

    phases: tuple[float, ...]
    """Seconds by phase, in the order of PHASE_NAMES."""
    bytes_out: int = 0
    """Bytes of the bodies of all requests, polls included."""
    bytes_in: int = 0
    """Bytes of the bodies of all responses, after decompression."""
    retries: int = 0
    """Requests and polls that were repeated after an error."""
    polls: int = 0
    requests: int = 0
    """Accepted requests: the chunks of a batch, or one."""
    connection_s: float = 0.0
    """Seconds in which requests waited for a free connection."""


def summarize(asked: float, events: Iterable[Event], end: float) -> Summary:
    """Return the summary of an operation.

    Args:
        asked: time of the call.
        events: its events.
        end: time at which the caller could have the result.
    """
    queued = asked
    first_send = accepted = ready = decoded = 0.0
    bytes_out = bytes_in = retries = polls = requests = 0
    connection_s = waiting_since = 0.0
    for event in events:
        name, time = event[0], event[1]
        if name == "poll":
            polls += 1
            bytes_out += event[3]
        elif name == "ready":
            ready = time
            bytes_in += event[3]
        elif name == "decoded":
            decoded = time
        elif name == "response":
            bytes_in += event[4]
            if event[3] < 300:
                accepted = time
                requests += 1
        elif name == "send":
            first_send = first_send or time
            bytes_out += event[3]
        elif name in BEFORE_ENCODING:
            if not first_send:
                queued = time
        elif name == "unready":
            bytes_in += event[4]
        elif name in ("retry", "poll_error"):
            retries += 1
        elif name == "wait_connection":
            waiting_since = time
        elif name == "connection":
            connection_s += time - waiting_since
    points = [asked]
    for time in (queued, first_send, accepted, ready, decoded, end):
        points.append(max(points[-1], min(time, end)))
    phases = tuple([points[i + 1] - points[i] for i in range(6)])
    return Summary(phases, bytes_out, bytes_in, retries, polls, requests, connection_s)
