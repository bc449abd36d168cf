"""Custom losses computed with torch, datum by datum, and trained through the engine's cross-entropy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import attrs
import numpy as np

from tinkerwire._server.custom_loss.allowed_ops import ATTRIBUTES, CONSTANTS, FUNCTIONS, METHODS
from tinkerwire._server.custom_loss.graph import LossGraph, arguments
from tinkerwire._server.custom_loss.memory_limit import bounded
from tinkerwire._server.engine import EngineError, Example, LoraModel, LossResult
from tinkerwire._server.engine.arrays import AnyArray, FloatArray
from tinkerwire._wire.loss_graph import GETATTR, LOGPROBS

TARGETS = "target_tokens"
INT_BITS = 64


@attrs.frozen(eq=False)
class Evaluated:
    """The loss of one datum, its gradient by the log probabilities (float32, shaped like those), and its metrics."""

    loss: float
    gradient: FloatArray
    metrics: dict[str, float]


def train(engine: LoraModel, graph: LossGraph, examples: Sequence[Example], *, backward: bool) -> LossResult:
    """The loss of a batch, the sum over its datums; ``backward`` adds its gradients to those of the model.

    Cross-entropy is the sum of -weight * logprob, so weights of minus the gradient train on exactly this loss.

    Raises:
        EngineError: a datum without what the loss reads, or one for which it cannot be computed.
    """
    others = [_other_inputs(f"datum {place}", graph, each) for place, each in enumerate(examples)]
    zeros = [np.zeros(each.inputs[TARGETS].shape, np.float32) for each in examples]
    found = engine.forward(_weighted(examples, zeros), "cross_entropy")
    logprobs = [each[LOGPROBS] for each in found.outputs]
    evaluated = [
        evaluate(f"datum {place}", graph, own, read)
        for place, (own, read) in enumerate(zip(logprobs, others, strict=True))
    ]
    if backward:
        engine.forward_backward(_weighted(examples, [-each.gradient for each in evaluated]), "cross_entropy")
    metrics = {"loss:sum": sum(each.loss for each in evaluated), "tokens:sum": found.metrics["tokens:sum"]}
    for name in graph.metrics:
        total = sum(each.metrics[name] for each in evaluated)
        metrics[name] = total / len(evaluated) if name.endswith(":mean") else total
    return LossResult([{LOGPROBS: own} for own in logprobs], metrics)


def evaluate(where: str, graph: LossGraph, logprobs: FloatArray, others: Sequence[AnyArray]) -> Evaluated:
    """The loss of one datum; EngineError where torch cannot compute it, naming the step."""
    import torch  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    where = f"{where}: loss {graph.name}"
    leaf = torch.tensor(logprobs, dtype=torch.float32, requires_grad=True)
    given = iter([leaf, *(torch.tensor(each) for each in others)])
    values: dict[str, Any] = {}

    def of(kind: str, text: str) -> Any:
        return values[text] if kind == "ref" else _constants()[kind, text]

    with torch.enable_grad(), bounded(where):
        for step in graph.steps:
            if step.op == "placeholder":
                values[step.name] = next(given)
                continue
            at = f"{where}: step {step.name} ({step.target})"
            args, kwargs = arguments(at, step, of)
            try:
                values[step.name] = _functions()[step.op, step.target](*args, **kwargs)
            except EngineError:
                raise
            # Whatever a loss of the user's makes torch raise is the loss's fault.
            except Exception as error:
                raise EngineError(f"{at}: {error}") from None
        loss = _single(f"{where}: its loss", values[graph.loss])
        if not getattr(values[graph.loss], "requires_grad", False):
            raise EngineError(f"{where}: it does not follow from {LOGPROBS}, so that there is nothing to train on")
        try:
            values[graph.loss].reshape(()).backward()
        # Such as a value that is needed here and that a later step has changed in place.
        except Exception as error:
            raise EngineError(f"{where}: it has no gradient by {LOGPROBS}: {error}") from None
    gradient = np.zeros_like(logprobs) if leaf.grad is None else leaf.grad.to_dense().numpy()
    if not np.isfinite(gradient).all():
        place = [int(i) for i in np.argwhere(~np.isfinite(gradient))[0]]
        raise EngineError(f"{where}: its gradient by {LOGPROBS} at {place} is {gradient[tuple(place)]}")
    metrics = {name: _single(f"{where}: {name}", values[node]) for name, node in graph.metrics.items()}
    return Evaluated(loss, gradient, metrics)


def _single(where: str, value: Any) -> float:
    if not hasattr(value, "numel") or value.numel() != 1:
        found = f"the shape {list(value.shape)}" if hasattr(value, "shape") else f"the type {type(value).__name__}"
        raise EngineError(f"{where} has {found}; make it a tensor of one number, as by .sum()")
    number = float(value.detach())
    if not np.isfinite(number):
        raise EngineError(f"{where} is {number}")
    return number


def _other_inputs(where: str, graph: LossGraph, example: Example) -> list[AnyArray]:
    for each in graph.inputs:
        name = TARGETS if each.name == LOGPROBS else each.name
        found = example.inputs.get(name)
        if found is None:
            raise EngineError(f"{where}: {name!r} is missing; loss {graph.name} reads it")
        if found.ndim != each.rank:
            raise EngineError(
                f"{where}: {name} has {found.ndim} dimensions; loss {graph.name} was made for {each.rank}"
            )
    return [example.inputs[each.name] for each in graph.other_inputs]


def _weighted(examples: Sequence[Example], weights: Sequence[AnyArray]) -> list[Example]:
    return [
        Example(each.tokens, {TARGETS: each.inputs[TARGETS], "weights": own})
        for each, own in zip(examples, weights, strict=True)
    ]


@cache
def _functions() -> Mapping[tuple[str, str], Callable[..., Any]]:
    """What each name of FUNCTIONS and METHODS is in this torch, which may lack some."""
    import math  # noqa: PLC0415
    import operator  # noqa: PLC0415

    import torch  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    roots = {"torch": torch, "operator": operator, "math": math}
    found: dict[tuple[str, str], Callable[..., Any]] = {}
    for name in FUNCTIONS - {GETATTR}:
        root, *path = name.split(".")
        value: Any = roots[root]
        for part in path:
            value = getattr(value, part, None)
        is_plain = root == "operator" and name != "operator.getitem"
        found["call_function", name] = _of_numbers(name, value) if is_plain else value or _lacking(name)
    for name in METHODS:
        found["call_method", name] = getattr(torch.Tensor, name, None) or _lacking(name)
    found["call_function", GETATTR] = _read
    return found


def _of_numbers(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """An operator for tensors and numbers alone: of texts, tuples and great ints Python makes what fills the memory."""
    import torch  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    def call(*operands: Any) -> Any:
        for each in operands:
            if not isinstance(each, torch.Tensor | int | float):
                raise TypeError(f"{name} of a {type(each).__name__}; it takes tensors and numbers")
        are_ints = all(isinstance(each, int) for each in operands)
        if are_ints and name == "operator.pow" and abs(operands[1]) >= INT_BITS:
            raise OverflowError(f"{operands[0]} ** {operands[1]} does not fit into {INT_BITS} bits")
        found = function(*operands)
        if isinstance(found, int) and found.bit_length() >= INT_BITS:
            raise OverflowError(f"{name}: its result does not fit into {INT_BITS} bits")
        return found

    return call


def _read(tensor: Any, name: str) -> Any:
    import torch  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    if not isinstance(tensor, torch.Tensor) or name not in ATTRIBUTES:
        raise TypeError(f"{name} can be read of tensors only")
    return getattr(tensor, name)


def _lacking(name: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"the torch of this server has no {name}")

    return refuse


@cache
def _constants() -> Mapping[tuple[str, str], Any]:
    import torch  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    return {
        (kind, name): torch.device(name) if kind == "device" else getattr(torch, name)
        for kind, names in CONSTANTS.items()
        for name in names
    }
