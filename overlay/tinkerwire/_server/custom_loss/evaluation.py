"""Evaluation of custom losses with torch, datum by datum; the engine's cross-entropy applies their gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import attrs
import numpy as np

from tinkerwire._server.custom_loss.graph import ATTRIBUTES, CONSTANTS, FUNCTIONS, METHODS, LossGraph, decode_arguments
from tinkerwire._server.engine import EngineError, Example, LoraModel, LossResult
from tinkerwire._server.engine.arrays import AnyArray, FloatArray
from tinkerwire._wire.loss_graph import GETATTR, LOGPROBS

TARGETS = "target_tokens"
INT_BITS = 64


@attrs.frozen(eq=False)
class DatumLoss:
    """The loss of one datum, its gradient by the log probabilities (float32, in their shape), and its metrics."""

    loss: float
    gradient: FloatArray
    metrics: dict[str, float]


def compute_loss(engine: LoraModel, graph: LossGraph, examples: Sequence[Example], *, backward: bool) -> LossResult:
    """Compute the loss of a batch, the sum over its datums.

    Cross-entropy is the sum of -weight * logprob, so cross-entropy with the negative gradient as weights has exactly
    the gradient of this loss.

    Args:
        engine: the model.
        graph: the loss.
        examples: the batch.
        backward: add the gradients to those of the model.

    Raises:
        EngineError: a datum lacks an input, or its loss cannot be computed.
    """
    other_inputs = [_other_inputs(f"datum {index}", graph, example) for index, example in enumerate(examples)]
    zeros = [np.zeros(example.inputs[TARGETS].shape, np.float32) for example in examples]
    forward = engine.forward(_with_weights(examples, zeros), "cross_entropy")
    logprobs = [output[LOGPROBS] for output in forward.outputs]
    losses = [
        evaluate(f"datum {index}", graph, datum_logprobs, inputs)
        for index, (datum_logprobs, inputs) in enumerate(zip(logprobs, other_inputs, strict=True))
    ]
    if backward:
        engine.forward_backward(_with_weights(examples, [-loss.gradient for loss in losses]), "cross_entropy")
    metrics = {"loss:sum": sum(loss.loss for loss in losses), "tokens:sum": forward.metrics["tokens:sum"]}
    for name in graph.metrics:
        total = sum(loss.metrics[name] for loss in losses)
        metrics[name] = total / len(losses) if name.endswith(":mean") else total
    return LossResult([{LOGPROBS: datum_logprobs} for datum_logprobs in logprobs], metrics)


def evaluate(where: str, graph: LossGraph, logprobs: FloatArray, other_inputs: Sequence[AnyArray]) -> DatumLoss:
    """Compute the loss of one datum.

    Args:
        where: name of the datum in errors.
        graph: the loss.
        logprobs: log probabilities of the targets.
        other_inputs: the other inputs of the graph, in order.

    Raises:
        EngineError: torch cannot compute a step; the error names it.
    """
    import torch  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    from tinkerwire._server.custom_loss.memory_limit import MemoryLimit  # noqa: PLC0415

    where = f"{where}: loss {graph.name}"
    leaf = torch.tensor(logprobs, dtype=torch.float32, requires_grad=True)
    inputs = iter([leaf, *(torch.tensor(values) for values in other_inputs)])
    values: dict[str, Any] = {}

    def resolve(kind: str, text: str) -> Any:
        return values[text] if kind == "ref" else _constants()[kind, text]

    with torch.enable_grad(), MemoryLimit(where):
        for step in graph.steps:
            if step.op == "placeholder":
                values[step.name] = next(inputs)
                continue
            at = f"{where}: step {step.name} ({step.target})"
            args, kwargs = decode_arguments(at, step, resolve)
            try:
                values[step.name] = _functions()[step.op, step.target](*args, **kwargs)
            except EngineError:
                raise
            # The user wrote the loss, so any error of torch is an error of the user.
            except Exception as error:
                raise EngineError(f"{at}: {error}") from None
        loss = _to_number(f"{where}: the loss", values[graph.loss])
        if not getattr(values[graph.loss], "requires_grad", False):
            raise EngineError(f"{where}: the loss must depend on {LOGPROBS}")
        try:
            values[graph.loss].reshape(()).backward()
        # For example, a later step modified a value in place that the gradient needs.
        except Exception as error:
            raise EngineError(f"{where}: no gradient by {LOGPROBS}: {error}") from None
    gradient = np.zeros_like(logprobs) if leaf.grad is None else leaf.grad.to_dense().numpy()
    if not np.isfinite(gradient).all():
        index = [int(i) for i in np.argwhere(~np.isfinite(gradient))[0]]
        raise EngineError(
            f"{where}: the gradient by {LOGPROBS} at {index} must be finite, got {gradient[tuple(index)]}"
        )
    metrics = {name: _to_number(f"{where}: {name}", values[node]) for name, node in graph.metrics.items()}
    return DatumLoss(loss, gradient, metrics)


def _to_number(where: str, value: Any) -> float:
    if not hasattr(value, "numel") or value.numel() != 1:
        kind = f"shape {list(value.shape)}" if hasattr(value, "shape") else f"type {type(value).__name__}"
        raise EngineError(f"{where} must be a tensor with one number, got {kind}; reduce it, for example by .sum()")
    number = float(value.detach())
    if not np.isfinite(number):
        raise EngineError(f"{where} must be finite, got {number}")
    return number


def _other_inputs(where: str, graph: LossGraph, example: Example) -> list[AnyArray]:
    for loss_input in graph.inputs:
        name = TARGETS if loss_input.name == LOGPROBS else loss_input.name
        values = example.inputs.get(name)
        if values is None:
            raise EngineError(f"{where}: {name!r} is missing; loss {graph.name} requires it")
        if values.ndim != loss_input.rank:
            raise EngineError(
                f"{where}: {name} must have {loss_input.rank} dimensions for loss {graph.name}, got {values.ndim}"
            )
    return [example.inputs[loss_input.name] for loss_input in graph.other_inputs]


def _with_weights(examples: Sequence[Example], weights: Sequence[AnyArray]) -> list[Example]:
    return [
        Example(example.tokens, {TARGETS: example.inputs[TARGETS], "weights": values}, example.patches)
        for example, values in zip(examples, weights, strict=True)
    ]


@cache
def _functions() -> Mapping[tuple[str, str], Callable[..., Any]]:
    """Return the functions of FUNCTIONS and METHODS; this version of torch may lack some."""
    import math  # noqa: PLC0415
    import operator  # noqa: PLC0415

    import torch  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    roots = {"torch": torch, "operator": operator, "math": math}
    functions: dict[tuple[str, str], Callable[..., Any]] = {}
    for name in FUNCTIONS - {GETATTR}:
        root, *path = name.split(".")
        value: Any = roots[root]
        for part in path:
            value = getattr(value, part, None)
        is_arithmetic = root == "operator" and name != "operator.getitem"
        functions["call_function", name] = _restrict_operands(name, value) if is_arithmetic else value or _missing(name)
    for name in METHODS:
        functions["call_method", name] = getattr(torch.Tensor, name, None) or _missing(name)
    functions["call_function", GETATTR] = _read_attribute
    return functions


def _restrict_operands(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Restrict an operator to tensors and numbers; with texts, tuples and large ints, Python could fill the memory."""
    import torch  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    def call(*operands: Any) -> Any:
        for operand in operands:
            if not isinstance(operand, torch.Tensor | int | float):
                raise TypeError(f"{name}: operands must be tensors or numbers, got {type(operand).__name__}")
        are_ints = all(isinstance(operand, int) for operand in operands)
        if are_ints and name == "operator.pow" and abs(operands[1]) >= INT_BITS:
            raise OverflowError(f"{name}: {operands[0]} ** {operands[1]} does not fit into {INT_BITS} bits")
        result = function(*operands)
        if isinstance(result, int) and result.bit_length() >= INT_BITS:
            raise OverflowError(f"{name}: the result does not fit into {INT_BITS} bits")
        return result

    return call


def _read_attribute(tensor: Any, name: str) -> Any:
    import torch  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    if not isinstance(tensor, torch.Tensor) or name not in ATTRIBUTES:
        raise TypeError(f"attribute {name} can only be read from tensors")
    return getattr(tensor, name)


def _missing(name: str) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"this server's version of torch does not have {name}")

    return fail


@cache
def _constants() -> Mapping[tuple[str, str], Any]:
    import torch  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    return {
        (kind, name): torch.device(name) if kind == "device" else getattr(torch, name)
        for kind, names in CONSTANTS.items()
        for name in names
    }
