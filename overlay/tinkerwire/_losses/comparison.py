"""Comparison of the log probabilities of sampling with those of training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from tinkerwire_base.lazy_numpy import Array, np
from tinkerwire_generated import models

from .logprob_values import (
    read_numbers,
    read_outputs,
    read_weights,
    require_items,
    require_shape,
    require_weights,
)


@attrs.frozen(kw_only=True)
class LogprobComparison:
    """Gap between sampling and training, over the tokens that count; from :func:`compare_logprobs`.

    With ``r``, the probability of a token in training divided by that in sampling, the three estimates of the
    Kullback-Leibler divergence KL(sampling || training) are means per token, in nats. All are 0 without a gap.

    Example:
        >>> from tinkerwire.training import compare_logprobs
        >>> gap = compare_logprobs([[-1.0, -2.0]], [[-1.1, -1.9]])
        >>> gap.count, round(gap.k2, 4), round(gap.largest_ratio, 4)
        (2, 0.005, 1.1052)
    """

    k1: float
    """Mean of ``-log r``: unbiased; it can be negative."""
    k2: float
    """Mean of ``(log r)**2 / 2``: biased, of low variance."""
    k3: float
    """Mean of ``r - 1 - log r``: unbiased, and never negative."""
    largest_ratio: float
    """Largest ``r``, the largest importance weight; 1.0 without tokens."""
    smallest_ratio: float
    """Smallest ``r``; 1.0 without tokens."""
    worst: tuple[int, int] | None
    """Datum and position with the largest absolute ``log r``; None without tokens."""
    count: int
    """Number of tokens that count."""

    def metrics(self, prefix: str = "sample_train/") -> dict[str, float]:
        """Return the numbers by name, for a logger."""
        values = attrs.asdict(self)
        del values["worst"]
        return {f"{prefix}{name}": float(value) for name, value in values.items()}


def compare_logprobs(
    sampled: Sequence[models.Datum | models.SampledSequence | Any],
    trained: models.ForwardBackwardOutput | Sequence[Any],
    *,
    masks: Sequence[Any] | None = None,
) -> LogprobComparison:
    """Compare the log probabilities that sampling returned with those of the same tokens in training.

    Servers sample and train with different programs; a large gap makes the updates of reinforcement learning wrong.
    Call this with the batch and the result of its first forward_backward: later steps change the weights.

    Args:
        sampled: one item per datum. A Datum has the log probabilities of sampling in ``loss_fn_inputs["logprobs"]``.
            A SampledSequence is compared with the end of the datum that it is the end of. A list or array has one
            value per position.
        trained: the result of forward or forward_backward, or a list with the log probabilities of each datum.
        masks: one list or array per datum; a position counts if its value is greater than 0. None selects the input
            ``mask`` of a Datum, then ``weights``. If it has neither, positions whose ``logprobs`` and ``advantages``
            are both 0 are those of the prompt, and do not count.

    Returns:
        The estimates, the largest ratio and the number of tokens. All log probabilities are in nats.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: the numbers of datums or positions differ, log probabilities are missing, or one that counts is
            NaN or infinite. A log probability of minus infinity in training is valid: its ratio is 0.
    """
    require_items("sampled", sampled, "a list with one item per datum")
    outputs = read_outputs("trained", trained)
    _require_equal_length("trained", len(outputs), len(sampled))
    if masks is not None:
        require_items("masks", masks, "a list with one item per datum")
        _require_equal_length("masks", len(masks), len(sampled))
    gaps: list[Array] = []
    places: list[tuple[int, Array]] = []
    for number, (item, training) in enumerate(zip(sampled, outputs, strict=True)):
        sampling, start = _sampling_logprobs(number, item, training)
        compared = training[start:] if start else training
        require_shape(f"sampled[{number}]", sampling, compared.shape)
        counts = _counts(number, item, sampling, None if masks is None else masks[number], start)
        positions = np.flatnonzero(counts)
        before, after = sampling.reshape(-1)[positions], compared.reshape(-1)[positions]
        _require_logprobs(f"sampled[{number}]", before, positions, "finite")
        _require_logprobs(f"trained[{number}]", after, positions + start, "finite, or minus infinity")
        gaps.append(after - before)
        places.append((number, positions + start))
    return _summarize(np.concatenate(gaps) if gaps else np.zeros(0), places)


def _require_equal_length(name: str, length: int, expected: int) -> None:
    if length != expected:
        raise ValueError(f"{name}: expected {expected} items, as in sampled, got {length}")


def _sampling_logprobs(number: int, item: Any, training: Array) -> tuple[Array, int]:
    """Return the log probabilities of sampling, and the position of training at which they start."""
    name = f"sampled[{number}]"
    if isinstance(item, models.Datum):
        tensor = item.loss_fn_inputs.get("logprobs")
        if tensor is None:
            raise ValueError(
                f"{name}: no 'logprobs' in loss_fn_inputs; a Datum needs the log probabilities of sampling there, "
                "0 for the positions of the prompt"
            )
        return tensor.to_numpy().astype(np.float64), 0
    if isinstance(item, models.SampledSequence):
        logprobs = item.logprobs_np
        if logprobs is None:
            raise ValueError(f"{name}: the sample has no logprobs; the server must return them")
        if len(logprobs) > len(training):
            raise ValueError(
                f"{name}: the sample has {len(logprobs)} tokens, and the datum only {len(training)} positions"
            )
        return np.asarray(logprobs, np.float64), len(training) - len(logprobs)
    return read_numbers(name, item), 0


def _counts(number: int, item: Any, sampling: Array, mask: Any, start: int) -> Array:
    """Return the positions that count, as booleans."""
    if mask is not None:
        name = f"masks[{number}]"
        weights = read_numbers(name, mask)
        weights = weights[start:] if start and len(weights) == start + len(sampling) else weights
        require_shape(name, weights, sampling.shape)
        require_weights(name, weights)
        return weights > 0
    if not isinstance(item, models.Datum):
        return np.ones(sampling.shape, bool)
    found = read_weights(number, item, None, sampling.shape)
    if found is not None:
        return found > 0
    advantages = item.loss_fn_inputs.get("advantages")
    is_in_prompt: Array = sampling == 0
    if advantages is not None:
        values = advantages.to_numpy()
        require_shape(f"sampled[{number}]: advantages", values, sampling.shape)
        is_in_prompt &= values == 0
    return ~is_in_prompt


def _require_logprobs(name: str, values: Array, positions: Array, allowed: str) -> None:
    is_valid = np.isfinite(values) | ((values == -np.inf) & (allowed != "finite"))
    if not is_valid.all():
        place = np.flatnonzero(~is_valid)[0]
        raise ValueError(f"{name}: the logprob at position {positions[place]} must be {allowed}, got {values[place]}")


def _summarize(log_ratios: Array, places: list[tuple[int, Array]]) -> LogprobComparison:
    count = len(log_ratios)
    if not count:
        return LogprobComparison(k1=0.0, k2=0.0, k3=0.0, largest_ratio=1.0, smallest_ratio=1.0, worst=None, count=0)
    with np.errstate(over="ignore"):
        ratios = np.exp(log_ratios)
        # expm1 keeps the digits of small gaps.
        k3 = np.expm1(log_ratios) - log_ratios
    index = int(np.abs(log_ratios).argmax())
    worst = None
    for number, positions in places:
        if index < len(positions):
            worst = (number, int(positions[index]))
            break
        index -= len(positions)
    return LogprobComparison(
        k1=float(-log_ratios.mean()),
        k2=float((log_ratios**2).mean() / 2),
        k3=float(k3.mean()),
        largest_ratio=float(ratios.max()),
        smallest_ratio=float(ratios.min()),
        worst=worst,
        count=count,
    )
