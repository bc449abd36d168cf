"""Mutations of forward, forward_backward and optim_step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tinkerwire._server import conversion
from tinkerwire._server.engine import losses
from tinkerwire._server.engine import training as engine
from tinkerwire._server.engine.errors import EngineError
from tinkerwire._server.engine.passes import accumulate

from . import patches
from .losses import change_function
from .mutation import Group

GROUP = Group("Training")
MODEL = engine.LoraModel
MAX_DATUMS = 100
MAX_TOKENS = 200


def change_outputs(change: Callable[[list[Any], dict[str, float]], tuple[Any, Any]]) -> None:
    """Change outputs and metrics of forward and forward_backward."""

    def make(original: Any) -> Any:
        return lambda result: original(engine.LossResult(*change(list(result.outputs), dict(result.metrics))))

    patches.replace(conversion, "to_output", make)


def change_examples(change: Callable[[engine.Example], engine.Example]) -> None:
    """Change the examples that the engine gets."""
    patches.replace(
        conversion, "to_examples", lambda original: lambda data, config: [change(e) for e in original(data, config)]
    )


def with_inputs(example: engine.Example, **inputs: Any) -> engine.Example:
    """Return an example with other inputs."""
    return engine.Example(example.tokens, {**example.inputs, **inputs}, example.patches)


@GROUP.mutation("TRN-001", "TRN-003")
def one_output() -> None:
    """Forward and forward_backward return the output of the first datum only."""
    change_outputs(lambda outputs, metrics: (outputs[:1], metrics))


@GROUP.mutation("TRN-004")
def logprobs_negated() -> None:
    """The logprobs of targets have the wrong sign."""
    change_outputs(lambda outputs, metrics: ([{**o, "logprobs": -o["logprobs"]} for o in outputs], metrics))


@GROUP.mutation("TRN-005")
def logprobs_in_columns() -> None:
    """The logprobs of targets have one dimension too many."""

    def reshape(output: Mapping[str, Any]) -> Any:
        values = output["logprobs"]
        return {**output, "logprobs": values.reshape(-1, 1) if values.ndim == 1 else values}

    change_outputs(lambda outputs, metrics: ([reshape(output) for output in outputs], metrics))


@GROUP.mutation("ORD-003", "TRN-006")
def outputs_reversed() -> None:
    """The outputs of a batch are in the reverse order."""
    change_outputs(lambda outputs, metrics: (outputs[::-1], metrics))


@GROUP.mutation("TRN-007")
def outputs_padded() -> None:
    """The outputs of a batch are padded to the longest one."""

    def pad(outputs: list[Any]) -> list[Any]:
        longest = max(len(output["logprobs"]) for output in outputs)
        return [
            {name: np.pad(value, (0, longest - len(value))) if value.ndim == 1 else value for name, value in o.items()}
            for o in outputs
        ]

    change_outputs(lambda outputs, metrics: (pad(outputs), metrics))


@GROUP.mutation("TRN-008")
def metric_without_reduction() -> None:
    """One metric has a name without a reduction."""
    change_outputs(lambda outputs, metrics: (outputs, {**metrics, "loss": 1.0}))


@GROUP.mutation("TRN-009")
def no_loss_metric() -> None:
    """The metric loss:sum is absent."""
    change_outputs(
        lambda outputs, metrics: (outputs, {name: value for name, value in metrics.items() if name != "loss:sum"})
    )


@GROUP.mutation("LOS-003", "LOS-012", "LOS-013", "LOS-021", "LOS-031", "TRN-010")
def loss_is_mean() -> None:
    """The loss is divided by the number of datums."""
    change_outputs(
        lambda outputs, metrics: (outputs, {**metrics, "loss:sum": metrics["loss:sum"] / max(1, len(outputs))})
    )


@GROUP.mutation("LOS-002", "LOS-011", "LOS-021", "LOS-031", "TRN-010")
def weights_not_in_loss() -> None:
    """The loss is minus the sum of all logprobs, whatever the weights."""
    change_outputs(
        lambda outputs, metrics: (outputs, {**metrics, "loss:sum": -float(sum(o["logprobs"].sum() for o in outputs))})
    )


@GROUP.mutation(
    *("CON-001", "LOS-001", "LOS-010", "LOS-020", "LOS-021", "LOS-030", "ORD-001", "TRN-012"),
)
def logprobs_of_backward_shifted() -> None:
    """forward_backward returns logprobs that are 0.1 too low, and forward the right ones."""

    def make(original: Any) -> Any:
        def forward_backward(*args: Any, **settings: Any) -> Any:
            result = original(*args, **settings)
            return engine.LossResult([{**o, "logprobs": o["logprobs"] - 0.1} for o in result.outputs], result.metrics)

        return forward_backward

    patches.replace(MODEL, "forward_backward", make)


@GROUP.mutation("SMP-020", "TRN-013")
def chunks_rotated() -> None:
    """The tokens of an input of several chunks are rotated by one place."""

    def make(original: Any) -> Any:
        def to_input(where: Any, model_input: Any, config: Any) -> Any:
            result = original(where, model_input, config)
            if len(model_input.chunks) > 1:
                return conversion.Input(np.roll(result.tokens, 1), result.patches)
            return result

        return to_input

    patches.replace(conversion, "to_input", make)


@GROUP.mutation("TRN-014", "TRN-015", "TRN-044")
def targets_from_input() -> None:
    """Targets are the next tokens of the input, whatever target_tokens has."""

    def change(example: engine.Example) -> engine.Example:
        if "target_tokens" not in example.inputs or example.inputs["target_tokens"].ndim != 1:
            return example
        return with_inputs(example, target_tokens=np.append(example.tokens[1:], example.tokens[:1]))

    change_examples(change)


@GROUP.mutation("TRN-021")
def weights_absolute() -> None:
    """The gradient takes the absolute value of negative weights."""
    change_function(
        "cross_entropy",
        lambda _, logprobs, inputs, __: losses.TokenLosses(
            -logprobs * inputs["weights"], -np.abs(inputs["weights"]), {}
        ),
    )


@GROUP.mutation("TRN-022")
def weight_zero_counts() -> None:
    """Targets of weight 0 count as 1 in the gradient."""
    change_function(
        "cross_entropy",
        lambda _, logprobs, inputs, __: losses.TokenLosses(
            -logprobs * inputs["weights"], np.where(inputs["weights"] == 0, -1.0, -inputs["weights"]), {}
        ),
    )


@GROUP.mutation("TRN-024", "WGT-013")
def forward_accumulates() -> None:
    """Forward adds a gradient."""
    MODEL.forward = MODEL.forward_backward  # type: ignore[method-assign]


@GROUP.mutation("TRN-025")
def gradients_replaced() -> None:
    """A forward_backward replaces the gradients of the one before."""

    def make(original: Any) -> Any:
        def forward_backward(self: Any, *args: Any, **settings: Any) -> Any:
            self._grads = {}
            return original(self, *args, **settings)

        return forward_backward

    patches.replace(MODEL, "forward_backward", make)


@GROUP.mutation("TRN-026")
def gradients_averaged() -> None:
    """The gradient of a batch is divided by its number of datums."""
    run = MODEL._run

    def forward_backward(self: Any, examples: Any, *args: Any, **settings: Any) -> Any:
        result, grads = run(self, "forward_backward", examples, *args, **settings)
        accumulate(self._grads, {name: grad / len(examples) for name, grad in grads.items()})
        return result

    MODEL.forward_backward = forward_backward  # type: ignore[method-assign]


@GROUP.mutation(
    *("CON-001", "LOS-001", "LOS-010", "LOS-020", "LOS-030", "ORD-003", "ORD-014", "TRN-028"),
)
def backward_steps() -> None:
    """forward_backward changes the weights a little, before any step."""

    def make(original: Any) -> Any:
        def forward_backward(self: Any, *args: Any, **settings: Any) -> Any:
            result = original(self, *args, **settings)
            for name, grad in self._grads.items():
                self._params[name] -= (1e-3 * np.sign(grad)).astype(self._params[name].dtype)
            return result

        return forward_backward

    patches.replace(MODEL, "forward_backward", make)


def _limit(is_too_large: Callable[[Any], bool]) -> None:
    def make(original: Any) -> Any:
        def run(self: Any, where: str, examples: Any, *args: Any, **settings: Any) -> Any:
            if is_too_large(examples):
                raise EngineError("mutated: too large")
            return original(self, where, examples, *args, **settings)

        return run

    patches.replace(MODEL, "_run", make)


@GROUP.mutation("TRN-040")
def few_datums() -> None:
    """A batch of more than 100 datums fails."""
    _limit(lambda examples: len(examples) > MAX_DATUMS)


@GROUP.mutation("TRN-041")
def few_tokens() -> None:
    """A batch with a datum of more than 200 tokens fails."""
    _limit(lambda examples: max(len(example.tokens) for example in examples) > MAX_TOKENS)


@GROUP.mutation("TRN-044")
def tokens_clamped() -> None:
    """Tokens outside the vocabulary are replaced by its last one."""

    def clamp(example: engine.Example) -> engine.Example:
        inputs = dict(example.inputs)
        if "target_tokens" in inputs:
            inputs["target_tokens"] = np.clip(inputs["target_tokens"], 0, 255)
        return engine.Example(np.clip(example.tokens, 0, 255), inputs, example.patches)

    change_examples(clamp)


@GROUP.mutation("TRN-045", "LOS-044")
def short_inputs_padded() -> None:
    """Inputs that are shorter than the tokens are padded with zeros."""

    def pad(example: engine.Example) -> engine.Example:
        count = len(example.tokens)
        inputs = {
            name: np.pad(value, (0, count - len(value))) if value.ndim == 1 and len(value) < count else value
            for name, value in example.inputs.items()
        }
        return with_inputs(example, **inputs)

    change_examples(pad)


@GROUP.mutation("LOS-043", "TRN-046")
def missing_targets_replaced() -> None:
    """A datum without target_tokens is trained on its own tokens."""
    change_examples(lambda e: e if "target_tokens" in e.inputs else with_inputs(e, target_tokens=e.tokens))


@GROUP.mutation("TRN-047", wire="0.16.1")
def unloaded_models_stay() -> None:
    """unload_model leaves the model usable."""
    from tinkerwire._server.sessions import models  # noqa: PLC0415

    models.Models.remove = lambda *_, **__: None  # type: ignore[assignment,method-assign]
    models.TrainedModel.close = lambda *_, **__: None  # type: ignore[assignment,method-assign]


@GROUP.mutation("TRN-003")
def one_output_of_forward() -> None:
    """Forward returns the output of the first datum only."""

    def make(original: Any) -> Any:
        def forward(self: Any, *args: Any, **settings: Any) -> Any:
            result = original(self, *args, **settings)
            return engine.LossResult(result.outputs[:1], result.metrics)

        return forward

    patches.replace(MODEL, "forward", make)


@GROUP.mutation("TRN-011")
def loss_of_forward_larger() -> None:
    """The loss of forward is 10% too large, and that of forward_backward right."""

    def make(original: Any) -> Any:
        def forward(self: Any, *args: Any, **settings: Any) -> Any:
            result = original(self, *args, **settings)
            return engine.LossResult(result.outputs, {**result.metrics, "loss:sum": result.metrics["loss:sum"] * 1.1})

        return forward

    patches.replace(MODEL, "forward", make)


OPERATIONS = "forward|forward_backward|optim_step|save_weights|save_weights_for_sampler"


@GROUP.mutation("PRO-026", "PRO-066", "TRN-042")
def unknown_model_crashes() -> None:
    """Operations on an unknown model are answered with 500."""
    patches.respond(OPERATIONS, 500, when=lambda _, response: response.status == 404)


@GROUP.mutation("TRN-043")
def unknown_model_is_400() -> None:
    """Operations on an unknown model are answered with 400."""
    patches.respond(OPERATIONS, 400, when=lambda _, response: response.status == 404)
