"""Mutations of optim_step."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinkerwire._server.engine import adamw
from tinkerwire._server.engine import training as engine
from tinkerwire._server.engine.errors import EngineError
from tinkerwire._server.engine.passes import accumulate
from tinkerwire._server.sessions.models import TrainedModel

from . import patches
from .mutation import Group

GROUP = Group("Steps")
MODEL = engine.LoraModel


def _fix_adamw(**values: float) -> None:
    def make(original: Any) -> Any:
        return lambda self, learning_rate=1e-4, **settings: original(self, learning_rate, **{**settings, **values})

    patches.replace(MODEL, "optim_step", make)


@GROUP.mutation("TRN-002")
def steps_fail() -> None:
    """optim_step fails."""

    def fail(*_: Any, **__: Any) -> None:
        raise EngineError("mutated")

    MODEL.optim_step = fail  # type: ignore[assignment,method-assign]


@GROUP.mutation("TRN-020")
def gradient_negated() -> None:
    """A step goes into the wrong direction."""

    def make(original: Any) -> Any:
        return lambda self, params, grads, settings: original(
            self, params, {name: -grad for name, grad in grads.items()}, settings
        )

    patches.replace(adamw.AdamW, "update", make)


@GROUP.mutation("TRN-023")
def learning_rate_zero_is_default() -> None:
    """A learning rate of 0 is replaced by 0.001."""

    def make(original: Any) -> Any:
        return lambda self, learning_rate=1e-4, **settings: original(self, learning_rate or 1e-3, **settings)

    patches.replace(MODEL, "optim_step", make)


@GROUP.mutation("TRN-027", "WGT-013")
def gradients_kept() -> None:
    """A step keeps the gradients, and the next step applies them again."""

    def make(original: Any) -> Any:
        def optim_step(self: Any, *args: Any, **settings: Any) -> Any:
            kept = {name: grad.copy() for name, grad in self._grads.items()}
            result = original(self, *args, **settings)
            self._grads = kept
            return result

        return optim_step

    patches.replace(MODEL, "optim_step", make)


@GROUP.mutation("SWT-001", "SWT-002", "TRN-029")
def step_on_all_models() -> None:
    """A step of one model is added to all models."""
    models: list[Any] = []

    def register(original: Any) -> Any:
        def create(self: Any, *args: Any, **settings: Any) -> None:
            original(self, *args, **settings)
            models.append(self)

        return create

    def make(original: Any) -> Any:
        def optim_step(self: Any, *args: Any, **settings: Any) -> Any:
            before = {name: value.copy() for name, value in self._params.items()}
            result = original(self, *args, **settings)
            for other in models:
                for name, value in other._params.items() if other is not self else ():
                    if value.shape == before[name].shape:
                        np.add(value, self._params[name] - before[name], out=value)
            return result

        return optim_step

    patches.replace(MODEL, "__init__", register)
    patches.replace(MODEL, "optim_step", make)


@GROUP.mutation("TRN-020")
def learning_rate_is_zero() -> None:
    """A step of any learning rate is applied with a learning rate of 0."""

    def make(original: Any) -> Any:
        return lambda self, learning_rate=1e-4, **settings: original(self, 0.0, **settings)

    patches.replace(MODEL, "optim_step", make)


@GROUP.mutation("TRN-030")
def beta1_ignored() -> None:
    """beta1 is 0.9, whatever the request has."""
    _fix_adamw(beta1=0.9)


@GROUP.mutation("TRN-031")
def beta2_ignored() -> None:
    """beta2 is 0.95, whatever the request has."""
    _fix_adamw(beta2=0.95)


@GROUP.mutation("TRN-032")
def eps_ignored() -> None:
    """Eps is 1e-12, whatever the request has."""
    _fix_adamw(eps=1e-12)


@GROUP.mutation("TRN-033")
def weight_decay_ignored() -> None:
    """weight_decay is 0, whatever the request has."""
    _fix_adamw(weight_decay=0.0)


@GROUP.mutation("TRN-034")
def gradients_not_clipped() -> None:
    """grad_clip_norm is ignored."""
    _fix_adamw(grad_clip_norm=0.0)


@GROUP.mutation("TRN-035")
def gradients_divided_by_weights() -> None:
    """The gradient of each datum is divided by the sum of its weights, or by 1e-9 if that is larger."""
    run = MODEL._run

    def forward_backward(self: Any, examples: Any, *args: Any, **settings: Any) -> Any:
        result, _ = run(self, "forward_backward", examples, *args, **settings)
        for example in examples:
            _, grads = run(self, "forward_backward", [example], *args, **settings)
            divisor = max(float(np.sum(example.inputs.get("weights", 1.0))), 1e-9)
            accumulate(self._grads, {name: grad / divisor for name, grad in grads.items()})
        return result

    MODEL.forward_backward = forward_backward  # type: ignore[method-assign]


@GROUP.mutation("TRN-036", wire="0.16.1")
def gradients_outlive_their_model() -> None:
    """The gradients of an unloaded model go to the next new model."""
    kept: dict[str, Any] = {}

    def keep(original: Any) -> Any:
        def close(self: Any, *, finish: bool = False) -> None:
            original(self, finish=finish)
            if finish and self._engine is not None:
                kept.update(self._engine._grads)

        return close

    def give(original: Any) -> Any:
        def build(self: Any) -> None:
            original(self)
            self._engine._grads.update(kept)
            kept.clear()

        return build

    patches.replace(TrainedModel, "close", keep)
    patches.replace(TrainedModel, "build", give)
