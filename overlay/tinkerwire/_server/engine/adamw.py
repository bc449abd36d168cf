"""AdamW with decoupled weight decay and bias correction."""

from __future__ import annotations

import math
from collections.abc import Mapping

import attrs
import numpy as np

from tinkerwire._server.engine.arrays import FloatArray
from tinkerwire._server.engine.errors import EngineError


@attrs.frozen(kw_only=True)
class AdamWSettings:
    """The settings of one step.

    Args:
        learning_rate: step size.
        beta1: decay rate of the first moment.
        beta2: decay rate of the second moment.
        eps: added to the root of the second moment.
        weight_decay: fraction of a parameter, times the learning rate, that each step removes.
        grad_clip_norm: maximum norm of the gradient over all parameters; larger gradients are scaled down. 0 disables
            clipping.
    """

    learning_rate: float = 1e-4
    beta1: float = 0.9
    beta2: float = 0.95
    eps: float = 1e-12
    weight_decay: float = 0.0
    grad_clip_norm: float = 0.0

    def check(self) -> None:
        """Check the range of all settings.

        Raises:
            EngineError: a setting is out of range; the error names it.
        """
        for name in ("learning_rate", "weight_decay", "grad_clip_norm"):
            self._require(name, 0.0 <= getattr(self, name) < math.inf, "finite and at least 0")
        for name in ("beta1", "beta2"):
            self._require(name, 0.0 <= getattr(self, name) < 1.0, "at least 0 and below 1")
        self._require("eps", 0.0 < self.eps < math.inf, "finite and above 0")

    def _require(self, name: str, in_range: bool, requirement: str) -> None:
        if not in_range:
            raise EngineError(f"optim_step: {name} must be {requirement}, got {getattr(self, name)}")


@attrs.define(eq=False)
class AdamW:
    """Running moments of each parameter's gradient, and the number of steps."""

    first: dict[str, FloatArray]
    second: dict[str, FloatArray]
    step: int = 0

    @classmethod
    def zeros(cls, params: Mapping[str, FloatArray]) -> AdamW:
        """Create the state before the first step."""
        return cls(
            {name: np.zeros_like(value) for name, value in params.items()},
            {name: np.zeros_like(value) for name, value in params.items()},
        )

    def update(
        self, params: Mapping[str, FloatArray], grads: Mapping[str, FloatArray], settings: AdamWSettings
    ) -> dict[str, float]:
        """Update params in place by one step and return its metrics.

        Args:
            params: parameters by name.
            grads: gradients by name.
            settings: settings of the step.

        Raises:
            EngineError: a setting is out of range, or a gradient is not finite; params are unchanged.
        """
        settings.check()
        norm = global_norm(grads)
        if not math.isfinite(norm):
            raise EngineError(
                f"optim_step: the norm of the gradients must be finite, got {norm}; the gradients were dropped; "
                "lower the learning rate or the weights of the loss and resend the batch"
            )
        clip = settings.grad_clip_norm
        factor = clip / norm if 0.0 < clip < norm else 1.0
        self.step += 1
        squared_update = 0.0
        for name, param in params.items():
            change = self._change(name, param, grads[name] * factor, settings)
            np.subtract(param, change, out=param)
            squared_update += _sum_of_squares(change)
        return {
            "grad_norm:mean": norm,
            "update_norm:mean": math.sqrt(squared_update),
            "param_norm:mean": global_norm(params),
            "optimizer_step:max": float(self.step),
        }

    def _change(self, name: str, param: FloatArray, grad: FloatArray, settings: AdamWSettings) -> FloatArray:
        """Update the moments of a parameter and return the value that the step subtracts from it."""
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
    """Return the Euclidean norm of all arrays as one vector."""
    return math.sqrt(sum(_sum_of_squares(value) for value in arrays.values()))


def _sum_of_squares(value: FloatArray) -> float:
    return float(np.square(value, dtype=np.float64).sum())
