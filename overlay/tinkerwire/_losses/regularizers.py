"""Regularizers of log probabilities: divergence from a reference, distance to a reference, and entropy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from tinkerwire_base.validators import require_optional_text, validator_of
from tinkerwire_generated import models

from .elementwise import ElementwiseTerm, Formulas, Reduction
from .logprob_values import require_finite_number
from .term import LossTerm

Direction = Literal["forward", "reverse"]
KLEstimator = Literal["k1", "k2", "k3"]
EntropyEstimator = Literal["k1", "k2", "plogp"]
ReferenceLogprobs: TypeAlias = "str | models.ForwardBackwardOutput | Sequence[Any]"
"""Name of the input of each datum with the log probabilities of the reference, a result of ``forward`` of the reference
on the same batch, or a list with one array per datum."""

# In the formulas, x is the log probability of the model that trains, y that of the reference, m numpy or torch.
HALF_SQUARE = Formulas(lambda m, x, y: (x - y) ** 2 / 2, lambda m, x, y: x - y, lambda m, x, y: m.ones_like(x))
KL = {
    ("reverse", "k1"): Formulas(lambda m, x, y: x - y, lambda m, x, y: m.ones_like(x), lambda m, x, y: m.zeros_like(x)),
    ("reverse", "k2"): HALF_SQUARE,
    ("reverse", "k3"): Formulas(
        lambda m, x, y: m.expm1(y - x) + x - y, lambda m, x, y: -m.expm1(y - x), lambda m, x, y: m.exp(y - x)
    ),
    ("forward", "k1"): Formulas(
        lambda m, x, y: y - x, lambda m, x, y: -m.ones_like(x), lambda m, x, y: m.zeros_like(x)
    ),
    ("forward", "k2"): HALF_SQUARE,
    ("forward", "k3"): Formulas(
        lambda m, x, y: m.expm1(x - y) - x + y, lambda m, x, y: m.expm1(x - y), lambda m, x, y: m.exp(x - y)
    ),
}
ENTROPY = {
    "k1": Formulas(lambda m, x, y: -x, lambda m, x, y: -m.ones_like(x), lambda m, x, y: m.zeros_like(x)),
    "k2": Formulas(lambda m, x, y: -(x**2) / 2, lambda m, x, y: -x, lambda m, x, y: -m.ones_like(x)),
    "plogp": Formulas(
        lambda m, x, y: -m.exp(x) * x, lambda m, x, y: -m.exp(x) * (x + 1), lambda m, x, y: -m.exp(x) * (x + 2)
    ),
}


def kl_penalty(
    reference: ReferenceLogprobs = "reference_logprobs",
    *,
    direction: Direction = "reverse",
    estimator: KLEstimator = "k2",
    reduction: Reduction = "sum",
    mask: str | None = None,
    name: str | None = None,
) -> LossTerm:
    """Estimate the Kullback-Leibler divergence between the model and a reference.

    With ``d``, the log probability of a token in the model minus that in the reference, in nats, a position has the
    value: k1: ``d``; k2: ``d**2 / 2``; k3: ``exp(-d) - 1 + d``. For the direction ``forward``, ``d`` has the opposite
    sign.

    The estimate of ``reverse``, KL(model || reference), holds for tokens that the model sampled; that of ``forward``,
    KL(reference || model), for tokens of the reference. The gradient differs from the estimate: for tokens that the
    model sampled, the gradient of k2 is that of the reverse divergence, that of k3 with the direction ``reverse`` is
    that of the forward divergence, and that of k1 is 0 on average.

    Args:
        reference: name of the input of each datum with the log probabilities of the reference, or the result of
            ``forward`` of the reference on the same batch, or a list with one array per datum.
        direction: ``reverse`` or ``forward``.
        estimator: ``k1``, ``k2`` or ``k3``.
        reduction: ``sum`` over the positions of the batch, as losses of the server, or weighted ``mean``.
        mask: input with the weight of each position; None for ``mask``, then ``weights``, then all positions.
        name: name of the metric, to which the reduction is added; None for ``kl_DIRECTION_ESTIMATOR``.

    Raises:
        TypeError, ValueError: an argument is unknown. Raised for a batch: an input is missing, has the wrong shape or
            holds values that are not finite.
    """
    validator_of(Direction)("direction", direction)
    validator_of(KLEstimator)("estimator", estimator)
    _require_reference(reference)
    require_optional_text("name", name)
    return ElementwiseTerm(name or f"kl_{direction}_{estimator}", KL[direction, estimator], reduction, mask, reference)


def entropy(
    estimator: EntropyEstimator = "k2",
    *,
    reduction: Reduction = "sum",
    mask: str | None = None,
    name: str | None = None,
) -> LossTerm:
    """Estimate the entropy of the model, in nats; subtract it from a loss to keep the model from collapsing.

    With ``x``, the log probability of a token, a position has one of these values. ``k1`` is ``-x``, an unbiased
    estimate for tokens that the model sampled; its gradient is 0 on average. ``k2`` is ``-x**2 / 2``, which does not
    estimate the entropy; for tokens that the model sampled, its gradient is that of the entropy. ``plogp`` is
    ``-exp(x) * x``, the share of the token in the entropy, for target_tokens of shape ``[length, k]`` that list the
    most likely tokens.

    Arguments and errors as for :func:`kl_penalty`; the metric is ``entropy_ESTIMATOR``.
    """
    validator_of(EntropyEstimator)("estimator", estimator)
    require_optional_text("name", name)
    return ElementwiseTerm(name or f"entropy_{estimator}", ENTROPY[estimator], reduction, mask)


def l1_penalty(
    reference: ReferenceLogprobs = "reference_logprobs",
    *,
    reduction: Reduction = "sum",
    mask: str | None = None,
    name: str | None = None,
) -> LossTerm:
    """Penalize the absolute difference between the log probabilities of the model and of a reference.

    The gradient at a difference of 0 is 0. Arguments and errors as for :func:`kl_penalty`; the metric is ``l1``.
    """
    return _elastic(reference, 1.0, reduction, mask, name, "l1")


def l2_penalty(
    reference: ReferenceLogprobs = "reference_logprobs",
    *,
    reduction: Reduction = "sum",
    mask: str | None = None,
    name: str | None = None,
) -> LossTerm:
    """Penalize the squared difference between the log probabilities of the model and of a reference.

    Arguments and errors as for :func:`kl_penalty`; the metric is ``l2``.
    """
    return _elastic(reference, 0.0, reduction, mask, name, "l2")


def elastic_net_penalty(
    reference: ReferenceLogprobs = "reference_logprobs",
    *,
    l1_ratio: float = 0.5,
    reduction: Reduction = "sum",
    mask: str | None = None,
    name: str | None = None,
) -> LossTerm:
    """Penalize ``l1_ratio`` times the absolute difference plus ``1 - l1_ratio`` times the squared difference.

    Other arguments and errors as for :func:`kl_penalty`; the metric is ``elastic_net``.
    """
    ratio = require_finite_number("l1_ratio", l1_ratio)
    if not 0 <= ratio <= 1:
        raise ValueError(f"l1_ratio must be from 0 to 1, got {l1_ratio}")
    return _elastic(reference, ratio, reduction, mask, name, "elastic_net")


def _elastic(
    reference: ReferenceLogprobs,
    ratio: float,
    reduction: Reduction,
    mask: str | None,
    name: str | None,
    default_name: str,
) -> LossTerm:
    _require_reference(reference)
    require_optional_text("name", name)
    formulas = Formulas(
        lambda m, x, y: ratio * m.abs(x - y) + (1 - ratio) * (x - y) ** 2,
        lambda m, x, y: ratio * m.sign(x - y) + 2 * (1 - ratio) * (x - y),
        lambda m, x, y: 2 * (1 - ratio) * m.ones_like(x),
    )
    return ElementwiseTerm(name or default_name, formulas, reduction, mask, reference)


def _require_reference(reference: object) -> None:
    if reference is None or reference == "":
        raise ValueError("reference must name an input of the datums, or hold log probabilities; got nothing")
