"""Terms of a custom loss: functions of log probabilities that can be added, subtracted and multiplied by numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import attrs

from tinkerwire_base.lazy_numpy import Array, np
from tinkerwire_generated import models

from .logprob_values import require_finite_number

Product = Callable[[Sequence[Array]], list[Array]]
"""Multiplies the matrix of second derivatives by one vector per datum."""


@attrs.frozen
class Evaluation:
    """Value of a term for a batch in numpy, with its derivatives by the log probabilities."""

    value: float
    metrics: dict[str, float]
    gradients: list[Array]
    """One array per datum, float64, in the shape of its log probabilities."""
    curvature: Product | None = None
    """Product with the second derivatives; None if they are unknown."""


class LossTerm:
    """Term of a custom loss, for ``forward_backward_custom``.

    Terms and functions of the form that forward_backward_custom accepts can be added and subtracted; a term can be
    multiplied by a number. The result is a term, and so a function for forward_backward_custom. It computes in torch
    if the log probabilities are tensors, otherwise in numpy with exact gradients.

    Example:
        >>> from tinkerwire import training
        >>> loss = 0.1 * training.l2_penalty("reference") - 0.01 * training.entropy("k1")
        >>> datum = tinker.Datum(
        ...     model_input=tinker.ModelInput.from_ints([1, 2]),
        ...     loss_fn_inputs={
        ...         "target_tokens": [2, 3],
        ...         "reference": tinker.TensorData(data=[-1.0, -2.0], dtype="float32"),
        ...     },
        ... )
        >>> value, metrics, gradients = loss([datum], [[-1.5, -2.0]])
        >>> round(value, 6), metrics
        (-0.01, {'l2:sum': 0.25, 'entropy_k1:sum': 3.5})
    """

    def evaluate(self, data: Sequence[models.Datum], logprobs: Sequence[Array]) -> Evaluation:
        """Return the value and the derivatives for a batch, in numpy."""
        raise NotImplementedError

    def evaluate_torch(self, data: Sequence[models.Datum], logprobs: Sequence[Any]) -> tuple[Any, dict[str, float]]:
        """Return the value for a batch as a tensor that records gradients, and the metrics."""
        raise NotImplementedError

    def metric_names(self) -> list[str]:
        """Return the names of the metrics that are known before the evaluation."""
        raise NotImplementedError

    def __call__(self, data: list[models.Datum], logprobs: list[Any]) -> tuple[Any, ...]:
        """Return (loss, metrics) for tensors of torch, and (loss, metrics, gradients) for arrays."""
        if len(data) != len(logprobs):
            raise ValueError(f"logprobs: expected {len(data)} arrays, one per datum, got {len(logprobs)}")
        if any(hasattr(values, "requires_grad") for values in logprobs):
            return self.evaluate_torch(data, logprobs)
        arrays = [np.asarray(values, np.float64) for values in logprobs]
        evaluation = self.evaluate(data, arrays)
        return evaluation.value, evaluation.metrics, evaluation.gradients

    def __add__(self, other: object) -> LossTerm:
        return _add(self, other, 1.0)

    def __radd__(self, other: object) -> LossTerm:
        # sum() starts with 0.
        return self if _is_zero(other) else _add(_as_term(other), self, 1.0)

    def __sub__(self, other: object) -> LossTerm:
        return _add(self, other, -1.0)

    def __rsub__(self, other: object) -> LossTerm:
        return -self if _is_zero(other) else _add(_as_term(other), self, -1.0)

    def __mul__(self, factor: float) -> LossTerm:
        return WeightedSum(((_checked_factor(factor), self),))

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> LossTerm:
        if _checked_factor(divisor) == 0:
            raise ZeroDivisionError("a term of a loss cannot be divided by 0")
        return self * (1.0 / divisor)

    def __neg__(self) -> LossTerm:
        return self * -1.0

    def __bool__(self) -> bool:
        """Return True; a term is a function."""
        return True


@attrs.frozen
class WeightedSum(LossTerm):
    """Sum of terms, each with a factor. Its metrics are those of the terms, without the factors."""

    parts: tuple[tuple[float, LossTerm], ...]

    def __attrs_post_init__(self) -> None:
        """Raise ValueError if two terms report a metric of the same name."""
        names = self.metric_names()
        for name in names:
            if names.count(name) > 1:
                _refuse_duplicate(name)

    def metric_names(self) -> list[str]:
        """See :class:`LossTerm`."""
        return [name for _, term in self.parts for name in term.metric_names()]

    def evaluate(self, data: Sequence[models.Datum], logprobs: Sequence[Array]) -> Evaluation:
        """See :class:`LossTerm`."""
        parts = [(factor, term.evaluate(data, [array.copy() for array in logprobs])) for factor, term in self.parts]
        curvatures = [(factor, part.curvature) for factor, part in parts]

        def multiply(vectors: Sequence[Array]) -> list[Array]:
            products = [(factor, product(vectors)) for factor, product in curvatures if product is not None]
            return _combine(products, vectors)

        return Evaluation(
            value=sum(factor * part.value for factor, part in parts),
            metrics=_merge([part.metrics for _, part in parts]),
            gradients=_combine([(factor, part.gradients) for factor, part in parts], logprobs),
            curvature=None if any(product is None for _, product in curvatures) else multiply,
        )

    def evaluate_torch(self, data: Sequence[models.Datum], logprobs: Sequence[Any]) -> tuple[Any, dict[str, float]]:
        """See :class:`LossTerm`."""
        total: Any = 0.0
        metrics = []
        for factor, term in self.parts:
            value, term_metrics = term.evaluate_torch(data, logprobs)
            total = total + factor * value
            metrics.append(term_metrics)
        return total, _merge(metrics)


@attrs.frozen
class FunctionTerm(LossTerm):
    """A function of the user as a term; it returns (loss, metrics) or (loss, metrics, gradients)."""

    function: Callable[..., Any]

    @property
    def name(self) -> str:
        """Name of the function, for errors."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def metric_names(self) -> list[str]:
        """See :class:`LossTerm`."""
        return []

    def evaluate(self, data: Sequence[models.Datum], logprobs: Sequence[Array]) -> Evaluation:
        """See :class:`LossTerm`."""
        value, metrics, gradients = self._call(data, [array.astype(np.float32) for array in logprobs])
        if gradients is None:
            raise TypeError(f"{self.name} must return (loss, metrics, gradients) for numpy arrays, got (loss, metrics)")
        arrays = [np.asarray(gradient, np.float64) for gradient in gradients]
        for position, (gradient, array) in enumerate(zip(arrays, logprobs, strict=True)):
            if gradient.shape != array.shape:
                raise ValueError(
                    f"{self.name}: gradients[{position}] must have the shape of the logprobs, {list(array.shape)}, "
                    f"got {list(gradient.shape)}"
                )
        return Evaluation(float(value), metrics, arrays)

    def evaluate_torch(self, data: Sequence[models.Datum], logprobs: Sequence[Any]) -> tuple[Any, dict[str, float]]:
        """See :class:`LossTerm`."""
        import torch  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

        value, metrics, gradients = self._call(data, logprobs)
        if gradients is not None:
            # A linear function with this value and these gradients.
            value = torch.as_tensor(value).detach() + zero_with_graph(logprobs)
            for gradient, values in zip(gradients, logprobs, strict=True):
                slope = torch.as_tensor(gradient).detach()
                # A log probability without a gradient may be infinite, and the difference of infinities is NaN.
                counts = slope != 0
                value = value + (slope[counts] * (values - values.detach())[counts]).sum()
        return value, metrics

    def returns_gradients(self, data: Sequence[models.Datum], logprobs: Sequence[Any]) -> bool:
        """Return whether the function computes its gradients itself, so that torch cannot differentiate them."""
        return self._call(data, logprobs)[2] is not None

    def _call(self, data: Sequence[models.Datum], logprobs: Sequence[Any]) -> tuple[Any, dict[str, float], Any]:
        returned = self.function(list(data), list(logprobs))
        if not isinstance(returned, tuple | list) or len(returned) not in (2, 3):
            raise TypeError(
                f"{self.name} must return (loss, metrics) or (loss, metrics, gradients), got {type(returned).__name__}"
            )
        gradients = returned[2] if len(returned) == 3 else None
        if gradients is not None and len(gradients) != len(logprobs):
            raise ValueError(f"{self.name}: expected {len(logprobs)} gradients, one per datum, got {len(gradients)}")
        return returned[0], dict(returned[1] or {}), gradients


def zero_with_graph(logprobs: Sequence[Any]) -> Any:
    """Return a tensor of 0 that records gradients of 0, also if log probabilities are infinite."""
    return sum(values.reshape(-1)[:0].sum() for values in logprobs)


def as_term(name: str, value: object) -> LossTerm:
    """Return a term, or a function as a term.

    Raises:
        TypeError: the value is neither.
    """
    if isinstance(value, LossTerm):
        return value
    if not callable(value):
        raise TypeError(f"{name}: expected a term or a function of (data, logprobs), got {type(value).__name__}")
    return FunctionTerm(value)


def _as_term(value: object) -> LossTerm:
    return as_term("a term of a loss", value)


def _add(left: LossTerm, right: object, factor: float) -> LossTerm:
    if _is_zero(right):
        return left
    second = _as_term(right)
    parts = left.parts if isinstance(left, WeightedSum) else ((1.0, left),)
    others = second.parts if isinstance(second, WeightedSum) else ((1.0, second),)
    return WeightedSum((*parts, *((factor * weight, term) for weight, term in others)))


def _is_zero(value: object) -> bool:
    return isinstance(value, int | float) and value == 0


def _checked_factor(factor: object) -> float:
    if isinstance(factor, LossTerm) or callable(factor):
        raise TypeError("a term of a loss can be multiplied by a number only, not by another term")
    return require_finite_number("factor of a loss", factor)


def _combine(parts: Sequence[tuple[float, Sequence[Array]]], like: Sequence[Array]) -> list[Array]:
    """Return the weighted sums of arrays, one per datum."""
    scaled = [[factor * array for array in arrays] for factor, arrays in parts]
    return [sum(arrays, np.zeros(one.shape)) for one, *arrays in zip(like, *scaled, strict=True)]


def _merge(parts: Sequence[dict[str, float]]) -> dict[str, float]:
    merged: dict[str, float] = {}
    for part in parts:
        for name, value in part.items():
            if name in merged:
                _refuse_duplicate(name)
            merged[name] = value
    return merged


def _refuse_duplicate(name: str) -> NoReturn:
    raise ValueError(f"two terms of a loss report the metric {name!r}; pass name= to one of them")
