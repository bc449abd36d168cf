"""The results of a batch's chunks as one result: outputs in order, metrics by the reduction in their names.

A metric is called ``name:reduction``. Every combination gives an answer: a metric that only some chunks have is
combined over those, and a single value stays what it is; a reduction that is not known, or a name without one,
keeps its value when all chunks agree and otherwise is averaged like ``mean``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence

from tinkerwire_generated.models import ForwardBackwardOutput

Values = Sequence[float]
Weights = Sequence[int]


def combine(results: Sequence[ForwardBackwardOutput]) -> ForwardBackwardOutput:
    """One output of all chunks; weights are the chunks' datums. No chunks give an empty output."""
    outputs = [output for result in results for output in result.loss_fn_outputs]
    kind = next((r.loss_fn_output_type for r in results if r.loss_fn_output_type), "")
    weights = [len(result.loss_fn_outputs) for result in results]
    return ForwardBackwardOutput(
        loss_fn_output_type=kind,
        loss_fn_outputs=outputs,
        metrics=combine_metrics([result.metrics or {} for result in results], weights),
    )


def combine_metrics(metrics: Sequence[Mapping[str, object]], weights: Weights) -> dict[str, float]:
    """The metrics of all chunks; what is not a number counts as absent, chunks without datums weigh nothing."""
    names = dict.fromkeys(name for chunk in metrics for name in chunk)
    combined: dict[str, float] = {}
    for name in names:
        found = [(chunk.get(name), weight) for chunk, weight in zip(metrics, weights, strict=True)]
        pairs = [(value, weight) for value, weight in found if isinstance(value, int | float)]
        if not pairs:
            continue
        values, held = [v for v, _ in pairs], [w for _, w in pairs]
        if len(values) == 1:
            combined[name] = values[0]
        elif name.rpartition(":")[2] == "unique":
            combined.update(_numbered(name, values))
        else:
            reduce = REDUCTIONS.get(name.rpartition(":")[2], _agreed)
            combined[name] = reduce(values, held)
    return combined


def _mean(values: Values, weights: Weights) -> float:
    total = sum(weights)
    if total == 0:
        return sum(values) / len(values)
    return sum(v * w for v, w in zip(values, weights, strict=True) if w) / total


def _slack(values: Values, weights: Weights) -> float:
    return max(values) - _mean(values, weights)


def _hash_unordered(values: Values, _: Weights) -> float:
    # Any order of the chunks gives the same number, and it is the same in every process.
    bits = sum(struct.unpack("<Q", struct.pack("<d", float(value)))[0] for value in values) % 2**64
    return float(bits % 2**53)


def _agreed(values: Values, weights: Weights) -> float:
    return values[0] if all(value == values[0] for value in values) else _mean(values, weights)


def _numbered(name: str, values: Values) -> dict[str, float]:
    return {name if i == 0 else f"{name}_{i}": value for i, value in enumerate(values)}


REDUCTIONS: Mapping[str, Callable[[Values, Weights], float]] = {
    "mean": _mean,
    "sum": lambda values, _: sum(values),
    "min": lambda values, _: min(values),
    "max": lambda values, _: max(values),
    "slack": _slack,
    "hash_unordered": _hash_unordered,
}
