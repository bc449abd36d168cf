"""A trainable model: a base model, an adapter, accumulated gradients and an optimizer."""

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
from tinkerwire._server.engine.errors import EngineError
from tinkerwire._server.engine.example import Example
from tinkerwire._server.engine.losses import Loss, TokenLosses, get_loss
from tinkerwire._server.engine.passes import LossPass, PassResult, accumulate

STEP = "adam.step"
FIRST = "adam.first."
SECOND = "adam.second."
GRAD = "grad."


def write_state(params: Mapping[str, FloatArray], optimizer: AdamW) -> dict[str, AnyArray]:
    """Copy params, moments (as ``adam.first.NAME`` and ``adam.second.NAME``) and the step to named arrays."""
    arrays: dict[str, AnyArray] = {name: value.copy() for name, value in params.items()}
    arrays |= {f"{FIRST}{name}": value.copy() for name, value in optimizer.first.items()}
    arrays |= {f"{SECOND}{name}": value.copy() for name, value in optimizer.second.items()}
    arrays[STEP] = np.array(optimizer.step, dtype=np.int64)
    return arrays


def read_state(
    template: Mapping[str, FloatArray], arrays: Mapping[str, AnyArray], optimizer: bool
) -> tuple[dict[str, FloatArray], AdamW]:
    """Return params and optimizer from arrays, with the names, shapes and dtypes of `template`.

    Raises:
        EngineError: an array is missing, unexpected or invalid.
    """
    unexpected = [name for name in arrays if name.startswith("lora.") and name not in template]
    if unexpected:
        raise EngineError(
            f"load_arrays: this model does not have {unexpected[0]!r}; "
            "load the arrays into a model with the same base and train_* settings"
        )
    params = _read_all(template, arrays, "")
    if not optimizer:
        return params, AdamW.zeros(params)
    if STEP not in arrays:
        raise EngineError(f"load_arrays: {STEP!r} is missing; load a training state, or load without the optimizer")
    first, second = _read_all(template, arrays, FIRST), _read_all(template, arrays, SECOND)
    return params, AdamW(first, second, int(arrays[STEP]))


def _read_all(template: Mapping[str, FloatArray], arrays: Mapping[str, AnyArray], prefix: str) -> dict[str, FloatArray]:
    return {name: _read_array(prefix + name, arrays, value) for name, value in template.items()}


def _read_array(name: str, arrays: Mapping[str, AnyArray], template: FloatArray) -> FloatArray:
    if name not in arrays:
        raise EngineError(f"load_arrays: {name!r} is missing; pass the arrays of state_arrays unchanged")
    value = arrays[name]
    if value.shape != template.shape:
        raise EngineError(
            f"load_arrays: {name!r} must have shape {template.shape}, got {value.shape}; "
            "load the arrays into a model with the same base and rank"
        )
    if value.dtype.kind != "f" or not np.isfinite(value).all():
        raise EngineError(
            f"load_arrays: {name!r} must only have finite floats, got dtype {value.dtype}; save the state again"
        )
    return value.astype(template.dtype)


@attrs.frozen(eq=False)
class LossResult:
    """The result of a loss over a batch.

    Args:
        outputs: one per example: ``logprobs`` of the targets (nats) and ``elementwise_loss``, float32 in the shape of
            the targets.
        metrics: keyed ``name:reduction``, so that the results of parts of a batch can be merged; means are over
            examples.
    """

    outputs: list[dict[str, FloatArray]]
    metrics: dict[str, float]


class LoraModel:
    """A base model with a trainable adapter. Not thread safe.

    Args:
        base: the base model, which is shared and never modified.
        settings: settings of the adapter.

    Raises:
        EngineError: the settings do not fit the base model.
    """

    def __init__(self, base: BaseModel, settings: LoraSettings) -> None:
        settings.check(base.config)
        self.base = base
        self.settings = settings
        self._params = lora.init_values(base, settings)
        self._grads: dict[str, FloatArray] = {}
        self._optimizer = AdamW.zeros(self._params)

    @property
    def step(self) -> int:
        """Number of optimizer steps."""
        return self._optimizer.step

    @property
    def params(self) -> Mapping[str, FloatArray]:
        """The current adapter values, keyed ``lora.<matrix>.A`` and ``.B``."""
        return self._params

    @property
    def grads(self) -> Mapping[str, FloatArray]:
        """The gradients accumulated since the last optim_step."""
        return self._grads

    def forward(
        self, examples: Sequence[Example], loss_fn: str, config: Mapping[str, float] | None = None
    ) -> LossResult:
        """Compute the loss and the log probabilities of examples without changing the model.

        Raises:
            EngineError: the loss, its config or an example is invalid.
        """
        return self._run("forward", examples, loss_fn, config)[0]

    def forward_backward(
        self, examples: Sequence[Example], loss_fn: str, config: Mapping[str, float] | None = None
    ) -> LossResult:
        """Compute the loss as `forward` does, and accumulate the gradient of its sum for optim_step.

        Raises:
            EngineError: the loss, its config or an example is invalid; the gradients are unchanged.
        """
        result, grads = self._run("forward_backward", examples, loss_fn, config)
        accumulate(self._grads, grads)
        return result

    def optim_step(self, learning_rate: float = 1e-4, **settings: float) -> dict[str, float]:
        """Take one AdamW step with the accumulated gradients, drop them, and return the metrics of the step.

        Without accumulated gradients the gradient is zero: the step counts, and momentum and weight decay apply.
        The settings are those of AdamWSettings.

        Raises:
            EngineError: a setting is out of range, or a gradient is not finite; the adapter is unchanged.
        """
        adamw_settings = AdamWSettings(learning_rate=learning_rate, **settings)
        adamw_settings.check()
        grads = self._grads or {name: np.zeros_like(value) for name, value in self._params.items()}
        self._grads = {}
        return self._optimizer.update(self._params, grads, adamw_settings)

    def state_arrays(self) -> dict[str, AnyArray]:
        """Return copies of the adapter and the optimizer state, without accumulated gradients."""
        return write_state(self._params, self._optimizer)

    def load_arrays(self, arrays: Mapping[str, AnyArray], optimizer: bool) -> None:
        """Load the arrays of `state_arrays` and drop accumulated gradients.

        Args:
            arrays: the arrays.
            optimizer: also load the optimizer state; otherwise it is reset.

        Raises:
            EngineError: an array is missing or invalid; the model is unchanged.
        """
        self._params, self._optimizer = read_state(self._params, arrays, optimizer)
        self._grads = {}

    def snapshot_arrays(self) -> dict[str, AnyArray]:
        """Return copies of the whole state, with the accumulated gradients."""
        return self.state_arrays() | {f"{GRAD}{name}": value.copy() for name, value in self._grads.items()}

    def restore_arrays(self, arrays: Mapping[str, AnyArray]) -> None:
        """Restore the state of `snapshot_arrays`, which need not be finite."""
        params = {name: arrays[name] for name in self._params}
        first, second = ({name: arrays[prefix + name] for name in params} for prefix in (FIRST, SECOND))
        self._params, self._optimizer = params, AdamW(first, second, int(arrays[STEP]))
        self._grads = {name.removeprefix(GRAD): value for name, value in arrays.items() if name.startswith(GRAD)}

    def adapter_snapshot(self) -> lora.Adapter:
        """Return a copy of the current adapter, for samplers."""
        return lora.Adapter.copy_of(self.base.config.name, self.settings, self._params)

    def _run(
        self, where: str, examples: Sequence[Example], loss_fn: str, config: Mapping[str, float] | None
    ) -> tuple[LossResult, dict[str, FloatArray]]:
        loss = get_loss(loss_fn)
        settings = loss.settings(config)
        batch = flatten(where, self.base.config, examples, loss, settings)
        trained = adapted_matrices(self.base.config, self.settings) if where == "forward_backward" else ()
        result = LossPass(
            where=where,
            base=self.base,
            weights=lora.merge(self.base, self.settings, self._params),
            batch=batch,
            loss=loss,
            settings=settings,
            trained=trained,
        ).run()
        outputs, metrics = _outputs(batch, result), _metrics(batch, loss, result.tokens)
        return LossResult(outputs, metrics), lora.gradients(self.settings, self._params, result.grads)


def _outputs(batch: Batch, result: PassResult) -> list[dict[str, FloatArray]]:
    columns = zip(batch.split(result.logprobs), batch.split(result.tokens.values), strict=True)
    return [
        {"logprobs": logprobs.astype(np.float32), "elementwise_loss": losses.astype(np.float32)}
        for logprobs, losses in columns
    ]


def _metrics(batch: Batch, loss: Loss, tokens: TokenLosses) -> dict[str, float]:
    mask = batch.inputs[loss.mask]
    metrics = {"loss:sum": float(tokens.values.sum()), "tokens:sum": float(len(batch.tokens))}
    if loss.mask == "weights":
        metrics["weights:sum"] = float(mask.sum())
    active = (mask != 0).astype(np.float64)
    counts = np.maximum(np.add.reduceat(active, batch.starts[:-1]), 1.0)
    for key, values in tokens.statistics.items():
        per_example = np.add.reduceat(values * active, batch.starts[:-1]) / counts
        metrics[f"{key}:mean"] = float(per_example.mean())
    return metrics
