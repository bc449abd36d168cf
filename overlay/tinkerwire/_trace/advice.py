"""Advice that follows from a trace: each rule finds a pattern that costs time, and states the figures that prove it.

A rule gives no advice when the trace leaves a doubt: about what samples depend on each other, for example, or about
losses that cannot be joined.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import attrs

from .analysis import busy_time, percentile
from .reading import Trace, TracedOperation

MIN_STEPS = 3
"""Steps with a pattern, before it is one of the program's loop."""
MIN_SHARE = 0.5
"""Share of the steps, or of the samples, that have it."""
MIN_SAMPLES = 10
BATCH_KINDS = ("ForwardBackward", "Forward")
DEFAULT_LIMITS = {"max_datums": 128, "max_values": 500_000, "max_body_bytes": 5_000_000}
"""The limits of ChunkLimits() of this version, which every server is expected to accept."""
BUSY_REASONS = frozenset({"HTTP 429", "HTTP 503"})
"""Retries of a server that does not allow more at once."""


@attrs.frozen(kw_only=True)
class Advice:
    """One piece of advice."""

    rule: str
    """Name of the rule."""
    text: str
    """Sentences that state the figures and the remedy."""
    seconds: float
    """Time of the run that the pattern took; 0 if it is unknown."""


def find_advice(trace: Trace) -> list[Advice]:
    """Return the advice that a trace proves, that about the longest time first."""
    found = [advice for rule in ADVICE_RULES for advice in rule(trace.operations)]
    return sorted(found, key=lambda advice: -advice.seconds)


@attrs.frozen
class _SplitBatch:
    """Size, requests and limits of one batch: the values of a ``split`` event."""

    datums: int
    values: int
    chunks: int
    max_datums: int
    max_values: int
    max_body_bytes: int
    server_datums: int
    server_body_bytes: int
    loss: str

    @property
    def limits(self) -> tuple[int, int, int]:
        """Datums, values and bytes that one request could have."""
        return self.max_datums, self.max_values, self.max_body_bytes

    @property
    def allowed(self) -> tuple[int, int, int]:
        """Datums, values and bytes that one request may have by default."""
        return (
            max(1, min(DEFAULT_LIMITS["max_datums"], self.server_datums)),
            DEFAULT_LIMITS["max_values"],
            max(1, min(DEFAULT_LIMITS["max_body_bytes"], self.server_body_bytes)),
        )


def _split(operation: TracedOperation) -> _SplitBatch | None:
    values = operation.values("split")
    return _SplitBatch(*values[-1]) if len(values) == 1 else None


def _sent_bytes(operation: TracedOperation) -> int:
    """Return the bytes of the requests of a batch that the server accepted."""
    sizes: dict[int, int] = {}
    total = 0
    for event in operation.events:
        if event[0] == "send":
            sizes[event[2]] = event[3]
        elif event[0] == "response" and event[3] < 300:
            total += sizes.get(event[2], 0)
    return total


def _training(operations: Sequence[TracedOperation]) -> Iterator[list[TracedOperation]]:
    """Yield the successful operations on each model, in the order of the calls."""
    models: dict[tuple[str, str], list[TracedOperation]] = defaultdict(list)
    for operation in operations:
        if operation.model_id and operation.kind != "Sample" and operation.outcome == "done":
            models[operation.process, operation.model_id].append(operation)
    yield from models.values()


def _share(seconds: float, operations: Sequence[TracedOperation]) -> str:
    duration = max(op.end for op in operations) - min(op.asked for op in operations)
    return f"{seconds:.3g} s, {seconds / duration:.0%} of the run" if duration > 0 else f"{seconds:.3g} s"


def find_lost_cycles(operations: Sequence[TracedOperation]) -> Iterator[Advice]:
    """Find forward_backward calls whose result is awaited before optim_step is called."""
    for model in _training(operations):
        steps = [(a, b) for a, b in pairwise(model) if a.kind == "ForwardBackward" and b.kind == "OptimStep"]
        lost = []
        for batch, step in steps:
            ready, accepted = batch.last("ready"), step.last("response")
            if batch.is_awaited and step.asked >= batch.end and ready is not None and accepted is not None:
                lost.append(accepted - ready)
        if len(lost) >= MIN_STEPS and len(lost) >= MIN_SHARE * len(steps):
            yield Advice(
                rule="forward_backward awaited before optim_step",
                text=(
                    f"In {len(lost)} of {len(steps)} steps, the program waited for the result of forward_backward "
                    "before it called optim_step. From the result until the server had the optim_step, the model had "
                    f"nothing to do: {percentile(sorted(lost), 50) * 1000:.3g} ms a step (median), "
                    f"{_share(sum(lost), operations)}; a server that works in cycles loses one a step. Call optim_step "
                    "right after forward_backward, then wait for both results."
                ),
                seconds=sum(lost),
            )


def find_single_samples(operations: Sequence[TracedOperation]) -> Iterator[Advice]:
    """Find samples that are asked one by one although none can depend on the one before."""
    processes: dict[str, list[TracedOperation]] = defaultdict(list)
    for operation in operations:
        if operation.kind == "Sample":
            processes[operation.process].append(operation)
    for samples in processes.values():
        single: dict[int, TracedOperation] = {}
        under_way_until = -math.inf
        for before, sample in pairwise(samples):
            is_alone = before.asked >= under_way_until and sample.asked >= before.end
            under_way_until = max(under_way_until, before.end)
            # A prompt that continues the one before is at least as long as that one and its sample.
            is_independent = 0 < sample.input_tokens < before.input_tokens + before.output_tokens
            if is_alone and is_independent and before.is_awaited and sample.sampler == before.sampler:
                single[before.number], single[sample.number] = before, sample
        if len(single) >= MIN_SAMPLES and len(single) >= MIN_SHARE * len(samples):
            seconds = busy_time(single.values())
            yield Advice(
                rule="samples asked one by one",
                text=(
                    f"{len(single)} of {len(samples)} samples were asked one by one, each after the result of the one "
                    f"before: {_share(seconds, operations)}. Their prompts are too short to continue the one before. "
                    "Call sample() for all of them and then wait, as with tinkerwire.gather(futures).result(), or use "
                    "num_samples for one prompt: servers sample many at once."
                ),
                seconds=seconds,
            )


def find_small_batches(operations: Sequence[TracedOperation]) -> Iterator[Advice]:
    """Find steps with several forward_backward calls that fit into one request."""
    for model in _training(operations):
        mergeable: list[list[TracedOperation]] = []
        count, group = 0, list[TracedOperation]()
        for operation in model:
            if operation.kind == "ForwardBackward":
                group.append(operation)
            elif operation.kind == "OptimStep":
                count += bool(group)
                if _fit_one_request(group):
                    mergeable.append(group)
                group = []
            else:
                group = []
        if len(mergeable) < MIN_STEPS or len(mergeable) < MIN_SHARE * count:
            continue
        typical = sorted(mergeable, key=len)[len(mergeable) // 2]
        splits = [split for split in map(_split, typical) if split is not None]
        datums, values, size = splits[0].allowed
        seconds = sum(busy_time(calls) for calls in mergeable)
        yield Advice(
            rule="batches too small",
            text=(
                f"{len(mergeable)} of {count} steps had several forward_backward calls with the same loss, typically "
                f"{len(typical)} with {sum(split.datums for split in splits)} datums. They fit into one request: "
                f"{sum(split.datums for split in splits):,} of {datums:,} datums, "
                f"{sum(split.values for split in splits):,} of {values:,} values, "
                f"{sum(map(_sent_bytes, typical)):,} of {size:,} bytes. The calls took {_share(seconds, operations)}. "
                "One call with all datums accumulates the same gradient."
            ),
            seconds=seconds,
        )


def _fit_one_request(calls: Sequence[TracedOperation]) -> bool:
    splits = [_split(call) for call in calls]
    known = [split for split in splits if split is not None and split.chunks == 1]
    if len(calls) < 2 or len(known) != len(calls) or len({split.loss for split in known}) != 1:
        return False
    sizes = sum(split.datums for split in known), sum(split.values for split in known), sum(map(_sent_bytes, calls))
    return all(size <= most for size, most in zip(sizes, known[0].allowed, strict=True))


def find_many_chunks(operations: Sequence[TracedOperation]) -> Iterator[Advice]:
    """Find batches that go out in more requests than the default limits require."""
    for model in _training(operations):
        batches = [(op, split) for op in model if op.kind in BATCH_KINDS and (split := _split(op)) is not None]
        found: list[tuple[TracedOperation, _SplitBatch, int]] = []
        for batch, split in batches:
            sizes = split.datums, split.values, _sent_bytes(batch)
            needed = max(math.ceil(size / most) for size, most in zip(sizes, split.allowed, strict=True))
            is_limited = any(limit < most for limit, most in zip(split.limits, split.allowed, strict=True))
            if is_limited and split.chunks >= 2 * needed:
                found.append((batch, split, needed))
        if len(found) < MIN_STEPS or len(found) < MIN_SHARE * len(batches):
            continue
        _, split, needed = found[len(found) // 2]
        seconds = busy_time([batch for batch, _, _ in found])
        yield Advice(
            rule="too many chunks",
            text=(
                f"{len(found)} of {len(batches)} batches went out in more requests than needed: {split.datums} "
                f"datums in {split.chunks} requests, because chunk_limits allows max_datums={split.max_datums:,}, "
                f"max_values={split.max_values:,} and max_body_bytes={split.max_body_bytes:,}. The default limits, and "
                f"those of the server, allow {needed}. These batches took {_share(seconds, operations)}. Omit "
                "chunk_limits."
            ),
            seconds=seconds,
        )


def find_needless_saves(operations: Sequence[TracedOperation]) -> Iterator[Advice]:
    """Find saves of weights that did not change, samplers without samples, and states saved in every step."""
    for model in _training(operations):
        yield from _find_repeated_saves(model, operations)
        yield from _find_saves_in_every_step(model, operations)
        yield from _find_unused_samplers(model, operations)


def _find_repeated_saves(model: Sequence[TracedOperation], operations: Sequence[TracedOperation]) -> Iterator[Advice]:
    saved: set[str] = set()
    repeated: list[TracedOperation] = []
    for operation in model:
        if operation.kind in ("OptimStep", "LoadWeights", "LoadWeightsWithOptimizer"):
            saved.clear()
        elif operation.kind.startswith("SaveWeights"):
            if operation.kind in saved:
                repeated.append(operation)
            saved.add(operation.kind)
    if len(repeated) >= MIN_STEPS:
        seconds = busy_time(repeated)
        yield Advice(
            rule="weights saved that had not changed",
            text=(
                f"{len(repeated)} saves ({', '.join(sorted({op.kind for op in repeated}))}) had no optim_step since "
                f"the save before them, and hold the same weights: {_share(seconds, operations)}. Use the first one."
            ),
            seconds=seconds,
        )


def _find_saves_in_every_step(
    model: Sequence[TracedOperation], operations: Sequence[TracedOperation]
) -> Iterator[Advice]:
    steps = sum(operation.kind == "OptimStep" for operation in model)
    saves = [op for before, op in pairwise(model) if op.kind == "SaveWeights" and before.kind == "OptimStep"]
    asked = [operation.asked for operation in operations]
    awaited = [
        save for save in saves if save.is_awaited and bisect_right(asked, save.asked) == bisect_left(asked, save.end)
    ]
    is_loaded = any(operation.kind.startswith("LoadWeights") for operation in operations)
    if len(awaited) >= MIN_STEPS and len(awaited) >= 0.8 * steps and not is_loaded:
        seconds = busy_time(awaited)
        yield Advice(
            rule="state saved in every step",
            text=(
                f"save_state was called after {len(saves)} of {steps} steps, and nothing else ran while the program "
                f"waited for {len(awaited)} of the saves: {_share(seconds, operations)}. This run loaded none of them. "
                "Save every few steps, and wait for a save only after the next step has been sent."
            ),
            seconds=seconds,
        )


def _find_unused_samplers(model: Sequence[TracedOperation], operations: Sequence[TracedOperation]) -> Iterator[Advice]:
    used = {operation.sampler for operation in operations if operation.kind == "Sample"}
    saves = [op for op in model if op.kind == "SaveWeightsForSampler" and op.sampler]
    unused = [save for save in saves if save.sampler not in used]
    if len(unused) >= MIN_STEPS and len(unused) >= MIN_SHARE * len(saves):
        seconds = busy_time(unused)
        yield Advice(
            rule="samplers without samples",
            text=(
                f"{len(unused)} of {len(saves)} calls of save_weights_and_get_sampling_client made a sampler that no "
                f"sample of this trace used: {_share(seconds, operations)}. Call it only before you sample."
            ),
            seconds=seconds,
        )


def find_low_concurrency(operations: Sequence[TracedOperation]) -> Iterator[Advice]:
    """Find samples that wait for a slot of max_connections, though the server never pushed back."""
    clients: dict[tuple[str, int], list[TracedOperation]] = defaultdict(list)
    for operation in operations:
        if operation.kind == "Sample":
            clients[operation.process, operation.client].append(operation)
    for samples in clients.values():
        if any(event[0] == "retry" and event[3] in BUSY_REASONS for op in samples for event in op.events):
            continue
        waited: list[float] = []
        ceiling = math.inf
        for sample in samples:
            for in_flight, limit in sample.values("slot")[:1]:
                slot, started = sample.last("slot"), sample.last("start")
                if limit is not None and in_flight >= limit and slot is not None and started is not None:
                    waited.append(slot - sample.asked)
                    ceiling = limit
        if len(waited) >= MIN_SAMPLES and len(waited) >= MIN_SHARE * len(samples):
            yield Advice(
                rule="concurrency below what the server allows",
                text=(
                    f"{len(waited)} of {len(samples)} samples waited until fewer than {ceiling:,.0f} were in flight, "
                    f"{percentile(sorted(waited), 50):.3g} s each (median): RetryConfig(max_connections={ceiling:.0f}) "
                    "allows no more. The server rejected none of them as too many. Raise max_connections: the client "
                    "lowers the number by itself when a server pushes back."
                ),
                seconds=max(waited),
            )


ADVICE_RULES: tuple[Callable[[Sequence[TracedOperation]], Iterator[Advice]], ...] = (
    find_lost_cycles,
    find_single_samples,
    find_small_batches,
    find_many_chunks,
    find_needless_saves,
    find_low_concurrency,
)
