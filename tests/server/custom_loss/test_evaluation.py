"""Tests of the evaluation of custom loss graphs by the embedded server, and of the graphs it rejects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from support.loss_graphs import body, node, ref
from tinkerwire._server.custom_loss.evaluation import _functions, evaluate
from tinkerwire._server.custom_loss.graph import LossGraph, validate_graph
from tinkerwire._server.engine import EngineError
from tinkerwire_base.conversion.converter import Converter
from tinkerwire_base.tensors import is_torch_installed
from tinkerwire_generated.models import CreateCustomLossRequest

pytestmark = [pytest.mark.timeout(120), pytest.mark.skipif(not is_torch_installed(), reason="torch is not installed")]


def make_graph(*steps: dict[str, Any], inputs: Sequence[tuple[str, int]] = (("logprobs", 1),)) -> LossGraph:
    """Build the graph of a request."""
    return validate_graph(Converter().structure(body(*steps, inputs=inputs), CreateCustomLossRequest))


LOGPROBS = np.array([-1.0, -2.0], np.float32)


@pytest.mark.parametrize(
    ("steps", "error"),
    [
        (
            [node("call_method", "a", "exp", ref("logprobs"))],
            r"the loss must be a tensor with one number, got shape \[2\]",
        ),
        (
            [node("call_method", "a", "size", ref("logprobs"), 0)],
            "the loss must be a tensor with one number, got type int",
        ),
        (
            [node("call_method", "d", "detach", ref("logprobs")), node("call_method", "a", "sum", ref("d"))],
            "the loss must depend on logprobs",
        ),
        ([node("call_method", "a", "sum", ref("logprobs"), 7)], r"step a \(sum\): Dimension out of range"),
        (
            [node("call_function", "a", "operator.mul", "x", 9)],
            "operator.mul: operands must be tensors or numbers, got str",
        ),
        (
            [
                node("call_function", "s", "getattr", ref("logprobs"), "shape"),
                node("call_function", "a", "operator.mul", ref("s"), 10**12),
            ],
            "operator.mul: operands must be .* got Size",
        ),
        ([node("call_function", "a", "operator.pow", 10, 10**15)], "does not fit into 64 bits"),
        ([node("call_function", "a", "operator.mul", 2**62, 2**62)], "does not fit into 64 bits"),
        (
            [
                node("call_method", "n", "size", ref("logprobs")),
                node("call_function", "a", "getattr", ref("n"), "shape"),
            ],
            "attribute shape can only be read from tensors",
        ),
        (
            [
                node("call_function", "l", "torch.log", 0.0),
                node("call_method", "a", "sum", ref("logprobs")),
            ],
            "step l",
        ),
        (
            [
                node("call_function", "z", "operator.mul", ref("logprobs"), 0.0),
                node("call_method", "q", "sqrt", ref("z")),
                node("call_method", "a", "sum", ref("q")),
            ],
            r"the gradient by logprobs at \[0\] must be finite, got nan",
        ),
        (
            [
                node("call_method", "e", "exp", ref("logprobs")),
                node("call_method", "m", "mul_", ref("e"), 2.0),
                node("call_method", "a", "sum", ref("m")),
            ],
            "no gradient by logprobs: one of the variables needed for gradient computation has been modified",
        ),
        (
            [
                node("call_function", "z", "operator.truediv", ref("logprobs"), 0.0),
                node("call_method", "a", "sum", ref("z")),
            ],
            "the loss must be finite, got -inf",
        ),
    ],
)
def test_failing_graph_is_a_user_error_with_step_and_datum(steps: list[dict[str, Any]], error: str) -> None:
    """The error names the step and the datum; the failure exhausts neither memory nor time."""
    with pytest.raises(EngineError, match=f"datum 3: loss mine: .*{error}"):
        evaluate("datum 3", make_graph(*steps), LOGPROBS, [])


SUM = node("call_method", "a", "sum", ref("logprobs"))
HUGE_SIZE = 10**11
COLUMN = node("call_function", "column", "torch.ones", 10**6, 1)
ROW = node("call_function", "row", "torch.ones", 1, 10**6)


@pytest.mark.parametrize(
    "steps",
    [
        [node("call_function", "a", "torch.zeros", HUGE_SIZE)],
        [node("call_function", "a", "torch.full", [HUGE_SIZE], 1.0, device={"device": "cpu"})],
        [node("call_function", "a", "torch.arange", HUGE_SIZE)],
        [node("call_method", "a", "new_ones", ref("logprobs"), HUGE_SIZE)],
        [node("call_method", "a", "repeat", ref("logprobs"), HUGE_SIZE)],
        [node("call_function", "a", "torch.nn.functional.pad", ref("logprobs"), {"tuple": [HUGE_SIZE, 0]})],
        [node("call_function", "a", "torch.repeat_interleave", ref("logprobs"), HUGE_SIZE)],
        [
            node("call_function", "n", "torch.full", [2], HUGE_SIZE, dtype={"dtype": "int64"}),
            node("call_function", "a", "torch.repeat_interleave", ref("logprobs"), ref("n")),
        ],
        [
            node("call_function", "n", "torch.full", [1], HUGE_SIZE, dtype={"dtype": "int64"}),
            node("call_function", "a", "torch._C._nn.one_hot", ref("n")),
        ],
        [
            node("call_method", "e", "expand", ref("logprobs"), HUGE_SIZE, 2),
            node("call_function", "a", "operator.mul", ref("e"), 2.0),
        ],
        [
            node("call_function", "z", "torch.zeros", 100_000),
            node("call_method", "b", "bool", ref("z")),
            node("call_method", "c", "view", ref("z"), -1, 1),
            node("call_function", "a", "torch.masked_select", ref("c"), ref("b")),
        ],
        [
            node("call_function", "z0", "torch.zeros", 10_000_000),
            *(node("call_method", f"z{n + 1}", "exp", ref(f"z{n}")) for n in range(30)),
        ],
        [
            node("call_method", "e", "expand", ref("logprobs"), HUGE_SIZE, 2),
            node("call_method", "a", "sum", ref("e")),
        ],
        [COLUMN, ROW, node("call_function", "a", "torch.nn.functional.soft_margin_loss", ref("column"), ref("row"))],
        [
            *(COLUMN, ROW),
            node(
                "call_function",
                "a",
                "torch.nn.functional.binary_cross_entropy_with_logits",
                ref("column"),
                ref("column"),
                pos_weight=ref("row"),
            ),
        ],
        [
            *(COLUMN, ROW),
            node(
                "call_function",
                "a",
                "torch.functional.einsum",
                "ij,jk,kl->il",
                ref("column"),
                ref("row"),
                ref("column"),
            ),
        ],
        [
            node("call_function", "x", "torch.ones", 1, 3000, 3000),
            node("call_function", "y", "torch.ones", 3000, 3000, 1),
            node("call_function", "a", "torch.matmul", ref("x"), ref("y")),
        ],
        [
            *(COLUMN, ROW),
            node("call_method", "m", "bool", ref("row")),
            node("call_method", "i", "long", ref("column")),
            node("call_function", "z", "torch.zeros", 1, 10**6, 2),
            node("call_function", "a", "operator.getitem", ref("z"), {"tuple": [ref("m"), ref("i")]}),
        ],
        [
            node("call_function", "z", "torch.ones", [10**7, *[1] * 50]),
            node("call_method", "b", "bool", ref("z")),
            node("call_function", "w", "torch.where", ref("b")),
            node("call_function", "a", "operator.getitem", ref("w"), 0),
        ],
        [
            node("call_function", "z", "torch.ones", 10**7),
            node("call_function", "u", "torch.unbind", ref("z")),
            node("call_function", "a", "operator.getitem", ref("u"), 0),
        ],
        [
            node("call_function", "z", "torch.ones", [0, 10**9]),
            node("call_function", "u", "torch.unbind", ref("z"), 1),
            node("call_function", "a", "operator.getitem", ref("u"), 0),
        ],
    ],
    ids=lambda steps: steps[-1]["target"],
)
def test_graph_beyond_the_memory_limit_is_rejected(steps: list[dict[str, Any]]) -> None:
    """A loss that needs gigabytes is rejected before it allocates them; gradients count too."""
    import resource  # noqa: PLC0415

    from tinkerwire._server.custom_loss.memory_limit import MAX_ELEMENTS  # noqa: PLC0415

    last = node("call_method", "total", "sum", ref(steps[-1]["name"]))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(EngineError, match=r"datum 3: loss mine: .*must not exceed [\d,]+ elements, got [\d,]+ at aten"):
        evaluate("datum 3", make_graph(*steps, last), LOGPROBS, [])
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 1.2 * 8 * MAX_ELEMENTS / 1024


def test_sizes_of_pointwise_steps_follow_from_their_operands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Running a step without memory first takes longer than the step, so that most steps do without it."""
    from tinkerwire._server.custom_loss import memory_limit  # noqa: PLC0415

    runs = []
    to_meta = memory_limit._to_meta

    def count(tensor: Any) -> Any:
        runs.append(tensor)
        return to_meta(tensor)

    def count_runs(steps: int) -> int:
        runs.clear()
        pointwise = [node("call_method", f"p{i + 1}", "exp", ref(f"p{i}")) for i in range(steps)]
        evaluate(
            "datum 0", make_graph(node("call_method", "p0", "detach", ref("logprobs")), *pointwise, SUM), LOGPROBS, []
        )
        return len(runs)

    monkeypatch.setattr(memory_limit, "_to_meta", count)
    assert count_runs(20) == count_runs(1)


def test_every_allowed_name_exists_in_torch() -> None:
    """Each allowed name resolves to a function, and torch.fx uses the same name."""
    import torch  # noqa: PLC0415

    functions = dict(_functions())
    lacking = sorted(name for (_, name), value in functions.items() if value.__qualname__.startswith("_missing"))
    assert not lacking
    for (op, name), value in functions.items():
        if op == "call_function" and name.startswith("torch."):
            assert torch.fx.node._get_qualified_name(value) == name


def test_every_argument_form_is_evaluated() -> None:
    """Slices, tuples, ellipses, infinities and dtypes keep their meaning."""
    steps = [
        node("call_function", "c", "torch.clamp", ref("logprobs"), min={"float": "-inf"}, max={"float": "inf"}),
        node(
            "call_function", "t", "operator.getitem", ref("c"), {"tuple": [{"ellipsis": True}, {"slice": [1, None, 1]}]}
        ),
        node("call_function", "n", "operator.getitem", ref("c"), None),
        node("call_method", "f", "to", ref("n"), dtype={"dtype": "float64"}, device={"device": "cpu"}),
        node("call_method", "fs", "sum", ref("f"), {"tuple": [0, 1]}),
        node("call_function", "k", "torch.cat", [ref("t"), ref("t")]),
        node("call_method", "ks", "sum", ref("k")),
        node("call_function", "a", "operator.add", ref("fs"), ref("ks")),
    ]
    result = evaluate("datum 0", make_graph(*steps), LOGPROBS, [])
    assert result.loss == -3.0 - 4.0
    assert result.gradient.dtype == np.float32
    assert result.gradient.tolist() == [1.0, 3.0]


def test_sparse_gradient_is_accepted() -> None:
    """A sparse gradient has the same effect as a dense one."""
    steps = [
        node("call_function", "i", "torch.ones", [1], dtype={"dtype": "int64"}),
        node("call_function", "g", "torch.gather", ref("logprobs"), 0, ref("i"), sparse_grad=True),
        node("call_method", "a", "sum", ref("g")),
    ]
    assert evaluate("datum 0", make_graph(*steps), LOGPROBS, []).gradient.tolist() == [0.0, 1.0]
