"""A trainable model: a base, an adapter, the gradients gathered so far and the optimizer's state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from tinkerwire._server.engine import lora
from tinkerwire._server.engine.adamw import AdamW, AdamWSettings
from tinkerwire._server.engine.arrays import AnyArray, FloatArray
from tinkerwire._server.engine.base import BaseModel, adapted_matrices
from tinkerwire._server.engine.batch import Batch, flatten
from tinkerwire._server.engine.config import LoraSettings
from tinkerwire._server.engine.example import Example
from tinkerwire._server.engine.losses import Loss, TokenLosses, loss_named
from tinkerwire._server.engine.passes import LossPass, PassResult, accumulate
from tinkerwire._server.engine.state import read_state, write_state

__all__ = ["LoraModel", "LossResult"]


@attrs.frozen(eq=False)
class LossResult:
    """What one call computed.

    Args:
        outputs: one an example: ``logprobs`` of the targets (nats) and ``elementwise_loss``, float32 in
            the shape of the targets.
        metrics: keyed ``name:reduction``, so that the results of two halves of a batch combine into the
            result of the whole; a mean is over examples.
    """

    outputs: list[dict[str, FloatArray]]
    metrics: dict[str, float]


class LoraModel:
    """A base model with trainable adapters. Not thread safe: one caller at a time.

    Args:
        base: shared and never changed.
        settings: what to adapt, at which rank, from which seed.

    Raises:
        EngineError: settings that do not fit the base.
    """

    def __init__(self, base: BaseModel, settings: LoraSettings) -> None:
        settings.check(base.config)
        self.base = base
        self.settings = settings
        self._params = lora.first_values(base, settings)
        self._grads: dict[str, FloatArray] = {}
        self._optimizer = AdamW.zeros(self._params)

    @property
    def step(self) -> int:
        """Optimizer steps taken."""
        return self._optimizer.step

    @property
    def params(self) -> Mapping[str, FloatArray]:
        """The adapter values in use, keyed ``lora.<matrix>.A`` and ``.B``."""
        return self._params

    @property
    def grads(self) -> Mapping[str, FloatArray]:
        """Gradients gathered since the last optim_step; empty when there are none."""
        return self._grads

    def forward(
        self, examples: Sequence[Example], loss_fn: str, config: Mapping[str, float] | None = None
    ) -> LossResult:
        """The loss and log probabilities of the examples; changes nothing.

        Raises:
            EngineError: a loss, config or example that cannot be computed.
        """
        return self._run("forward", examples, loss_fn, config)[0]

    def forward_backward(
        self, examples: Sequence[Example], loss_fn: str, config: Mapping[str, float] | None = None
    ) -> LossResult:
        """Like `forward`, and adds the gradient of the summed loss to what optim_step will use.

        Raises:
            EngineError: a loss, config or example that cannot be computed; the gradients stay as they were.
        """
        result, grads = self._run("forward_backward", examples, loss_fn, config)
        accumulate(self._grads, grads)
        return result

    def optim_step(
        self,
        learning_rate: float = 1e-4,
        beta1: float = 0.9,
        beta2: float = 0.95,
        eps: float = 1e-12,
        weight_decay: float = 0.0,
        grad_clip_norm: float = 0.0,
    ) -> dict[str, float]:
        """Take one AdamW step with the gathered gradients, drop them, and return the step's metrics.

        With none gathered the gradient is zero: the step is counted, momentum and weight decay act.

        Raises:
            EngineError: a number out of range, or gradients that are not finite; no value moves then.
        """
        settings = AdamWSettings(
            learning_rate=learning_rate,
            beta1=beta1,
            beta2=beta2,
            eps=eps,
            weight_decay=weight_decay,
            grad_clip_norm=grad_clip_norm,
        )
        settings.check()
        grads = self._grads or {name: np.zeros_like(value) for name, value in self._params.items()}
        self._grads = {}
        return self._optimizer.update(self._params, grads, settings)

    def state_arrays(self) -> dict[str, AnyArray]:
        """Copies of the adapters and the optimizer's state; gradients not yet used are no part of it."""
        return write_state(self._params, self._optimizer)

    def load_arrays(self, arrays: Mapping[str, AnyArray], optimizer: bool) -> None:
        """Take over the values that `state_arrays` gave, and drop gathered gradients.

        Args:
            optimizer: also take over moments and step count; otherwise they start afresh.

        Raises:
            EngineError: a missing array, another shape, or numbers that are not finite; nothing changes then.
        """
        self._params, self._optimizer = read_state(self._params, arrays, optimizer)
        self._grads = {}

    def adapter_snapshot(self) -> lora.Adapter:
        """The adapters as they are now, for samplers."""
        return lora.Adapter.copy_of(self.base.config.name, self.settings, self._params)

    def _run(
        self, where: str, examples: Sequence[Example], loss_fn: str, config: Mapping[str, float] | None
    ) -> tuple[LossResult, dict[str, FloatArray]]:
        loss = loss_named(loss_fn)
        settings = loss.settings(config)
        batch = flatten(where, self.base.config, examples, loss, settings)
        wanted = adapted_matrices(self.base.config, self.settings) if where == "forward_backward" else ()
        result = LossPass(
            where=where,
            base=self.base,
            weights=lora.merge(self.base, self.settings, self._params),
            batch=batch,
            loss=loss,
            settings=settings,
            wanted=wanted,
        ).run()
        outputs, metrics = _outputs(batch, result), _metrics(batch, loss, result.tokens)
        return LossResult(outputs, metrics), lora.gradients(self.settings, self._params, result.grads)


def _outputs(batch: Batch, result: PassResult) -> list[dict[str, FloatArray]]:
    columns = zip(batch.split(result.logprobs), batch.split(result.tokens.values), strict=True)
    return [
        {"logprobs": own.astype(np.float32), "elementwise_loss": values.astype(np.float32)} for own, values in columns
    ]


def _metrics(batch: Batch, loss: Loss, tokens: TokenLosses) -> dict[str, float]:
    mask = batch.inputs[loss.mask]
    metrics = {"loss:sum": float(tokens.values.sum()), "tokens:sum": float(len(batch.tokens))}
    if loss.mask == "weights":
        metrics["weights:sum"] = float(mask.sum())
    active = (mask != 0).astype(np.float64)
    counts = np.maximum(np.add.reduceat(active, batch.starts[:-1]), 1.0)
    for key, watched in tokens.watched.items():
        per_example = np.add.reduceat(watched * active, batch.starts[:-1]) / counts
        metrics[f"{key}:mean"] = float(per_example.mean())
    return metrics
