"""Metrics of a client: counts, bytes, retries, waits and durations of its operations, by kind."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from .._futures.operation_trace import OperationTrace
from .events import split_events
from .sketch import Distribution, Sketch
from .summary import PHASE_NAMES, Summary, summarize


@attrs.frozen(kw_only=True)
class OperationMetrics:
    """Metrics of all operations of one kind. Times are in seconds, sizes in bytes."""

    count: int
    """Operations that have ended, in any way."""
    failed: int
    cancelled: int
    requests: int
    """Requests that the server accepted; a large batch has several."""
    retries: int
    """Requests and polls that were repeated after an error."""
    polls: int
    bytes_out: int
    """Bodies of requests, as they were sent."""
    bytes_in: int
    """Bodies of responses, after decompression."""
    input_tokens: int
    output_tokens: int
    duration: Distribution
    """Time from the call until the result was there."""
    phases: Mapping[str, Distribution]
    """Parts of the duration: ``queue`` (waiting for a turn or a slot), ``encode``, ``submit``, ``server``, ``decode``
    and ``deliver``."""
    connection_wait: Distribution
    """Time in which requests waited for a free connection; part of ``encode`` and ``submit``."""


@attrs.frozen(kw_only=True)
class MetricsSnapshot:
    """Metrics of the operations that ended between two moments."""

    started_at: float
    """Unix time of the first read of ``service.metrics``, or of the last reset."""
    taken_at: float
    """Unix time of the snapshot."""
    operations: Mapping[str, OperationMetrics]
    """Metrics by kind: ``Sample``, ``ForwardBackward``, ``OptimStep`` ..."""

    def to_dict(self) -> dict[str, Any]:
        """Return the snapshot as values of JSON."""
        return attrs.asdict(self)

    def __str__(self) -> str:
        if not self.operations:
            return "no operation has ended since this service's metrics were first read or reset"
        lines = [f"{'operation':24} {'count':>8} {'failed':>7} {'retries':>8} {'p50 s':>9} {'p95 s':>9} {'p99 s':>9}"]
        for kind, row in sorted(self.operations.items()):
            duration = row.duration
            lines.append(
                f"{kind:24} {row.count:8} {row.failed:7} {row.retries:8} "
                f"{duration.p50:9.3f} {duration.p95:9.3f} {duration.p99:9.3f}"
            )
        return "\n".join(lines)


class Metrics:
    """Metrics of the operations of one service and of the clients created from it; memory is bounded.

    Recording starts when ``service.metrics`` is first read. Percentiles are exact to 1 %.

    Example:
        >>> with tinker.ServiceClient(base_url="local") as service:
        ...     metrics = service.metrics
        ...     sampling = service.create_sampling_client(base_model="tinkerwire/byte-nano")
        ...     params = tinker.SamplingParams(max_tokens=3)
        ...     future = sampling.sample(tinker.ModelInput.from_ints([72]), num_samples=1, sampling_params=params)
        ...     _ = future.result()
        ...     print(metrics.snapshot().operations["Sample"].count)
        1
    """

    def __init__(self, flush: Callable[[], object]) -> None:
        self._flush = flush
        self._lock = threading.RLock()
        self._kinds: dict[str, _Counts] = {}
        self._started_at = time.time()

    def snapshot(self) -> MetricsSnapshot:
        """Return the metrics of the operations that have ended so far; on any thread."""
        self._flush()
        with self._lock:
            return self._snapshot()

    def reset(self) -> MetricsSnapshot:
        """Start again from zero, and return the metrics until now; no operation is counted twice or not at all."""
        self._flush()
        with self._lock:
            snapshot = self._snapshot()
            self._kinds, self._started_at = {}, snapshot.taken_at
            return snapshot

    def _snapshot(self) -> MetricsSnapshot:
        operations = {kind: counts.metrics() for kind, counts in self._kinds.items()}
        return MetricsSnapshot(started_at=self._started_at, taken_at=time.time(), operations=operations)

    def _add(self, operations: Sequence[OperationTrace]) -> None:
        with self._lock:
            for trace in operations:
                counts = self._kinds.get(trace.kind)
                if counts is None:
                    counts = self._kinds[trace.kind] = _Counts()
                counts.add(trace, summarize(trace.asked, split_events(trace.events), trace.end))


class MetricsReceiver:
    """Passes the operations of a recorder to metrics."""

    capture: Callable[[], object] | None = None

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def receive(self, operations: Sequence[OperationTrace], dropped: int) -> None:
        """Count the operations."""
        self._metrics._add(operations)

    def close(self) -> None:
        """Keep the metrics: they can be read after the client is closed."""


class _Counts:
    """Counters and sketches of one kind of operation."""

    def __init__(self) -> None:
        self.count = self.failed = self.cancelled = 0
        self.requests = self.retries = self.polls = self.bytes_out = self.bytes_in = 0
        self.input_tokens = self.output_tokens = 0
        self.duration = Sketch()
        self.phases = tuple(Sketch() for _ in PHASE_NAMES)
        self.connection_wait = Sketch()

    def add(self, trace: OperationTrace, summary: Summary) -> None:
        """Count an operation."""
        self.count += 1
        if trace.outcome == "failed":
            self.failed += 1
        elif trace.outcome != "done":
            self.cancelled += 1
        self.requests += summary.requests
        self.retries += summary.retries
        self.polls += summary.polls
        self.bytes_out += summary.bytes_out
        self.bytes_in += summary.bytes_in
        self.input_tokens += trace.input_tokens
        self.output_tokens += trace.output_tokens
        self.duration.add(trace.end - trace.asked)
        for sketch, seconds in zip(self.phases, summary.phases, strict=True):
            sketch.add(seconds)
        self.connection_wait.add(summary.connection_s)

    def metrics(self) -> OperationMetrics:
        """Return the metrics."""
        return OperationMetrics(
            count=self.count,
            failed=self.failed,
            cancelled=self.cancelled,
            requests=self.requests,
            retries=self.retries,
            polls=self.polls,
            bytes_out=self.bytes_out,
            bytes_in=self.bytes_in,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            duration=self.duration.distribution(),
            phases={name: sketch.distribution() for name, sketch in zip(PHASE_NAMES, self.phases, strict=True)},
            connection_wait=self.connection_wait.distribution(),
        )
