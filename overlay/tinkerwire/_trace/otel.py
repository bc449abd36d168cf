"""Export of operations through OpenTelemetry: a span for each, and metrics, by its semantic conventions.

https://opentelemetry.io/docs/specs/semconv/gen-ai/ names the attributes that begin with ``gen_ai``. Only the API of
OpenTelemetry is used: the program chooses the SDK and where the data goes, by the global providers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from opentelemetry import context, metrics, trace
from opentelemetry.trace import SpanKind, Status, StatusCode

from .._futures.operation_trace import OperationTrace
from ..version import __version__
from .events import Event, split_events
from .summary import PHASE_NAMES, Summary, summarize

PROVIDER = "tinker"
OPERATION_NAMES = {"Sample": "text_completion"}
"""Names of the conventions for kinds of operations; the others, as of training, have none and keep their own."""
MAX_SPAN_EVENTS = 100
EVENT_ATTRIBUTES = {
    "retry": ("request", "reason", "pause_s"),
    "poll_error": ("request", "reason"),
    "poll": ("request", "bytes"),
    "unready": ("request", "queue_state", "bytes"),
    "ready": ("request", "bytes"),
    "send": ("request", "bytes"),
    "response": ("request", "status", "bytes"),
}
"""Events of an operation that become events of its span, and the names of their values."""
NANOSECONDS = 1_000_000_000


class OpenTelemetryReceiver:
    """Makes spans and metrics of finished operations.

    Args:
        base_url: the address of the server, of which host and port are exported.
    """

    capture: Callable[[], object] | None

    def __init__(self, base_url: str) -> None:
        self.capture = context.get_current
        """Taken on the caller's thread: its span is the parent."""
        self._tracer = trace.get_tracer("tinkerwire", __version__)
        meter = metrics.get_meter("tinkerwire", __version__)
        self._duration = meter.create_histogram(
            "gen_ai.client.operation.duration", "s", "Duration of an operation, from the call to its result"
        )
        self._tokens = meter.create_histogram("gen_ai.client.token.usage", "{token}", "Tokens of an operation")
        self._phase = meter.create_histogram("tinkerwire.phase.duration", "s", "Duration of a phase of an operation")
        self._retries = meter.create_counter(
            "tinkerwire.retries", "{retry}", "Requests and polls repeated after errors"
        )
        self._bytes = meter.create_counter("tinkerwire.io", "By", "Bodies of requests and responses")
        self._server = _server_attributes(base_url)

    def receive(self, operations: Sequence[OperationTrace], dropped: int) -> None:
        """Export operations."""
        # Times of spans are on the clock of the system, times of events on one that never jumps.
        offset = time.time() - time.monotonic()
        for operation in operations:
            events = split_events(operation.events)
            summary = summarize(operation.asked, events, operation.end)
            attributes = self._attributes(operation)
            self._export_span(operation, events, summary, attributes, offset)
            self._export_metrics(operation, summary, attributes)

    def close(self) -> None:
        """Do nothing: the program owns the providers."""

    def _attributes(self, operation: OperationTrace) -> dict[str, Any]:
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": OPERATION_NAMES.get(operation.kind, operation.kind),
            "gen_ai.provider.name": PROVIDER,
            **self._server,
        }
        if operation.model:
            attributes["gen_ai.request.model"] = operation.model
        if operation.outcome != "done":
            attributes["error.type"] = operation.error or operation.outcome
        return attributes

    def _export_span(
        self,
        operation: OperationTrace,
        events: Sequence[Event],
        summary: Summary,
        attributes: dict[str, Any],
        offset: float,
    ) -> None:
        def stamp(seconds: float) -> int:
            return int((seconds + offset) * NANOSECONDS)

        name = " ".join(part for part in (attributes["gen_ai.operation.name"], operation.model) if part)
        span = self._tracer.start_span(
            name,
            context=operation.context if isinstance(operation.context, context.Context) else None,
            kind=SpanKind.CLIENT,
            start_time=stamp(operation.asked),
            attributes={
                **attributes,
                "tinkerwire.operation.id": operation.number,
                "tinkerwire.operation.kind": operation.kind,
                "tinkerwire.step": operation.step,
                "tinkerwire.requests": summary.requests,
                "tinkerwire.retries": summary.retries,
                "tinkerwire.polls": summary.polls,
            },
        )
        if not span.is_recording():
            return
        if operation.request_ids:
            span.set_attribute("tinkerwire.request.ids", operation.request_ids)
        if operation.input_tokens:
            span.set_attribute("gen_ai.usage.input_tokens", operation.input_tokens)
        if operation.output_tokens:
            span.set_attribute("gen_ai.usage.output_tokens", operation.output_tokens)
        for event in [event for event in events if event[0] in EVENT_ATTRIBUTES][:MAX_SPAN_EVENTS]:
            values = dict(zip(EVENT_ATTRIBUTES[event[0]], event[2:], strict=True))
            span.add_event(event[0], values, stamp(event[1]))
        if operation.outcome in ("failed", "unfinished"):
            span.set_status(Status(StatusCode.ERROR, operation.error or operation.outcome))
        span.end(stamp(operation.end))

    def _export_metrics(self, operation: OperationTrace, summary: Summary, attributes: dict[str, Any]) -> None:
        self._duration.record(operation.end - operation.asked, attributes)
        for kind, count in (("input", operation.input_tokens), ("output", operation.output_tokens)):
            if count:
                self._tokens.record(count, {**attributes, "gen_ai.token.type": kind})
        for phase, seconds in zip(PHASE_NAMES, summary.phases, strict=True):
            self._phase.record(seconds, {**attributes, "tinkerwire.phase": phase})
        if summary.retries:
            self._retries.add(summary.retries, attributes)
        self._bytes.add(summary.bytes_out, {**attributes, "network.io.direction": "transmit"})
        self._bytes.add(summary.bytes_in, {**attributes, "network.io.direction": "receive"})


def _server_attributes(base_url: str) -> dict[str, Any]:
    parts = urlsplit(base_url)
    attributes: dict[str, Any] = {}
    if parts.hostname:
        attributes["server.address"] = parts.hostname
        attributes["server.port"] = parts.port or (443 if parts.scheme == "https" else 80)
    return attributes
