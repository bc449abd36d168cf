"""AdamW with decoupled weight decay and bias correction."""

from __future__ import annotations

import math
from collections.abc import Mapping

import attrs
import numpy as np

from tinkerwire._server.engine.arrays import FloatArray
from tinkerwire._server.engine.errors import EngineError

__all__ = ["AdamW", "AdamWSettings"]


@attrs.frozen(kw_only=True)
class AdamWSettings:
    """The numbers of one step.

    Args:
        weight_decay: fraction of a parameter, times the learning rate, that each step removes.
        grad_clip_norm: longest gradient, over all parameters together; a longer one is scaled down. 0: off.
    """

    learning_rate: float = 1e-4
    beta1: float = 0.9
    beta2: float = 0.95
    eps: float = 1e-12
    weight_decay: float = 0.0
    grad_clip_norm: float = 0.0

    def check(self) -> None:
        """Raise EngineError, naming the number, unless all are in range."""
        for name in ("learning_rate", "weight_decay", "grad_clip_norm"):
            self._require(name, 0.0 <= getattr(self, name) < math.inf, "a finite number of 0 or more")
        for name in ("beta1", "beta2"):
            self._require(name, 0.0 <= getattr(self, name) < 1.0, "a number from 0 up to but not 1")
        self._require("eps", 0.0 < self.eps < math.inf, "a finite number above 0")

    def _require(self, name: str, in_range: bool, wanted: str) -> None:
        if not in_range:
            raise EngineError(f"optim_step: {name} is {getattr(self, name)}; pass {wanted}")


@attrs.define(eq=False)
class AdamW:
    """Running moments of each parameter's gradient, and the number of steps taken."""

    first: dict[str, FloatArray]
    second: dict[str, FloatArray]
    step: int = 0

    @classmethod
    def zeros(cls, params: Mapping[str, FloatArray]) -> AdamW:
        """The state before any step."""
        return cls(
            {name: np.zeros_like(value) for name, value in params.items()},
            {name: np.zeros_like(value) for name, value in params.items()},
        )

    def update(
        self, params: Mapping[str, FloatArray], grads: Mapping[str, FloatArray], settings: AdamWSettings
    ) -> dict[str, float]:
        """Move params in place by one step and return the step's metrics.

        Raises:
            EngineError: a number out of range, or a gradient that is not finite; nothing has moved then.
        """
        settings.check()
        norm = global_norm(grads)
        if not math.isfinite(norm):
            raise EngineError(
                f"optim_step: the gradient's norm is {norm}; its gradients are dropped, "
                "lower the learning rate or the weights of the loss and send the batch again"
            )
        clip = settings.grad_clip_norm
        factor = clip / norm if 0.0 < clip < norm else 1.0
        self.step += 1
        moved = 0.0
        for name, param in params.items():
            change = self._change(name, param, grads[name] * factor, settings)
            np.subtract(param, change, out=param)
            moved += _sum_of_squares(change)
        return {
            "grad_norm:mean": norm,
            "update_norm:mean": math.sqrt(moved),
            "param_norm:mean": global_norm(params),
            "optimizer_step:max": float(self.step),
        }

    def _change(self, name: str, param: FloatArray, grad: FloatArray, settings: AdamWSettings) -> FloatArray:
        """What this step takes off a parameter; updates its moments."""
        first, second = self.first[name], self.second[name]
        first *= settings.beta1
        first += (1.0 - settings.beta1) * grad
        second *= settings.beta2
        second += (1.0 - settings.beta2) * grad * grad
        mean = first / (1.0 - settings.beta1**self.step)
        size = np.sqrt(second / (1.0 - settings.beta2**self.step))
        size += settings.eps
        change: FloatArray = mean / size + settings.weight_decay * param
        change *= settings.learning_rate
        return change


def global_norm(arrays: Mapping[str, FloatArray]) -> float:
    """Euclidean length of all arrays taken as one vector."""
    return math.sqrt(sum(_sum_of_squares(value) for value in arrays.values()))


def _sum_of_squares(value: FloatArray) -> float:
    return float(np.square(value, dtype=np.float64).sum())
