"""Regularizer of the gradient of another loss by the log probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from tinkerwire_base.lazy_numpy import Array, np
from tinkerwire_base.validators import require_optional_text
from tinkerwire_generated import models

from .logprob_values import require_finite_number
from .term import Evaluation, FunctionTerm, LossTerm, WeightedSum, as_term, zero_with_graph


def gradient_penalty(loss: Any, *, target: float = 0.0, name: str | None = None) -> LossTerm:
    """Penalize how far the norm of the gradient of a loss is from a target, summed over the datums of the batch.

    A datum has the value ``(norm - target)**2``, with the Euclidean norm of the gradient of ``loss`` by the log
    probabilities of the datum. The value of ``loss`` itself is not added.

    Args:
        loss: a term, or a function for forward_backward_custom that torch can differentiate twice. In numpy, only
            terms of this package, and their sums, have second derivatives.
        target: the norm without a penalty, at least 0.
        name: name of the metric, to which ``:sum`` is added; None for ``gradient_penalty``.

    Raises:
        TypeError, ValueError: an argument is invalid. Raised for a batch: the second derivatives are unknown.
    """
    norm = require_finite_number("target", target)
    if norm < 0:
        raise ValueError(f"target must be at least 0, got {target}")
    require_optional_text("name", name)
    return GradientPenalty(as_term("loss", loss), norm, name or "gradient_penalty")


@attrs.frozen
class GradientPenalty(LossTerm):
    """See :func:`gradient_penalty`."""

    loss: LossTerm
    target: float
    name: str

    def metric_names(self) -> list[str]:
        """See :class:`LossTerm`."""
        return [f"{self.name}:sum"]

    def evaluate(self, data: Sequence[models.Datum], logprobs: Sequence[Array]) -> Evaluation:
        """See :class:`LossTerm`."""
        inner = self.loss.evaluate(data, logprobs)
        if inner.curvature is None:
            raise ValueError(
                f"{self.name}: the second derivatives of the loss are unknown in numpy; use torch, or a loss of terms "
                "of tinkerwire.training"
            )
        norms = [float(np.linalg.norm(gradient)) for gradient in inner.gradients]
        total = sum((norm - self.target) ** 2 for norm in norms)
        gradients = inner.curvature(
            [self._slope(norm) * gradient for norm, gradient in zip(norms, inner.gradients, strict=True)]
        )
        return Evaluation(total, {self.metric_names()[0]: total}, gradients)

    def evaluate_torch(self, data: Sequence[models.Datum], logprobs: Sequence[Any]) -> tuple[Any, dict[str, float]]:
        """See :class:`LossTerm`."""
        import torch  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

        for function in _functions(self.loss):
            if function.returns_gradients(data, logprobs):
                raise ValueError(
                    f"{self.name}: {function.name} returns its own gradients, which torch cannot differentiate; "
                    "return (loss, metrics) from it"
                )
        value, _ = self.loss.evaluate_torch(data, logprobs)
        zero = zero_with_graph(logprobs)
        found: Sequence[Any] = [None] * len(logprobs)
        if getattr(value, "requires_grad", False):
            found = torch.autograd.grad(value, list(logprobs), create_graph=True, allow_unused=True)
        total: Any = zero
        for gradient in found:
            square: Any = zero if gradient is None else (gradient**2).sum()
            # The norm has no derivative at 0.
            is_zero = float(square.detach()) == 0.0
            norm = 0.0 if is_zero else square.sqrt()
            total = total + (square if self.target == 0 else (norm - self.target) ** 2)
        return total, {self.metric_names()[0]: float(total.detach())}

    def _slope(self, norm: float) -> float:
        """Return the derivative of the penalty by the norm, divided by the norm."""
        if self.target == 0:
            return 2.0
        return 0.0 if norm == 0 else 2.0 * (norm - self.target) / norm


def _functions(term: LossTerm) -> Iterator[FunctionTerm]:
    """Yield the functions of the user in a term."""
    if isinstance(term, FunctionTerm):
        yield term
    elif isinstance(term, WeightedSum):
        for _, part in term.parts:
            yield from _functions(part)
    elif isinstance(term, GradientPenalty):
        yield from _functions(term.loss)
