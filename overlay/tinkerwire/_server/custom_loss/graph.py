"""The graph of a custom loss: its validation and the decoding of its arguments."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import attrs

from tinkerwire._wire.loss_graph import GETATTR, INPUT_NAME, LOGPROBS, MAX_INPUTS, METRIC_NAME
from tinkerwire_generated.models import CreateCustomLossRequest, CustomLossInput, CustomLossNode


def _under(prefix: str, names: str) -> frozenset[str]:
    return frozenset(prefix + name for name in names.split())


FUNCTIONS = (
    _under(
        "torch.",
        """
        abs absolute add all amax amin any arange argmax argmin argsort atan atan2 bitwise_and bitwise_not bitwise_or
        bitwise_xor cat ceil chunk clamp clamp_max clamp_min clip clone concat cos cosh cosine_similarity count_nonzero
        cumprod cumsum detach diff div divide dot eq erf erfc erfinv exp exp2 expm1 flatten flip floor
        floor_divide fmax fmin fmod frac full full_like gather ge gt hypot index_select isclose isfinite isinf isnan
        lerp le less log log10 log1p log2 log_softmax logaddexp logaddexp2 logcumsumexp logical_and logical_not
        logical_or logical_xor logit logsumexp lt masked_fill masked_select matmul max maximum mean median min minimum
        mm mul multiply nan_to_num nanmean nansum narrow ne neg negative numel ones ones_like outer permute pow prod
        quantile reciprocal relu remainder repeat_interleave reshape roll round rsqrt rsub scalar_tensor select sigmoid
        sign sin sinh softmax sort sqrt square squeeze stack std std_mean sub subtract sum swapaxes t take
        take_along_dim tan tanh topk transpose tril triu true_divide trunc unbind unsqueeze var var_mean where xlogy
        zeros zeros_like
        """,
    )
    | _under("torch.functional.", "einsum norm split")
    | _under(
        "torch.nn.functional.",
        """
        binary_cross_entropy binary_cross_entropy_with_logits elu gaussian_nll_loss hardtanh hinge_embedding_loss
        huber_loss kl_div l1_loss leaky_relu log_softmax margin_ranking_loss mse_loss normalize pad poisson_nll_loss
        relu relu6 silu smooth_l1_loss soft_margin_loss softmax softmin softsign tanhshrink
        """,
    )
    | _under("torch._C._nn.", "gelu log_sigmoid one_hot softplus")
    | _under("torch._C._linalg.linalg_", "norm vector_norm")
    | _under(
        "torch._C._special.special_",
        "entr erf erfc erfinv exp2 expit expm1 log1p log_softmax logit logsumexp ndtr softmax xlog1py xlogy",
    )
    | _under(
        "operator.",
        """
        abs add and_ eq floordiv ge getitem gt iadd imul inv invert isub itruediv le lt matmul mod mul ne neg or_ pos
        pow sub truediv xor
        """,
    )
    | _under("math.", "ceil exp floor log log10 log1p log2 pow sqrt trunc")
    | {"getattr"}
)
"""Functions by their names on the wire."""

METHODS = _under(
    "",
    """
    abs add add_ all amax amin any argmax argmin argsort bfloat16 bitwise_and bitwise_not bitwise_or bitwise_xor bool
    ceil chunk clamp clamp_ clamp_max clamp_min clip clone contiguous cos count_nonzero cumprod cumsum detach diff dim
    div div_ dot double eq erf erfc exp exp2 expand expand_as expm1 flatten flip float floor floor_divide fmax fmin
    gather ge gt half index_select int isclose isfinite isinf isnan le lerp log log10 log1p log2 log_softmax logaddexp
    logcumsumexp logical_and logical_not logical_or logical_xor logit logsumexp long lt masked_fill masked_fill_
    masked_select matmul max maximum mean median min minimum mul mul_ nan_to_num nanmean nansum narrow ne neg new_full
    new_ones new_zeros norm numel outer permute pow prod quantile reciprocal relu remainder repeat repeat_interleave
    reshape roll round rsqrt select sigmoid sign sin size softmax sort split sqrt square squeeze std sub sub_ sum t
    take_along_dim tanh to topk transpose tril triu true_divide trunc type_as unbind unflatten unsqueeze var view
    view_as where xlogy
    """,
)
"""Methods of tensors."""

ATTRIBUTES = frozenset(("T", "device", "dtype", "mT", "ndim", "shape"))
"""Attributes of a tensor that getattr may read."""

CONSTANTS = {
    "dtype": _under("", "bfloat16 bool float16 float32 float64 int16 int32 int64 int8 uint8"),
    "device": frozenset(("cpu",)),
    "layout": frozenset(("strided",)),
    "memory_format": frozenset(("channels_last", "contiguous_format", "preserve_format")),
}
"""Values that have no form in JSON, by the key of the object that stands for one."""


NODE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}")
MAX_DEPTH = 16
"""Maximum nesting depth of an argument."""
NON_FINITE = ("inf", "-inf", "nan")


class GraphError(ValueError):
    """An invalid graph; the text names the node."""


@attrs.frozen(kw_only=True)
class LossGraph:
    """A valid graph: each step only uses earlier steps and allowed operations.

    Args:
        name: name of the loss.
        inputs: the inputs; the first one is logprobs.
        steps: the nodes without the output, in order.
        loss: name of the node that computes the loss.
        metrics: names of nodes by the name of the metric.
    """

    name: str
    inputs: tuple[CustomLossInput, ...]
    steps: tuple[CustomLossNode, ...]
    loss: str
    metrics: dict[str, str]

    @property
    def other_inputs(self) -> tuple[CustomLossInput, ...]:
        """The inputs without logprobs."""
        return self.inputs[1:]


@attrs.frozen
class Reference:
    """A reference to an earlier node, during validation."""

    name: str


def validate_graph(body: CreateCustomLossRequest) -> LossGraph:
    """Return the graph of a request.

    Raises:
        GraphError: the graph is invalid or uses an operation that is not allowed.
    """
    names = _input_names(body.inputs)
    steps = body.graph.nodes
    if not steps or steps[-1].op != "output":
        raise GraphError("graph.nodes: the last node must be the output")
    if [node.target for node in steps if node.op == "placeholder"] != names:
        raise GraphError(f"graph.nodes: placeholders must be the inputs in order: {', '.join(names)}")
    node_names: set[str] = set()
    for position, node in enumerate(steps[:-1]):
        where = f"graph.nodes[{position}] ({node.name[:100]})"
        if not NODE_NAME.fullmatch(node.name) or node.name in node_names:
            raise GraphError(f"{where}: the name must be a unique identifier")
        args, kwargs = decode_arguments(where, node, partial(_resolve_known, where, node_names))
        _check_call(where, node, args, kwargs)
        node_names.add(node.name)
    loss, metrics = _output(steps[-1], node_names)
    return LossGraph(name=body.name, inputs=tuple(body.inputs), steps=tuple(steps[:-1]), loss=loss, metrics=metrics)


def decode_arguments(
    where: str, node: CustomLossNode, resolve: Callable[[str, str], Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Decode the positional and keyword arguments of a node.

    Args:
        where: name of the node in errors.
        node: the node.
        resolve: returns the value of a ``ref`` or of one of CONSTANTS, from its kind and its text.

    Raises:
        GraphError: an object does not represent a value.
    """
    args = tuple(
        _decode_value(f"{where}: args[{index}]", value, resolve, MAX_DEPTH) for index, value in enumerate(node.args)
    )
    kwargs = {
        key: _decode_value(f"{where}: {key[:100]}", value, resolve, MAX_DEPTH) for key, value in node.kwargs.items()
    }
    return args, kwargs


def _decode_value(where: str, value: Any, resolve: Callable[[str, str], Any], depth: int) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if depth == 0:
        raise GraphError(f"{where}: must be nested at most {MAX_DEPTH} levels deep")

    def decode(item: Any) -> Any:
        return _decode_value(where, item, resolve, depth - 1)

    if isinstance(value, list):
        return [decode(item) for item in value]
    kind, content = next(iter(value.items())) if isinstance(value, dict) and len(value) == 1 else ("", None)
    if kind == "tuple" and isinstance(content, list):
        return tuple(decode(item) for item in content)
    if kind == "dict" and isinstance(content, dict):
        return {key: decode(item) for key, item in content.items()}
    if kind == "slice" and isinstance(content, list) and len(content) == 3:
        return slice(*(decode(item) for item in content))
    if kind == "ellipsis" and content is True:
        return ...
    if kind == "float" and content in NON_FINITE:
        return float(content)
    if kind in ("ref", *CONSTANTS) and isinstance(content, str):
        return resolve(kind, content)
    raise GraphError(f"{where}: {value!r:.100} is not a valid argument")


def _resolve_known(where: str, names: set[str], kind: str, text: str) -> Any:
    if kind == "ref":
        if text not in names:
            raise GraphError(f"{where}: {text[:100]!r} must be the name of an earlier node")
        return Reference(text)
    if text not in CONSTANTS[kind]:
        raise GraphError(f"{where}: {kind} must be one of {', '.join(sorted(CONSTANTS[kind]))}, got {text[:100]!r}")
    return None


def _check_call(where: str, node: CustomLossNode, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if node.op == "placeholder":
        if args or kwargs:
            raise GraphError(f"{where}: an input must not have arguments")
    elif node.op == "call_function":
        if node.target not in FUNCTIONS:
            raise GraphError(f"{where}: function {node.target[:100]!r} is not allowed")
        if node.target == GETATTR and not (
            len(args) == 2 and not kwargs and isinstance(args[0], Reference) and args[1] in ATTRIBUTES
        ):
            raise GraphError(
                f"{where}: getattr is only allowed for a tensor and one of {', '.join(sorted(ATTRIBUTES))}"
            )
    elif node.op == "call_method":
        if node.target not in METHODS:
            raise GraphError(f"{where}: method {node.target[:100]!r} is not allowed")
        if not args or not isinstance(args[0], Reference):
            raise GraphError(f"{where}: the first argument must be a tensor")
    else:
        raise GraphError(f"{where}: op {node.op} is not allowed; a loss may only use its inputs")


def _input_names(inputs: list[CustomLossInput]) -> list[str]:
    names = [loss_input.name for loss_input in inputs]
    if not 1 <= len(names) <= MAX_INPUTS:
        raise GraphError(f"inputs: a loss must have 1 to {MAX_INPUTS}, got {len(names)}")
    if names[0] != LOGPROBS or inputs[0].rank == 0:
        raise GraphError(f"inputs[0]: must be {LOGPROBS} with rank 1 or 2")
    for index, name in enumerate(names):
        if not INPUT_NAME.fullmatch(name) or name in names[:index]:
            text = "must be unique and have at most 64 characters of a-z, 0-9 and _"
            raise GraphError(f"inputs[{index}]: {text}, got {name[:100]!r}")
    return names


def _output(node: CustomLossNode, names: set[str]) -> tuple[str, dict[str, str]]:
    where = "graph.nodes: the output"
    args, kwargs = decode_arguments(where, node, partial(_resolve_known, where, names))
    returned = args[0] if len(args) == 1 and not kwargs else None
    if not isinstance(returned, tuple | list) or len(returned) != 2 or not isinstance(returned[1], dict):
        raise GraphError(f"{where}: must have one argument, a pair of the loss and a dict of metrics")
    loss, metrics = returned
    if not isinstance(loss, Reference) or not all(isinstance(value, Reference) for value in metrics.values()):
        raise GraphError(f"{where}: loss and metrics must be nodes")
    for name in metrics:
        if not METRIC_NAME.fullmatch(name):
            raise GraphError(f"{where}: metric {name[:100]!r} must match {METRIC_NAME.pattern}")
    return loss.name, {name: node.name for name, node in metrics.items()}
