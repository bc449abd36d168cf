"""The public loss functions: each a sum over tokens of a function of the target's log probability.

Notation: p is the model's log probability (nats) of a target token of a position, q the one it was sampled with, A its
advantage, r = exp(p - q). All arrays are float64 of shape (n, k): k targets a position, one for all but cross_entropy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import attrs
import numpy as np

from tinkerwire._server.engine.arrays import FloatArray
from tinkerwire._server.engine.errors import EngineError

__all__ = ["LOSSES", "Loss", "TokenLosses", "loss_named"]

Inputs = Mapping[str, FloatArray]


@attrs.frozen(eq=False)
class TokenLosses:
    """The loss of each target, its derivative by p, and numbers worth watching at each."""

    values: FloatArray
    slopes: FloatArray
    watched: dict[str, FloatArray] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Loss:
    """A loss function and what it reads.

    Args:
        required: inputs beside target_tokens that every example has.
        optional: inputs that an example may have, with the number that stands in for a missing one.
        config: keys of the config and their defaults; a key that is also an optional input sets the
            stand-in for the whole batch.
        mask: the input whose zeros mark positions that the watched numbers leave out.
        many_targets: whether a position may have several targets.
    """

    name: str
    function: Callable[[FloatArray, Inputs, Mapping[str, float]], TokenLosses]
    required: tuple[str, ...] = ()
    optional: Mapping[str, float] = attrs.field(factory=dict)
    config: Mapping[str, float] = attrs.field(factory=dict)
    mask: str
    many_targets: bool = False

    def settings(self, given: Mapping[str, float] | None) -> dict[str, float]:
        """The defaults with the given config over them.

        Raises:
            EngineError: unknown key, or a value that is not a finite number.
        """
        settings = dict(self.config)
        for key, value in (given or {}).items():
            if key not in settings:
                known = ", ".join(settings) or "none"
                raise EngineError(f"loss {self.name}: config key {key!r} is unknown; its config keys are: {known}")
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise EngineError(f"loss {self.name}: config {key!r} is {value!r}; pass a finite number")
            settings[key] = float(value)
        return settings


def _cross_entropy(p: FloatArray, inputs: Inputs, config: Mapping[str, float]) -> TokenLosses:
    weights = inputs["weights"]
    return TokenLosses(-p * weights, -weights)


def _ratio(p: FloatArray, inputs: Inputs) -> tuple[FloatArray, dict[str, FloatArray]]:
    """r, and two estimates of the divergence of the sampling policy from the trained one (nats)."""
    q = inputs["logprobs"]
    difference = p - q
    # An overflow shows as a loss that is not finite, which the caller reports with its position.
    with np.errstate(over="ignore"):
        ratio: FloatArray = np.exp(difference)
    return ratio, {"kl_sample_train_v1": -difference, "kl_sample_train_v2": 0.5 * difference * difference}


def _importance_sampling(p: FloatArray, inputs: Inputs, config: Mapping[str, float]) -> TokenLosses:
    ratio, watched = _ratio(p, inputs)
    values = -ratio * inputs["advantages"]
    return TokenLosses(values, values, watched)


def _clip(ratio: FloatArray, inputs: Inputs, watched: dict[str, FloatArray]) -> FloatArray:
    clipped = np.clip(ratio, inputs["clip_low_threshold"], inputs["clip_high_threshold"])
    watched["clip_fraction"] = (clipped != ratio).astype(np.float64)
    return clipped


def _ppo(p: FloatArray, inputs: Inputs, config: Mapping[str, float]) -> TokenLosses:
    ratio, watched = _ratio(p, inputs)
    free = ratio * inputs["advantages"]
    held = _clip(ratio, inputs, watched) * inputs["advantages"]
    return TokenLosses(-np.minimum(free, held), np.where(free <= held, -free, 0.0), watched)


def _cispo(p: FloatArray, inputs: Inputs, config: Mapping[str, float]) -> TokenLosses:
    ratio, watched = _ratio(p, inputs)
    slopes = -_clip(ratio, inputs, watched) * inputs["advantages"]
    return TokenLosses(slopes * p, slopes, watched)


def _dro(p: FloatArray, inputs: Inputs, config: Mapping[str, float]) -> TokenLosses:
    _, watched = _ratio(p, inputs)
    q, advantages, beta = inputs["logprobs"], inputs["advantages"], config["beta"]
    difference = p - q
    values = -(p * advantages - 0.5 * beta * difference * difference)
    return TokenLosses(values, -advantages + beta * difference, watched)


_POLICY = ("logprobs", "advantages")
_CLIP = {"clip_low_threshold": 0.8, "clip_high_threshold": 1.2}

_ALL = (
    Loss(name="cross_entropy", function=_cross_entropy, optional={"weights": 1.0}, mask="weights", many_targets=True),
    Loss(name="importance_sampling", function=_importance_sampling, required=_POLICY, mask="advantages"),
    Loss(name="ppo", function=_ppo, required=_POLICY, optional=_CLIP, config=_CLIP, mask="advantages"),
    Loss(name="cispo", function=_cispo, required=_POLICY, optional=_CLIP, config=_CLIP, mask="advantages"),
    Loss(name="dro", function=_dro, required=_POLICY, config={"beta": 0.05}, mask="advantages"),
)

LOSSES: Mapping[str, Loss] = MappingProxyType({loss.name: loss for loss in _ALL})
"""The losses by their public names."""


def loss_named(name: str) -> Loss:
    """The loss of that name, or EngineError."""
    try:
        return LOSSES[name]
    except KeyError:
        raise EngineError(f"loss {name!r} is unknown; choose one of {', '.join(LOSSES)}") from None
