"""The results of a batch's chunks as one result: outputs in order, metrics by the reduction in their names.

A metric is called ``name:reduction``; REDUCTIONS has the rules of all wire versions. Every combination gives an
answer: a metric that only some chunks have is combined over those, and a single value stays what it is. A name whose
reduction is unknown keeps its value when all chunks agree and is otherwise averaged like ``mean``, with a warning.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from tinkerwire_generated.models import ForwardBackwardOutput

from .metrics import Warn, read_metrics

Values = Sequence[float]
ChunkWeights = Sequence[int]


def _ignore(name: str, text: str) -> None:
    """Warn of nothing."""


def merge_results(
    results: Sequence[ForwardBackwardOutput], weights: ChunkWeights | None = None, warn: Warn = _ignore
) -> ForwardBackwardOutput:
    """Combine the outputs of all chunks. No chunks give an empty output.

    ``weights`` are the chunks' datums, by default as many as they have outputs.
    """
    if weights is None:
        weights = [len(result.loss_fn_outputs) for result in results]
    outputs = [output for result in results for output in result.loss_fn_outputs]
    kind = next((r.loss_fn_output_type for r in results if r.loss_fn_output_type), "")
    return ForwardBackwardOutput(
        loss_fn_output_type=kind,
        loss_fn_outputs=outputs,
        metrics=merge_metrics([result.metrics or {} for result in results], weights, warn),
    )


def merge_metrics(
    metrics: Sequence[Mapping[str, object]], weights: ChunkWeights, warn: Warn = _ignore
) -> dict[str, float]:
    """Combine the metrics of all chunks; chunks without datums weigh nothing, what is no number is left out.

    ``warn`` gets the name of a metric that cannot be read or combined for certain, and what is done about it.
    """
    read = [read_metrics(chunk, warn) for chunk in metrics]
    names = dict.fromkeys(name for chunk in read for name in chunk)
    combined: dict[str, float] = {}
    for name in names:
        pairs = [(chunk[name], weight) for chunk, weight in zip(read, weights, strict=True) if name in chunk]
        values, held = [value for value, _ in pairs], [weight for _, weight in pairs]
        suffix = name.rpartition(":")[2] if ":" in name else ""
        if suffix == "hash2":
            combined[name] = _hash2(values, held)
        elif len(values) == 1:
            combined[name] = values[0]
        elif suffix == "unique":
            combined.update(_numbered(name, values))
        else:
            if suffix not in REDUCTIONS:
                warn(name, f"its reduction {suffix!r} is unknown, so chunks that differ are averaged")
            combined[name] = REDUCTIONS.get(suffix, _agreed)(values, held)
    return combined


def _mean(values: Values, weights: ChunkWeights) -> float:
    total = sum(weights)
    if total == 0:
        return sum(values) / len(values)
    return sum(v * w for v, w in zip(values, weights, strict=True) if w) / total


def _slack(values: Values, weights: ChunkWeights) -> float:
    return max(values) - _mean(values, weights)


def _hash_unordered(values: Values, _: ChunkWeights) -> float:
    """Hash the sorted integers as the official client does; Python hashes integers alike in every process."""
    return hash(tuple(sorted(map(int, values)))) if all(map(math.isfinite, values)) else math.nan


def _hash2(values: Values, _: ChunkWeights) -> float:
    """Sum integers modulo 2^64. The sum is exact: it is an int."""
    return sum(map(int, values)) % 2**64 if all(map(math.isfinite, values)) else math.nan


def _agreed(values: Values, weights: ChunkWeights) -> float:
    return values[0] if all(value == values[0] for value in values) else _mean(values, weights)


def _numbered(name: str, values: Values) -> dict[str, float]:
    return {name if i == 0 else f"{name}_{i}": value for i, value in enumerate(values)}


REDUCTIONS: Mapping[str, Callable[[Values, ChunkWeights], float]] = {
    "mean": _mean,
    "sum": lambda values, _: sum(values),
    "min": lambda values, _: min(values),
    "max": lambda values, _: max(values),
    "slack": _slack,
    "hash_unordered": _hash_unordered,
    "hash2": _hash2,
}
