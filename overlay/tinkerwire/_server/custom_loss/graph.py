"""The graph of a custom loss: what it must look like, and how its arguments are read."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import attrs

from tinkerwire._server.custom_loss.allowed_ops import ATTRIBUTES, CONSTANTS, FUNCTIONS, METHODS
from tinkerwire._wire.loss_graph import GETATTR, INPUT_NAME, LOGPROBS, MAX_INPUTS, METRIC_NAME
from tinkerwire_generated.models import CreateCustomLossRequest, CustomLossInput, CustomLossNode

NODE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}")
DEEPEST = 16
"""How far objects of an argument may stand in each other."""
NON_FINITE = ("inf", "-inf", "nan")


class GraphError(ValueError):
    """A graph that is none; the text names the place."""


@attrs.frozen(kw_only=True)
class LossGraph:
    """A graph that was checked: its steps use what is before them, and only what this server has.

    Args:
        loss: name of the node that is the loss.
        metrics: by the name of a metric, the node that it is.
    """

    name: str
    inputs: tuple[CustomLossInput, ...]
    steps: tuple[CustomLossNode, ...]
    loss: str
    metrics: dict[str, str]

    @property
    def other_inputs(self) -> tuple[CustomLossInput, ...]:
        """The inputs beside logprobs."""
        return self.inputs[1:]


@attrs.frozen
class Reference:
    """The value of an earlier node, while the arguments of a graph are only looked at."""

    name: str


def checked(body: CreateCustomLossRequest) -> LossGraph:
    """The graph of a request.

    Raises:
        GraphError: it cannot be computed here, whatever the data.
    """
    names = _input_names(body.inputs)
    steps = body.graph.nodes
    if not steps or steps[-1].op != "output":
        raise GraphError("graph.nodes: the last one must be the output")
    if [node.target for node in steps if node.op == "placeholder"] != names:
        raise GraphError(f"graph.nodes: its placeholders must be the inputs, in their order: {', '.join(names)}")
    known: set[str] = set()
    for position, node in enumerate(steps[:-1]):
        where = f"graph.nodes[{position}] ({node.name[:100]})"
        if not NODE_NAME.fullmatch(node.name) or node.name in known:
            raise GraphError(f"{where}: its name must be one of a variable, and no other's")
        args, kwargs = arguments(where, node, partial(_seen, where, known))
        _check_call(where, node, args, kwargs)
        known.add(node.name)
    loss, metrics = _output(steps[-1], known)
    return LossGraph(name=body.name, inputs=tuple(body.inputs), steps=tuple(steps[:-1]), loss=loss, metrics=metrics)


def arguments(
    where: str, node: CustomLossNode, leaf: Callable[[str, str], Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a node, by place and by name.

    Args:
        where: what errors call the node.
        leaf: makes the value of a ``ref``, or of one of CONSTANTS, from its kind and its text.

    Raises:
        GraphError: an object that stands for nothing.
    """
    args = tuple(_value(f"{where}: args[{place}]", each, leaf, DEEPEST) for place, each in enumerate(node.args))
    kwargs = {key: _value(f"{where}: {key[:100]}", each, leaf, DEEPEST) for key, each in node.kwargs.items()}
    return args, kwargs


def _value(where: str, value: Any, leaf: Callable[[str, str], Any], depth: int) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if depth == 0:
        raise GraphError(f"{where}: more than {DEEPEST} objects stand in each other")

    def inner(part: Any) -> Any:
        return _value(where, part, leaf, depth - 1)

    if isinstance(value, list):
        return [inner(each) for each in value]
    kind, content = next(iter(value.items())) if isinstance(value, dict) and len(value) == 1 else ("", None)
    if kind == "tuple" and isinstance(content, list):
        return tuple(inner(each) for each in content)
    if kind == "dict" and isinstance(content, dict):
        return {key: inner(each) for key, each in content.items()}
    if kind == "slice" and isinstance(content, list) and len(content) == 3:
        return slice(*(inner(each) for each in content))
    if kind == "ellipsis" and content is True:
        return ...
    if kind == "float" and content in NON_FINITE:
        return float(content)
    if kind in ("ref", *CONSTANTS) and isinstance(content, str):
        return leaf(kind, content)
    raise GraphError(f"{where}: {value!r:.100} stands for no value")


def _seen(where: str, known: set[str], kind: str, text: str) -> Any:
    if kind == "ref":
        if text not in known:
            raise GraphError(f"{where}: {text[:100]!r} is the name of no node before it")
        return Reference(text)
    if text not in CONSTANTS[kind]:
        raise GraphError(f"{where}: {kind} {text[:100]!r} is not here; there are {', '.join(sorted(CONSTANTS[kind]))}")
    return None


def _check_call(where: str, node: CustomLossNode, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if node.op == "placeholder":
        if args or kwargs:
            raise GraphError(f"{where}: an input has no arguments; every datum must bring it")
    elif node.op == "call_function":
        if node.target not in FUNCTIONS:
            raise GraphError(f"{where}: this server does not compute {node.target[:100]!r}")
        if node.target == GETATTR and not (
            len(args) == 2 and not kwargs and isinstance(args[0], Reference) and args[1] in ATTRIBUTES
        ):
            raise GraphError(f"{where}: of a tensor it may read {', '.join(sorted(ATTRIBUTES))}")
    elif node.op == "call_method":
        if node.target not in METHODS:
            raise GraphError(f"{where}: this server does not compute the method {node.target[:100]!r}")
        if not args or not isinstance(args[0], Reference):
            raise GraphError(f"{where}: its first argument must be the tensor whose method it is")
    else:
        raise GraphError(f"{where}: {node.op} has no place in a loss, which uses nothing but its inputs")


def _input_names(inputs: list[CustomLossInput]) -> list[str]:
    names = [each.name for each in inputs]
    if not 1 <= len(names) <= MAX_INPUTS:
        raise GraphError(f"inputs: there are {len(names)}; a loss has 1 to {MAX_INPUTS}")
    if names[0] != LOGPROBS or inputs[0].rank == 0:
        raise GraphError(f"inputs[0]: it must be {LOGPROBS}, of rank 1 or 2")
    for place, name in enumerate(names):
        if not INPUT_NAME.fullmatch(name) or name in names[:place]:
            raise GraphError(f"inputs[{place}]: {name[:100]!r} must be of a-z, 0-9 and _, at most 64, and no other's")
    return names


def _output(node: CustomLossNode, known: set[str]) -> tuple[str, dict[str, str]]:
    where = "graph.nodes: the output"
    args, kwargs = arguments(where, node, partial(_seen, where, known))
    returned = args[0] if len(args) == 1 and not kwargs else None
    if not isinstance(returned, tuple | list) or len(returned) != 2 or not isinstance(returned[1], dict):
        raise GraphError(f"{where}: expected one argument, a pair of the loss and a dict of metrics")
    loss, metrics = returned
    if not isinstance(loss, Reference) or not all(isinstance(each, Reference) for each in metrics.values()):
        raise GraphError(f"{where}: loss and metrics must be values of nodes")
    for name in metrics:
        if not METRIC_NAME.fullmatch(name):
            raise GraphError(f"{where}: metric {name[:100]!r} must match {METRIC_NAME.pattern}")
    return loss.name, {name: each.name for name, each in metrics.items()}
