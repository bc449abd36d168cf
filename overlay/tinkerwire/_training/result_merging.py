"""Merging of the results of a batch's chunks: outputs in order, metrics by the reduction in their names.

A metric is called ``name:reduction``; REDUCTIONS has the reductions of all wire versions. A metric that only some
chunks have is reduced over those; a single value does not change. If the reduction is unknown, equal values are kept
and different values are averaged like ``mean``, with a warning.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from math import prod

from tinkerwire_base.errors import APIResponseValidationError, ResponseInfo
from tinkerwire_base.lazy_numpy import np
from tinkerwire_generated import models

from .metrics import Warn, read_metrics

PER_TARGET = ("logprobs", "elementwise_loss")
"""Outputs with one value per target token."""


def check_outputs(chunk: Sequence[models.Datum], first: int, output: models.ForwardBackwardOutput) -> None:
    """Compare the outputs of one chunk, whose first datum is ``first`` in the batch, with its datums.

    Some servers return no outputs at all. No output can be taken for another then, so that it is not an error.

    Raises:
        APIResponseValidationError: there are too few or too many outputs, or the size of one differs from its datum.
    """
    outputs = output.loss_fn_outputs
    if not outputs:
        return
    if len(outputs) != len(chunk):
        last = first + len(chunk) - 1
        raise _invalid_response(
            f"the server must return {len(chunk)} outputs for data[{first}] to data[{last}], got {len(outputs)}"
        )
    for position, (datum, tensors) in enumerate(zip(chunk, outputs, strict=True), first):
        targets = datum.loss_fn_inputs.get("target_tokens")
        if targets is None:
            continue
        for name in PER_TARGET:
            tensor = tensors.get(name)
            if tensor is not None:
                _check_size(position, name, tensor, targets, datum.loss_fn_inputs.get("weights"))


def check_all_or_none(
    chunks: Sequence[Sequence[models.Datum]], results: Sequence[models.ForwardBackwardOutput]
) -> None:
    """Raise an error if only some chunks have outputs: outputs would move to other datums."""
    if not any(result.loss_fn_outputs for result in results):
        return
    first = 0
    for chunk, result in zip(chunks, results, strict=True):
        if not result.loss_fn_outputs:
            raise _invalid_response(
                f"the server returned outputs for some chunks, but not for data[{first}] to "
                f"data[{first + len(chunk) - 1}]"
            )
        first += len(chunk)


def _check_size(
    position: int, name: str, tensor: models.TensorData, targets: models.TensorData, weights: models.TensorData | None
) -> None:
    size, expected = _size(tensor), _size(targets)
    # With several targets per position, one value per position is valid, too.
    if size == expected or (targets.shape and size == targets.shape[0]):
        return
    # Servers may omit positions of weight 0, which are padding.
    if size < expected and weights is not None and size >= np.count_nonzero(weights.to_numpy()) > 0:
        return
    raise _invalid_response(
        f"data[{position}]: the server must return {expected} {name}, one per target token, got {size}"
    )


def _size(tensor: models.TensorData) -> int:
    return len(tensor.raw) if tensor.shape is None else prod(tensor.shape)


def _invalid_response(text: str) -> APIResponseValidationError:
    return APIResponseValidationError(ResponseInfo(status_code=200), message=text)


Values = Sequence[float]
ChunkWeights = Sequence[int]


def _ignore(name: str, text: str) -> None:
    """Ignore a warning."""


def merge_results(
    results: Sequence[models.ForwardBackwardOutput], weights: ChunkWeights | None = None, warn: Warn = _ignore
) -> models.ForwardBackwardOutput:
    """Merge the results of all chunks; without chunks, the result is empty.

    Args:
        results: the results of the chunks, in order.
        weights: number of datums of each chunk; None uses the number of outputs.
        warn: called with the name of a metric that cannot be read or merged exactly, and the reason.
    """
    if weights is None:
        weights = [len(result.loss_fn_outputs) for result in results]
    outputs = [output for result in results for output in result.loss_fn_outputs]
    kind = next((r.loss_fn_output_type for r in results if r.loss_fn_output_type), "")
    return models.ForwardBackwardOutput(
        loss_fn_output_type=kind,
        loss_fn_outputs=outputs,
        metrics=merge_metrics([result.metrics or {} for result in results], weights, warn),
    )


def merge_metrics(
    metrics: Sequence[Mapping[str, object]], weights: ChunkWeights, warn: Warn = _ignore
) -> dict[str, float]:
    """Merge the metrics of all chunks; chunks without datums have no weight, and values other than numbers are dropped.

    Args:
        metrics: the metrics of each chunk.
        weights: number of datums of each chunk.
        warn: called with the name of a metric that cannot be read or merged exactly, and the reason.
    """
    numbers = [read_metrics(chunk, warn) for chunk in metrics]
    names = dict.fromkeys(name for chunk in numbers for name in chunk)
    merged: dict[str, float] = {}
    for name in names:
        pairs = [(chunk[name], weight) for chunk, weight in zip(numbers, weights, strict=True) if name in chunk]
        values, present_weights = [value for value, _ in pairs], [weight for _, weight in pairs]
        suffix = name.rpartition(":")[2] if ":" in name else ""
        if suffix == "hash2":
            merged[name] = _hash2(values, present_weights)
        elif len(values) == 1:
            merged[name] = values[0]
        elif suffix == "unique":
            merged.update(_number_values(name, values))
        else:
            if suffix not in REDUCTIONS:
                warn(name, f"the reduction {suffix!r} is unknown; different values of chunks are averaged")
            merged[name] = REDUCTIONS.get(suffix, _mean_unless_equal)(values, present_weights)
    return merged


def _mean(values: Values, weights: ChunkWeights) -> float:
    total = sum(weights)
    if total == 0:
        return sum(values) / len(values)
    return sum(v * w for v, w in zip(values, weights, strict=True) if w) / total


def _slack(values: Values, weights: ChunkWeights) -> float:
    return max(values) - _mean(values, weights)


def _hash_unordered(values: Values, _: ChunkWeights) -> float:
    """Hash the sorted integers as the official client does; hashes of integers are the same in every process."""
    return hash(tuple(sorted(map(int, values)))) if all(map(math.isfinite, values)) else math.nan


def _hash2(values: Values, _: ChunkWeights) -> float:
    """Sum integers modulo 2^64. The sum is exact: it is an int."""
    return sum(map(int, values)) % 2**64 if all(map(math.isfinite, values)) else math.nan


def _mean_unless_equal(values: Values, weights: ChunkWeights) -> float:
    return values[0] if all(value == values[0] for value in values) else _mean(values, weights)


def _number_values(name: str, values: Values) -> dict[str, float]:
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
