"""The events of one operation with their times, which a recorder collects; operations have none unless one records."""

from __future__ import annotations

from time import monotonic
from typing import Any

EVENT_VALUES = {
    "start": 0,
    "turn": 0,
    "slot": 2,
    "split": 9,
    "wait_connection": 0,
    "connection": 0,
    "send": 2,
    "response": 3,
    "retry": 3,
    "poll": 2,
    "unready": 3,
    "poll_error": 2,
    "ready": 2,
    "decoded": 1,
}
"""Names of the events, and how many values follow the name and the time; docs/tracing.md explains them."""
MAX_ITEMS = 2_000
"""Length of the events of one operation; further polls and retries are only counted, as of hours of polling."""


def error_name(error: BaseException) -> str:
    """Return the status of an error response, or the name of the class: never the text, which may hold anything."""
    status = getattr(error, "status_code", None)
    return f"HTTP {status}" if isinstance(status, int) else type(error).__name__


def state_name(text: str) -> str:
    """Return a queue state that is a name, such as ``paused_capacity``; a server may send any text."""
    return text if len(text) <= 40 and text.isidentifier() else "other"


class OperationTrace:
    """Events and figures of one operation. Events are added on the loop thread.

    Holds names, numbers and ids only: no texts, tokens, headers, addresses or messages of errors.

    Args:
        number: id of the operation in this process.
        kind: ``Sample``, ``OptimStep`` ...; empty for calls that are known by their name.
        step: number of ``optim_step`` calls before this operation.
        asked: monotonic time of the user's call.
        context: what a receiver of finished operations took from the caller, as the parent of a span.
    """

    __slots__ = (
        "asked",
        "cached_tokens",
        "context",
        "end",
        "error",
        "events",
        "input_tokens",
        "is_awaited",
        "kind",
        "model",
        "model_id",
        "number",
        "omitted_events",
        "outcome",
        "output_tokens",
        "request_ids",
        "sampler",
        "sends",
        "step",
    )

    def __init__(self, number: int, kind: str, step: int, asked: float, context: object = None) -> None:
        self.number = number
        self.kind = kind
        self.step = step
        self.asked = asked
        self.context = context
        self.events: list[Any] = []
        """Name, monotonic time in seconds and values of each event, one after the other: a list of tuples would cost
        more than all else."""
        self.omitted_events = 0
        self.end = 0.0
        """Monotonic time at which the caller could have the result; 0 before."""
        self.outcome = ""
        """``done``, ``failed``, ``cancelled`` or ``unfinished``."""
        self.error = ""
        """Name of the class of the error."""
        self.is_awaited = False
        """True if a caller waited for the result when it came."""
        self.model = ""
        """Name of the base model."""
        self.model_id = ""
        """Id of the trained model."""
        self.sampler = ""
        """Id of the sampling session that the operation uses or creates."""
        self.request_ids: tuple[str, ...] = ()
        self.input_tokens = self.cached_tokens = self.output_tokens = 0
        self.sends = 0
        """Number of requests so far, except for polls."""

    def add(self, name: str, *values: object) -> None:
        """Add an event that happens now."""
        self.events.extend((name, monotonic(), *values))

    def add_repeated(self, name: str, *values: object) -> None:
        """Add an event of a poll or a retry, unless the operation has too many events."""
        if len(self.events) < MAX_ITEMS:
            self.events.extend((name, monotonic(), *values))
        else:
            self.omitted_events += 1

    def start_send(self) -> int:
        """Return the number of the next request, which its events carry."""
        self.sends += 1
        return self.sends
