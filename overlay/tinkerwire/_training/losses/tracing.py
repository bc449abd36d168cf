"""A loss for the server to compute: a function of torch, taken down step by step, in the form of the wire."""

from __future__ import annotations

import inspect
import math
import threading
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import attrs

from tinkerwire_base.validators import INT64_MAX, INT64_MIN
from tinkerwire_generated.models import CustomLossGraph, CustomLossInput, CustomLossNode

from ..._wire.loss_graph import GETATTR, INPUT_NAME, LOGPROBS, MAX_INPUTS, METRIC_NAME

ALLOWED_MODULES = ("torch", "math", "operator")
DETACHING_METHODS = ("backward", "item", "numpy", "tolist")
"""Methods whose results no step after them can follow."""
_lock = threading.RLock()
"""torch.fx replaces functions of other modules while it traces. Reentrant for signal handlers."""


@attrs.frozen(eq=False)
class TracedLoss:
    """A loss that was taken down."""

    name: str
    inputs: tuple[CustomLossInput, ...]
    """logprobs, and what else it reads, with their numbers of dimensions."""
    graph: CustomLossGraph
    module: Any
    """The ``torch.fx.GraphModule`` that computes it."""


def trace(fn: Callable[..., Any], input_ranks: Mapping[str, int]) -> TracedLoss:
    """Take a loss down by calling it once, with stand-ins for tensors.

    Args:
        fn: from the log probabilities of one datum, and inputs of its loss_fn_inputs, to (loss, metrics).
        input_ranks: how many dimensions each parameter of ``fn`` has.

    Raises:
        ImportError: torch is not installed.
        TypeError: ``fn`` is no function, or ``input_ranks`` no mapping.
        ValueError: a function that cannot be taken down, or that a server would refuse.
    """
    try:
        import torch.fx  # noqa: PLC0415  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError(
            "create_custom_loss: torch is not installed; install it, or give forward_backward_custom a plain function "
            "that returns its gradients, too"
        ) from error
    if not callable(fn):
        raise TypeError(f"create_custom_loss: expected a function, got {type(fn).__name__}")
    if not isinstance(input_ranks, Mapping):
        raise TypeError(f"create_custom_loss: input_ranks is {type(input_ranks).__name__}, expected a dict of numbers")
    name = str(getattr(fn, "__name__", type(fn).__name__))
    if inspect.iscoroutinefunction(fn):
        _refuse(name, "it is an async function; give a plain one")
    inputs = _inputs(name, fn, input_ranks)
    module = _module(torch, name, fn)
    nodes = [_encoded(torch, name, node) for node in module.graph.nodes]
    _check_output(torch, name, next(node for node in module.graph.nodes if node.op == "output"))
    return TracedLoss(name, inputs, CustomLossGraph(nodes=nodes), module)


def _refuse(name: str, why: str) -> NoReturn:
    raise ValueError(f"create_custom_loss: {name}: {why}")


def _inputs(name: str, fn: Callable[..., Any], ranks: Mapping[str, int]) -> tuple[CustomLossInput, ...]:
    parameters = inspect.signature(fn).parameters
    for parameter in parameters.values():
        if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
            _refuse(name, f"parameter {parameter.name!r} is not a plain one; give each input a parameter of its own")
        if parameter.default is not parameter.empty:
            _refuse(name, f"parameter {parameter.name!r} has a default; every datum has to bring what a loss reads")
        if not INPUT_NAME.fullmatch(parameter.name):
            _refuse(name, f"parameter {parameter.name!r}: use lower-case letters, digits and _, at most 64")
    names = list(parameters)
    if names[:1] != [LOGPROBS]:
        _refuse(name, f"its first parameter is {names[0] if names else 'missing'}; it has to be {LOGPROBS}")
    if len(names) > MAX_INPUTS:
        _refuse(name, f"it has {len(names)} parameters, at most {MAX_INPUTS} are allowed")
    if set(names) != set(ranks):
        _refuse(name, f"input_ranks is for {', '.join(map(str, ranks)) or 'nothing'}; its parameters are {names}")
    for key in names:
        rank = ranks[key]
        if isinstance(rank, bool) or rank not in (0, 1, 2):
            _refuse(name, f"the rank of {key} is {rank!r}; it is the number of dimensions: 0, 1 or 2")
    if ranks[LOGPROBS] == 0:
        _refuse(name, f"the rank of {LOGPROBS} is 0; it is that of target_tokens, 1 or 2")
    return tuple(CustomLossInput(name=key, rank=ranks[key]) for key in names)  # type: ignore[arg-type]


def _module(torch: Any, name: str, fn: Callable[..., Any]) -> Any:
    tracer = torch.fx.Tracer()
    create_node = tracer.create_node

    def checked(*args: Any, **kwargs: Any) -> Any:
        # It would leave no trace of that, and the gradients would be others.
        if not torch.is_grad_enabled():
            raise ValueError("gradients are switched off for a part of it; use .detach() on tensors in place of that")
        return create_node(*args, **kwargs)

    tracer.create_node = checked
    try:
        with _lock, torch.enable_grad():
            graph = tracer.trace(fn)
            return torch.fx.GraphModule(tracer.root, graph)
    except Exception as error:
        hint = "a plain function that neither branches on values nor leaves torch and math can be"
        raise ValueError(f"create_custom_loss: {name}: it cannot be taken down: {error}; {hint}") from error


def _encoded(torch: Any, name: str, node: Any) -> CustomLossNode:
    if node.op in ("get_attr", "call_module"):
        what = "a tensor" if node.op == "get_attr" else "a module"
        _refuse(
            name, f"it uses {what} from outside ({node.target}); it may use its parameters, numbers and torch alone"
        )
    target = str(node.target)
    if node.op == "call_function":
        target = torch.fx.node._get_qualified_name(node.target).removeprefix("_")
        if target != GETATTR and target.partition(".")[0] not in ALLOWED_MODULES:
            _refuse(name, f"it calls {target}; it may call {', '.join(ALLOWED_MODULES)} and methods of tensors")
    if node.op == "call_method" and target in DETACHING_METHODS:
        _refuse(name, f"it calls .{target}(), after which no tensor is left; keep all that it computes in tensors")
    args, kwargs = _value(torch, name, list(node.args)), {k: _value(torch, name, v) for k, v in node.kwargs.items()}
    return CustomLossNode(op=node.op, name=node.name, target=target, args=args, kwargs=kwargs)


def _value(torch: Any, name: str, value: Any) -> Any:
    """An argument in the form of the wire: as it is, or as an object with one key."""
    if isinstance(value, torch.fx.Node):
        return {"ref": value.name}
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        if not INT64_MIN <= value <= INT64_MAX:
            _refuse(name, f"{value} does not fit into 64 bits")
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, list):
        return [_value(torch, name, each) for each in value]
    if isinstance(value, tuple):
        return {"tuple": [_value(torch, name, each) for each in value]}
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            _refuse(name, f"it has a dict with keys that are no text: {list(value)[:5]}")
        return {"dict": {key: _value(torch, name, each) for key, each in value.items()}}
    if isinstance(value, slice):
        return {"slice": [_value(torch, name, each) for each in (value.start, value.stop, value.step)]}
    if value is ...:
        return {"ellipsis": True}
    for kind in ("dtype", "device", "layout", "memory_format"):
        if isinstance(value, getattr(torch, kind)):
            return {kind: str(value).removeprefix("torch.")}
    _refuse(name, f"it passes a {type(value).__name__} ({value!r:.100}), which the wire has no form for")


def _check_output(torch: Any, name: str, output: Any) -> None:
    returned = output.args[0]
    if not isinstance(returned, list | tuple) or len(returned) != 2 or not isinstance(returned[1], dict):
        _refuse(name, "it has to return (loss, metrics), a tensor and a dict of tensors")
    loss, metrics = returned
    if not isinstance(loss, torch.fx.Node):
        _refuse(name, f"its loss is {loss!r:.100}; it has to be a tensor that follows from {LOGPROBS}")
    for key, value in metrics.items():
        if not isinstance(key, str) or not METRIC_NAME.fullmatch(key):
            _refuse(
                name,
                f"metric {key!r}: call it custom/NAME:sum or custom/NAME:mean, NAME of a-z 0-9 _ . / -, at most 64",
            )
        if not isinstance(value, torch.fx.Node):
            _refuse(name, f"metric {key!r} is {value!r:.100}; it has to be a tensor")
