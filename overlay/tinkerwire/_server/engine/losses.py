"""The public loss functions: sums over tokens of a function of the target's log probability.

Notation: p is the model's log probability (nats) of a target token, q the log probability at sampling time, A the
advantage, r = exp(p - q). All arrays are float64 of shape (n, k), with k targets per position; only cross_entropy
supports k > 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import attrs
import numpy as np

from tinkerwire._server.engine.arrays import FloatArray
from tinkerwire._server.engine.errors import EngineError

Inputs = Mapping[str, FloatArray]


@attrs.frozen(eq=False)
class TokenLosses:
    """The loss of each target, its derivative by p, and further statistics of each target."""

    values: FloatArray
    slopes: FloatArray
    statistics: dict[str, FloatArray] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Loss:
    """A loss function and its inputs.

    Args:
        name: public name of the loss.
        function: computes the loss from p, the inputs and the settings.
        required: inputs, beside target_tokens, that every example must have.
        optional: optional inputs with their defaults.
        config: keys of the config with their defaults; a key that is also an optional input sets the default of the
            input for the whole batch.
        mask: input whose zeros exclude positions from the statistics.
        many_targets: whether a position may have several targets.
    """

    name: str
    function: Callable[[FloatArray, Inputs, Mapping[str, float]], TokenLosses]
    required: tuple[str, ...] = ()
    optional: Mapping[str, float] = attrs.field(factory=dict)
    config: Mapping[str, float] = attrs.field(factory=dict)
    mask: str
    many_targets: bool = False

    def settings(self, config: Mapping[str, float] | None) -> dict[str, float]:
        """Return the defaults, overridden by a config.

        Raises:
            EngineError: a key is unknown, or a value is not a finite number.
        """
        settings = dict(self.config)
        for key, value in (config or {}).items():
            if key not in settings:
                keys = ", ".join(settings) or "none"
                raise EngineError(f"loss {self.name}: unknown config key {key!r}; choose from: {keys}")
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise EngineError(f"loss {self.name}: config {key!r} must be a finite number, got {value!r}")
            settings[key] = float(value)
        return settings


def _cross_entropy(p: FloatArray, inputs: Inputs, config: Mapping[str, float]) -> TokenLosses:
    weights = inputs["weights"]
    return TokenLosses(-p * weights, -weights)


def _ratio(p: FloatArray, inputs: Inputs) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Return r, and two estimates of the divergence of the sampling policy from the trained policy (nats)."""
    q = inputs["logprobs"]
    difference = p - q
    # After an overflow the loss is not finite, and the caller reports its position.
    with np.errstate(over="ignore"):
        ratio: FloatArray = np.exp(difference)
    return ratio, {"kl_sample_train_v1": -difference, "kl_sample_train_v2": 0.5 * difference * difference}


def _importance_sampling(p: FloatArray, inputs: Inputs, config: Mapping[str, float]) -> TokenLosses:
    ratio, statistics = _ratio(p, inputs)
    values = -ratio * inputs["advantages"]
    return TokenLosses(values, values, statistics)


def _clip(ratio: FloatArray, inputs: Inputs, statistics: dict[str, FloatArray]) -> FloatArray:
    clipped = np.clip(ratio, inputs["clip_low_threshold"], inputs["clip_high_threshold"])
    statistics["clip_fraction"] = (clipped != ratio).astype(np.float64)
    return clipped


def _ppo(p: FloatArray, inputs: Inputs, config: Mapping[str, float]) -> TokenLosses:
    ratio, statistics = _ratio(p, inputs)
    unclipped = ratio * inputs["advantages"]
    clipped = _clip(ratio, inputs, statistics) * inputs["advantages"]
    return TokenLosses(-np.minimum(unclipped, clipped), np.where(unclipped <= clipped, -unclipped, 0.0), statistics)


def _cispo(p: FloatArray, inputs: Inputs, config: Mapping[str, float]) -> TokenLosses:
    ratio, statistics = _ratio(p, inputs)
    slopes = -_clip(ratio, inputs, statistics) * inputs["advantages"]
    return TokenLosses(slopes * p, slopes, statistics)


def _dro(p: FloatArray, inputs: Inputs, config: Mapping[str, float]) -> TokenLosses:
    _, statistics = _ratio(p, inputs)
    q, advantages, beta = inputs["logprobs"], inputs["advantages"], config["beta"]
    difference = p - q
    values = -(p * advantages - 0.5 * beta * difference * difference)
    return TokenLosses(values, -advantages + beta * difference, statistics)


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
"""The losses by public name."""


def get_loss(name: str) -> Loss:
    """Return a loss.

    Raises:
        EngineError: the name is unknown.
    """
    try:
        return LOSSES[name]
    except KeyError:
        raise EngineError(f"unknown loss {name!r}; choose one of {', '.join(LOSSES)}") from None
