"""Tracing of a custom loss: a torch function becomes the graph that the wire carries."""

from __future__ import annotations

import inspect
import math
import threading
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import attrs

from tinkerwire_base.validators import INT64_MAX, INT64_MIN
from tinkerwire_generated import models

from ..._wire.loss_graph import GETATTR, INPUT_NAME, LOGPROBS, MAX_INPUTS, METRIC_NAME

ALLOWED_MODULES = ("torch", "math", "operator")
DETACHING_METHODS = ("backward", "item", "numpy", "tolist")
"""Methods whose results torch cannot trace further."""
_lock = threading.RLock()
"""torch.fx replaces functions of other modules while it traces. Reentrant for signal handlers."""


@attrs.frozen(eq=False)
class TracedLoss:
    """A traced loss."""

    name: str
    inputs: tuple[models.CustomLossInput, ...]
    """The inputs of the loss, logprobs among them, with their numbers of dimensions."""
    graph: models.CustomLossGraph
    module: Any
    """The ``torch.fx.GraphModule`` that computes it."""


def trace(fn: Callable[..., Any], input_ranks: Mapping[str, int]) -> TracedLoss:
    """Trace a loss by calling it once, with proxies of tensors.

    Args:
        fn: function of the log probabilities of one datum and of some of its loss_fn_inputs; returns (loss, metrics).
        input_ranks: number of dimensions of each parameter of ``fn``.

    Raises:
        ImportError: torch is not installed.
        TypeError: ``fn`` is not a function, or ``input_ranks`` is not a mapping.
        ValueError: torch cannot trace the function, or a server would reject it.
    """
    try:
        import torch.fx  # noqa: PLC0415  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError(
            "create_custom_loss: torch is not installed; install it, or pass a function that returns its gradients to "
            "forward_backward_custom"
        ) from error
    if not callable(fn):
        raise TypeError(f"create_custom_loss: expected a function, got {type(fn).__name__}")
    if not isinstance(input_ranks, Mapping):
        raise TypeError(f"create_custom_loss: input_ranks: expected a dict of ints, got {type(input_ranks).__name__}")
    name = str(getattr(fn, "__name__", type(fn).__name__))
    if inspect.iscoroutinefunction(fn):
        _reject(name, "expected a synchronous function, got an async one")
    inputs = _inputs(name, fn, input_ranks)
    module = _module(torch, name, fn)
    nodes = [_encode_node(torch, name, node) for node in module.graph.nodes]
    _check_output(torch, name, next(node for node in module.graph.nodes if node.op == "output"))
    return TracedLoss(name, inputs, models.CustomLossGraph(nodes=nodes), module)


def _reject(name: str, reason: str) -> NoReturn:
    raise ValueError(f"create_custom_loss: {name}: {reason}")


def _inputs(name: str, fn: Callable[..., Any], ranks: Mapping[str, int]) -> tuple[models.CustomLossInput, ...]:
    parameters = inspect.signature(fn).parameters
    for parameter in parameters.values():
        if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
            _reject(
                name,
                f"parameter {parameter.name!r} is {parameter.kind.description}; use one positional parameter per input",
            )
        if parameter.default is not parameter.empty:
            _reject(name, f"parameter {parameter.name!r} has a default; every datum must have all inputs of the loss")
        if not INPUT_NAME.fullmatch(parameter.name):
            _reject(name, f"parameter {parameter.name!r}: use lower-case letters, digits and _, at most 64 characters")
    names = list(parameters)
    if names[:1] != [LOGPROBS]:
        _reject(name, f"the first parameter must be {LOGPROBS}, got {names[0] if names else 'none'}")
    if len(names) > MAX_INPUTS:
        _reject(name, f"must have at most {MAX_INPUTS} parameters, got {len(names)}")
    if set(names) != set(ranks):
        _reject(name, f"input_ranks must have the keys {names}, got {list(map(str, ranks))}")
    for key in names:
        rank = ranks[key]
        if isinstance(rank, bool) or rank not in (0, 1, 2):
            _reject(name, f"the rank of {key} must be its number of dimensions, 0, 1 or 2, got {rank!r}")
    if ranks[LOGPROBS] == 0:
        _reject(name, f"the rank of {LOGPROBS} must be that of target_tokens, 1 or 2, got 0")
    return tuple(models.CustomLossInput(name=key, rank=ranks[key]) for key in names)  # type: ignore[arg-type]


def _module(torch: Any, name: str, fn: Callable[..., Any]) -> Any:
    tracer = torch.fx.Tracer()
    create_node = tracer.create_node

    def create_differentiable_node(*args: Any, **kwargs: Any) -> Any:
        # The trace would not record this, and the gradients would differ.
        if not torch.is_grad_enabled():
            raise ValueError("the loss disables gradients; use .detach() on tensors instead")
        return create_node(*args, **kwargs)

    tracer.create_node = create_differentiable_node
    try:
        with _lock, torch.enable_grad():
            graph = tracer.trace(fn)
            return torch.fx.GraphModule(tracer.root, graph)
    except Exception as error:
        hint = "it must not branch on values, and must call torch and math only"
        raise ValueError(f"create_custom_loss: {name}: torch cannot trace the function: {error}; {hint}") from error


def _encode_node(torch: Any, name: str, node: Any) -> models.CustomLossNode:
    if node.op in ("get_attr", "call_module"):
        kind = "a tensor" if node.op == "get_attr" else "a module"
        _reject(name, f"it uses {kind} from outside ({node.target}); it may use only its parameters, numbers and torch")
    target = str(node.target)
    if node.op == "call_function":
        target = torch.fx.node._get_qualified_name(node.target).removeprefix("_")
        if target != GETATTR and target.partition(".")[0] not in ALLOWED_MODULES:
            _reject(name, f"it calls {target}; it may call {', '.join(ALLOWED_MODULES)} and methods of tensors")
    if node.op == "call_method" and target in DETACHING_METHODS:
        _reject(name, f"it calls .{target}(), which does not return a tensor; use tensors for all values")
    args, kwargs = _value(torch, name, list(node.args)), {k: _value(torch, name, v) for k, v in node.kwargs.items()}
    return models.CustomLossNode(op=node.op, name=node.name, target=target, args=args, kwargs=kwargs)


def _value(torch: Any, name: str, value: Any) -> Any:
    """Return an argument in the form of the wire: unchanged, or as an object with one key."""
    if isinstance(value, torch.fx.Node):
        return {"ref": value.name}
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        if not INT64_MIN <= value <= INT64_MAX:
            _reject(name, f"{value} does not fit into 64 bits")
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, list):
        return [_value(torch, name, item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [_value(torch, name, item) for item in value]}
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            _reject(name, f"dict keys must be str, got {list(value)[:5]}")
        return {"dict": {key: _value(torch, name, item) for key, item in value.items()}}
    if isinstance(value, slice):
        return {"slice": [_value(torch, name, item) for item in (value.start, value.stop, value.step)]}
    if value is ...:
        return {"ellipsis": True}
    for kind in ("dtype", "device", "layout", "memory_format"):
        if isinstance(value, getattr(torch, kind)):
            return {kind: str(value).removeprefix("torch.")}
    _reject(name, f"it passes a {type(value).__name__} ({value!r:.100}), which the wire cannot carry")


def _check_output(torch: Any, name: str, output: Any) -> None:
    returned = output.args[0]
    if not isinstance(returned, list | tuple) or len(returned) != 2 or not isinstance(returned[1], dict):
        _reject(name, "it must return (loss, metrics), a tensor and a dict of tensors")
    loss, metrics = returned
    if not isinstance(loss, torch.fx.Node):
        _reject(name, f"the loss must be a tensor computed from {LOGPROBS}, got {loss!r:.100}")
    for key, value in metrics.items():
        if not isinstance(key, str) or not METRIC_NAME.fullmatch(key):
            _reject(
                name,
                f"metric {key!r} must be custom/NAME:sum or custom/NAME:mean, NAME of a-z 0-9 _ . / -, at most 64",
            )
        if not isinstance(value, torch.fx.Node):
            _reject(name, f"metric {key!r} must be a tensor, got {value!r:.100}")
