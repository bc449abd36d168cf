"""Regularizers that are a sum over positions: each position has a value that depends on its own log probability."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import attrs

from tinkerwire_base.lazy_numpy import Array, np
from tinkerwire_base.validators import require_optional_text, validator_of
from tinkerwire_generated import models

from .logprob_values import read_input, read_outputs, read_weights, require_shape
from .term import Evaluation, LossTerm

Reduction = Literal["sum", "mean"]
Formula = Callable[[Any, Any, Any], Any]
"""A function of numpy or torch, of log probabilities and of those of the reference, both flat."""


@attrs.frozen
class Formulas:
    """Value of one position, and its first and second derivative by the log probability."""

    value: Formula
    first: Formula
    second: Formula


@attrs.frozen(kw_only=True)
class Selection:
    """The positions of one datum that count."""

    positions: Array
    """Flat positions."""
    weights: Array
    reference: Array
    """Log probabilities of the reference at these positions; zeros without a reference."""


@attrs.frozen(eq=False)
class ElementwiseTerm(LossTerm):
    """A sum, or a weighted mean, over the positions of a batch.

    Args:
        name: name of the metric, without the reduction.
        formulas: the value of one position.
        reduction: sum or weighted mean.
        mask: the input with the weight of each position; None for ``mask``, then ``weights``, then all positions.
        reference: the input with the log probabilities of the reference, or the log probabilities of each datum;
            None if the formulas do not use them.
    """

    name: str
    formulas: Formulas
    reduction: Reduction = "sum"
    mask: str | None = None
    reference: Any = None

    def __attrs_post_init__(self) -> None:
        """Check the settings."""
        validator_of(Reduction)("reduction", self.reduction)
        require_optional_text("mask", self.mask)

    def metric_names(self) -> list[str]:
        """See :class:`LossTerm`."""
        return [f"{self.name}:{self.reduction}"]

    def evaluate(self, data: Sequence[models.Datum], logprobs: Sequence[Array]) -> Evaluation:
        """See :class:`LossTerm`."""
        selections = self._select(data, [array.shape for array in logprobs])
        scale = self._scale(selections)
        total, gradients, seconds = 0.0, [], []
        with np.errstate(over="ignore"):
            for selection, array in zip(selections, logprobs, strict=True):
                values = array.reshape(-1)[selection.positions]
                arguments = (np, values, selection.reference)
                weights = scale * selection.weights
                total += float((weights * self.formulas.value(*arguments)).sum())
                gradients.append(_spread(array.shape, selection.positions, weights * self.formulas.first(*arguments)))
                seconds.append(_spread(array.shape, selection.positions, weights * self.formulas.second(*arguments)))

        def multiply(vectors: Sequence[Array]) -> list[Array]:
            return [second * vector for second, vector in zip(seconds, vectors, strict=True)]

        return Evaluation(total, {self.metric_names()[0]: total}, gradients, multiply)

    def evaluate_torch(self, data: Sequence[models.Datum], logprobs: Sequence[Any]) -> tuple[Any, dict[str, float]]:
        """See :class:`LossTerm`."""
        import torch  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

        selections = self._select(data, [tuple(values.shape) for values in logprobs])
        scale = self._scale(selections)
        total: Any = 0.0
        for selection, tensor in zip(selections, logprobs, strict=True):
            values = tensor.reshape(-1)[torch.from_numpy(selection.positions).to(tensor.device)]
            reference, weights = (
                torch.as_tensor(array, dtype=tensor.dtype, device=tensor.device)
                for array in (selection.reference, scale * selection.weights)
            )
            total = total + (weights * self.formulas.value(torch, values, reference)).sum()
        return total, {self.metric_names()[0]: float(total.detach())}

    def _scale(self, selections: Sequence[Selection]) -> float:
        if self.reduction == "sum":
            return 1.0
        total = sum(float(selection.weights.sum()) for selection in selections)
        # Without a position that counts, the sum is 0, and so is the mean.
        return 1.0 / total if total else 0.0

    def _select(self, data: Sequence[models.Datum], shapes: Sequence[Sequence[int]]) -> list[Selection]:
        references = None
        if self.reference is not None and not isinstance(self.reference, str):
            references = read_outputs("reference", self.reference)
            if len(references) != len(data):
                raise ValueError(f"reference: expected {len(data)} items, one per datum, got {len(references)}")
        selections = []
        for position, (datum, shape) in enumerate(zip(data, shapes, strict=True)):
            weights = read_weights(position, datum, self.mask, shape)
            weights = np.ones(shape) if weights is None else weights
            positions = np.flatnonzero(weights)
            name = f"reference[{position}]"
            if references is not None:
                reference = references[position]
                require_shape(name, reference, shape)
            elif self.reference is not None:
                name = f"data[{position}]: {self.reference}"
                purpose = f"{self.name} needs the logprobs of the reference there"
                reference = read_input(position, datum, self.reference, shape, purpose)
            else:
                reference = np.zeros(shape)
            reference = reference.reshape(-1)[positions]
            if not np.isfinite(reference).all():
                place = np.flatnonzero(~np.isfinite(reference))[0]
                raise ValueError(f"{name} must be finite, got {reference[place]} at position {positions[place]}")
            selections.append(
                Selection(positions=positions, weights=weights.reshape(-1)[positions], reference=reference)
            )
        return selections


def _spread(shape: Sequence[int], positions: Array, values: Array) -> Array:
    """Return an array of a shape with values at flat positions, and 0 elsewhere."""
    spread = np.zeros(shape)
    spread.reshape(-1)[positions] = values
    return spread
