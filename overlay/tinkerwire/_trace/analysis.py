"""Figures of a trace: time by phase and kind, steps, waits, stragglers, retries, silence and tokens."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

import attrs

from .reading import Trace, TracedOperation
from .summary import PHASE_NAMES

MAX_STRAGGLERS = 10
STRAGGLER_FACTOR = 3.0
"""A straggler takes this many times the median of its kind."""
MIN_STRAGGLER_S = 0.05
MIN_OF_KIND = 5
"""Operations of a kind that a median needs before another one is a straggler."""
MIN_WAIT_S = 0.001
PROGRAM = "the program"
NO_COST = (
    "The API gives prices only with usage that it has billed: AdminClient.get_billing_usage() returns the estimated "
    "cost. A trace has tokens only."
)


@attrs.frozen(kw_only=True)
class KindRow:
    """All operations of one kind. Times are in seconds."""

    kind: str
    count: int
    failed: int
    cancelled: int
    unfinished: int
    requests: int
    retries: int
    polls: int
    bytes_out: int
    bytes_in: int
    total: float
    """Sum of the durations, which may overlap."""
    busy: float
    """Time in which at least one was under way."""
    p50: float
    p95: float
    p99: float
    max: float
    phases: dict[str, float]
    """Sum of the durations of each phase."""


@attrs.frozen(kw_only=True)
class StepRow:
    """One optimizer step of a client: its ``optim_step``, and all operations since the one before."""

    process: str
    client: int
    step: int
    """From 1."""
    is_complete: bool
    """False for operations after the last ``optim_step``."""
    start: float
    duration: float
    """From the first call to the last result."""
    idle: float
    """Part of it in which nothing was under way: the program's own work."""
    counts: dict[str, int]
    busy: dict[str, float]
    """Time in which an operation of a kind was under way, by kind."""


@attrs.frozen(kw_only=True)
class WaitRow:
    """Operations of one kind that waited for the same thing before they were sent, or the program for a result."""

    kind: str
    """Kind of the operations, or ``the program``."""
    cause: str
    count: int
    total: float
    longest: float


@attrs.frozen(kw_only=True)
class Straggler:
    """An operation that took far longer than others of its kind."""

    process: str
    number: int
    kind: str
    asked: float
    duration: float
    median: float
    phase: str
    """Phase that took the longest."""
    phase_s: float
    retries: int


@attrs.frozen(kw_only=True)
class RetryRow:
    """Repeated requests and polls of one kind, for one reason."""

    kind: str
    reason: str
    count: int
    paused: float
    """Sum of the pauses before the repetitions, without those of polls."""


@attrs.frozen(kw_only=True)
class Silence:
    """The longest time without any event."""

    start: float
    duration: float
    under_way: dict[str, int]
    """Operations that had begun and not ended, by kind; empty if the program asked for nothing."""


@attrs.frozen(kw_only=True)
class ModelRow:
    """Tokens of one model."""

    model: str
    trained_tokens: int
    forward_tokens: int
    prompt_tokens: int
    cached_prompt_tokens: int
    sampled_tokens: int


@attrs.frozen(kw_only=True)
class Analysis:
    """All figures of a trace."""

    started_at: float
    duration: float
    idle: float
    """Time in which nothing was under way."""
    kinds: list[KindRow]
    steps: list[StepRow]
    waits: list[WaitRow]
    stragglers: list[Straggler]
    retries: list[RetryRow]
    queue_states: dict[str, int]
    """Polls by the queue state in their response."""
    silence: Silence | None
    models: list[ModelRow]
    cost: str = NO_COST


def analyze(trace: Trace) -> Analysis:
    """Return the figures of a trace."""
    operations = trace.operations
    start = min((operation.asked for operation in operations), default=0.0)
    end = max((operation.end for operation in operations), default=start)
    return Analysis(
        started_at=start,
        duration=end - start,
        idle=end - start - busy_time(operations),
        kinds=[_kind_row(kind, group) for kind, group in _by_kind(operations).items()],
        steps=_step_rows(operations),
        waits=find_waits(operations),
        stragglers=_stragglers(operations),
        retries=_retry_rows(operations),
        queue_states=dict(Counter(event[3] for op in operations for event in op.events if event[0] == "unready")),
        silence=_longest_silence(operations),
        models=_model_rows(operations),
    )


def busy_time(operations: Iterable[TracedOperation]) -> float:
    """Return the time in which at least one of the operations was under way."""
    busy, until = 0.0, -math.inf
    for asked, end in sorted((operation.asked, operation.end) for operation in operations):
        if end > until:
            busy += end - max(asked, until)
            until = end
    return busy


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return the value of rank ``ceil(percent * n / 100)`` of ordered values."""
    return ordered[max(0, math.ceil(percent * len(ordered) / 100) - 1)]


def _by_kind(operations: Sequence[TracedOperation]) -> dict[str, list[TracedOperation]]:
    """Return the operations by kind, the kind with the most time first."""
    groups: dict[str, list[TracedOperation]] = defaultdict(list)
    for operation in operations:
        groups[operation.kind].append(operation)
    return dict(sorted(groups.items(), key=lambda item: -busy_time(item[1])))


def _kind_row(kind: str, operations: Sequence[TracedOperation]) -> KindRow:
    durations = sorted(operation.duration for operation in operations)
    outcomes = Counter(operation.outcome for operation in operations)
    summaries = [operation.summary for operation in operations]
    return KindRow(
        kind=kind,
        count=len(operations),
        failed=outcomes["failed"],
        cancelled=outcomes["cancelled"],
        unfinished=outcomes["unfinished"],
        requests=sum(summary.requests for summary in summaries),
        retries=sum(summary.retries for summary in summaries),
        polls=sum(summary.polls for summary in summaries),
        bytes_out=sum(summary.bytes_out for summary in summaries),
        bytes_in=sum(summary.bytes_in for summary in summaries),
        total=sum(durations),
        busy=busy_time(operations),
        p50=percentile(durations, 50),
        p95=percentile(durations, 95),
        p99=percentile(durations, 99),
        max=durations[-1],
        phases={name: sum(summary.phases[i] for summary in summaries) for i, name in enumerate(PHASE_NAMES)},
    )


def _step_rows(operations: Sequence[TracedOperation]) -> list[StepRow]:
    groups: dict[tuple[str, int, int], list[TracedOperation]] = defaultdict(list)
    for operation in operations:
        groups[operation.process, operation.client, operation.step].append(operation)
    trained = {(op.process, op.client) for op in operations if op.kind == "OptimStep"}
    rows = []
    for (process, client, step), group in sorted(groups.items(), key=lambda item: item[1][0].asked):
        if (process, client) not in trained:
            continue
        start = min(operation.asked for operation in group)
        duration = max(operation.end for operation in group) - start
        rows.append(
            StepRow(
                process=process,
                client=client,
                step=step + 1,
                is_complete=any(operation.kind == "OptimStep" for operation in group),
                start=start,
                duration=duration,
                idle=duration - busy_time(group),
                counts=dict(Counter(operation.kind for operation in group)),
                busy={kind: busy_time(members) for kind, members in _by_kind(group).items()},
            )
        )
    return rows


def find_waits(operations: Sequence[TracedOperation]) -> list[WaitRow]:
    """Return what operations waited for before they were sent, the longest waits first."""
    waits: dict[tuple[str, str], list[float]] = defaultdict(list)
    before: dict[tuple[str, str], TracedOperation] = {}
    samplers = {op.sampler: op for op in operations if op.sampler and op.kind != "Sample"}
    for operation in operations:
        started, turn, slot = operation.last("start"), operation.last("turn"), operation.last("slot")
        key = operation.process, operation.model_id
        if turn is not None and started is not None and key in before:
            _add_wait(waits, operation.kind, f"the turn of {before[key].kind}", turn - started)
        if operation.model_id:
            before[key] = operation
        if slot is not None:
            maker = samplers.get(operation.sampler)
            made = operation.asked if maker is None else min(max(maker.end, operation.asked), slot)
            if maker is not None:
                _add_wait(waits, operation.kind, f"its sampler ({maker.kind})", made - operation.asked)
            _add_wait(waits, operation.kind, "a slot (RetryConfig.max_connections)", slot - made)
        _add_wait(waits, operation.kind, "a free connection", operation.summary.connection_s)
        if operation.is_awaited:
            _add_wait(waits, PROGRAM, f"the result of {operation.kind}", operation.duration)
    rows = [
        WaitRow(kind=kind, cause=cause, count=len(found), total=sum(found), longest=max(found))
        for (kind, cause), found in waits.items()
    ]
    return sorted(rows, key=lambda row: -row.total)


def _add_wait(waits: dict[tuple[str, str], list[float]], waiter: str, cause: str, seconds: float) -> None:
    if seconds >= MIN_WAIT_S:
        waits[waiter, cause].append(seconds)


def _stragglers(operations: Sequence[TracedOperation]) -> list[Straggler]:
    found = []
    for kind, group in _by_kind(operations).items():
        if len(group) < MIN_OF_KIND:
            continue
        median = percentile(sorted(operation.duration for operation in group), 50)
        for operation in group:
            if operation.duration < max(STRAGGLER_FACTOR * median, MIN_STRAGGLER_S):
                continue
            seconds, phase = max(zip(operation.summary.phases, PHASE_NAMES, strict=True))
            found.append(
                Straggler(
                    process=operation.process,
                    number=operation.number,
                    kind=kind,
                    asked=operation.asked,
                    duration=operation.duration,
                    median=median,
                    phase=phase,
                    phase_s=seconds,
                    retries=operation.summary.retries,
                )
            )
    return sorted(found, key=lambda straggler: -straggler.duration)[:MAX_STRAGGLERS]


def _retry_rows(operations: Sequence[TracedOperation]) -> list[RetryRow]:
    counts: Counter[tuple[str, str]] = Counter()
    pauses: dict[tuple[str, str], float] = defaultdict(float)
    for operation in operations:
        for event in operation.events:
            if event[0] in ("retry", "poll_error"):
                key = operation.kind, event[3]
                counts[key] += 1
                pauses[key] += event[4] if event[0] == "retry" else 0.0
    return [
        RetryRow(kind=kind, reason=reason, count=count, paused=pauses[kind, reason])
        for (kind, reason), count in counts.most_common()
    ]


def _longest_silence(operations: Sequence[TracedOperation]) -> Silence | None:
    times = sorted(time for op in operations for time in (op.asked, *(event[1] for event in op.events), op.end))
    if len(times) < 2:
        return None
    duration, start = max((later - time, time) for time, later in pairwise(times))
    end = start + duration
    under_way = Counter(op.kind for op in operations if op.asked <= start and op.end >= end)
    return Silence(start=start, duration=duration, under_way=dict(under_way))


def _model_rows(operations: Sequence[TracedOperation]) -> list[ModelRow]:
    groups: dict[str, list[TracedOperation]] = defaultdict(list)
    for operation in operations:
        if operation.input_tokens or operation.output_tokens:
            groups[operation.model or "unknown"].append(operation)

    def count(group: list[TracedOperation], kind: str, name: str) -> int:
        return sum(getattr(operation, name) for operation in group if operation.kind == kind)

    return [
        ModelRow(
            model=model,
            trained_tokens=count(group, "ForwardBackward", "input_tokens"),
            forward_tokens=count(group, "Forward", "input_tokens"),
            prompt_tokens=count(group, "Sample", "input_tokens"),
            cached_prompt_tokens=count(group, "Sample", "cached_tokens"),
            sampled_tokens=count(group, "Sample", "output_tokens"),
        )
        for model, group in sorted(groups.items())
    ]
