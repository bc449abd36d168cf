"""Custom losses on the embedded server: which graphs it takes, and what it computes of them."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tinkerwire as tw
from support.embedded import embedded_http_server
from tinkerwire.local import client_config
from tinkerwire.local.contract import contract
from tinkerwire.local.engine import EngineError
from tinkerwire.local.handlers import custom_losses
from tinkerwire.local.loss_evaluation import _functions, evaluate
from tinkerwire.local.loss_graph import LossGraph, checked
from tinkerwire.local.loss_memory import MOST_BYTES
from tinkerwire.wire.binary import encode_request
from tinkerwire_base.call import PROTOBUF
from tinkerwire_base.converter import Converter
from tinkerwire_base.tensors import is_torch_installed
from tinkerwire_generated.models import CreateCustomLossRequest, ForwardBackwardInput, ForwardBackwardRequest

pytestmark = pytest.mark.timeout(120)
needs_torch = pytest.mark.skipif(not is_torch_installed(), reason="torch is not installed")
NEWEST = "0.38.0"
PATIENCE_S = 60.0


@pytest.fixture
def call(serve: Any, tmp_path: Any) -> Any:
    """A caller of a server of the newest version."""
    return serve(wire_version=NEWEST, folder=tmp_path / "data")


def node(op: str, name: str, target: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
    return {"op": op, "name": name, "target": target, "args": list(args), "kwargs": kwargs}


def ref(name: str) -> dict[str, str]:
    return {"ref": name}


def body(*steps: dict[str, Any], inputs: Sequence[tuple[str, int]] = (("logprobs", 1),), **more: Any) -> dict[str, Any]:
    """A request whose last step is the loss."""
    places = [node("placeholder", name, name) for name, _ in inputs]
    last = steps[-1]["name"] if steps else "logprobs"
    output = node("output", "output", "output", {"tuple": [ref(last), {"dict": {}}]})
    return {
        "session_id": "s",
        "custom_loss_seq_id": 0,
        "name": "mine",
        "inputs": [{"name": name, "rank": rank} for name, rank in inputs],
        "graph": {"format": 1, "nodes": [*places, *steps, output]},
        **more,
    }


SUM = node("call_method", "sum_1", "sum", ref("logprobs"))
PLAIN = body(SUM)


def changed(path: str, value: Any) -> dict[str, Any]:
    """The plain request with another value at a path."""
    found = copy.deepcopy(PLAIN)
    *way, last = (int(part) if part.isdecimal() else part for part in path.split("."))
    place: Any = found
    for part in way:
        place = place[part]
    place[last] = value
    return found


DEEP: Any = ref("logprobs")
for _ in range(20):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("request_body", "fault"),
    [
        (changed("inputs", []), "there are 0; a loss has 1 to 16"),
        (body(SUM, inputs=[("logprobs", 1), *((f"x{i}", 1) for i in range(16))]), "there are 17"),
        (changed("inputs.0.name", "weights"), "it must be logprobs, of rank 1 or 2"),
        (changed("inputs.0.rank", 0), "it must be logprobs, of rank 1 or 2"),
        (body(SUM, inputs=[("logprobs", 1), ("Beta", 0)]), "'Beta' must be of a-z"),
        (body(SUM, inputs=[("logprobs", 1), ("logprobs", 1)]), "no other's"),
        (changed("graph.nodes", []), "the last one must be the output"),
        (changed("graph.nodes.2.op", "call_method"), "the last one must be the output"),
        (changed("graph.nodes.0.target", "weights"), "its placeholders must be the inputs"),
        (body(node("placeholder", "again", "logprobs"), SUM), "its placeholders must be the inputs"),
        (changed("graph.nodes.0.args", [1.0]), "an input has no arguments"),
        (changed("graph.nodes.1.name", "logprobs"), "no other's"),
        (changed("graph.nodes.1.name", "a b"), "must be one of a variable"),
        (changed("graph.nodes.1.args", [ref("later")]), "'later' is the name of no node before it"),
        (changed("graph.nodes.1.args", [ref("sum_1")]), "'sum_1' is the name of no node before it"),
        (changed("graph.nodes.1.args", []), "its first argument must be the tensor"),
        (changed("graph.nodes.1.args", [1.0]), "its first argument must be the tensor"),
        (changed("graph.nodes.1.target", "backward"), "does not compute the method 'backward'"),
        (changed("graph.nodes.1.target", "__class__"), "does not compute the method '__class__'"),
        (body(node("call_function", "a", "os.system", "true")), "does not compute 'os.system'"),
        (body(node("call_function", "a", "torch.load", "f")), "does not compute 'torch.load'"),
        (body(node("call_function", "a", "torch.ops.aten.exp", ref("logprobs"))), "does not compute 'torch.ops"),
        (body(node("call_function", "a", "getattr", ref("logprobs"), "__class__")), "of a tensor it may read"),
        (body(node("call_function", "a", "getattr", ref("logprobs"), "shape", None)), "of a tensor it may read"),
        (body(node("call_function", "a", "getattr", "x", "shape")), "of a tensor it may read"),
        (body(node("call_module", "a", "linear", ref("logprobs"))), "call_module has no place in a loss"),
        (body(node("get_attr", "a", "_tensor_constant0")), "get_attr has no place in a loss"),
        (body(node("output", "a", "output", ref("logprobs")), SUM), "output has no place in a loss"),
        (changed("graph.nodes.1.kwargs", {"dim": {"node": 1}}), "dim: .* stands for no value"),
        (changed("graph.nodes.1.kwargs", {"dim": {"float": "1"}}), "stands for no value"),
        (changed("graph.nodes.1.kwargs", {"dim": {"slice": [1]}}), "stands for no value"),
        (changed("graph.nodes.1.kwargs", {"dim": {"tuple": 1, "dict": {}}}), "stands for no value"),
        (changed("graph.nodes.1.kwargs", {"dim": {"ellipsis": False}}), "stands for no value"),
        (changed("graph.nodes.1.kwargs", {"dtype": {"dtype": "quint8"}}), "dtype 'quint8' is not here; there are"),
        (changed("graph.nodes.1.kwargs", {"device": {"device": "cuda"}}), "device 'cuda' is not here; there are cpu"),
        (changed("graph.nodes.1.args", [DEEP]), "more than 16 objects"),
        (changed("graph.nodes.2.args", [ref("sum_1")]), "a pair of the loss and a dict"),
        (changed("graph.nodes.2.args", [{"tuple": [1.0, {"dict": {}}]}]), "must be values of nodes"),
        (changed("graph.nodes.2.args", [[ref("sum_1"), {"dict": {"custom/a:sum": 1}}]]), "must be values of nodes"),
        (changed("graph.nodes.2.args", [[ref("sum_1"), {"dict": {"a": ref("sum_1")}}]]), "metric 'a' must match"),
    ],
)
def test_graphs_that_are_refused(call: Any, request_body: dict[str, Any], fault: str) -> None:
    """422, with the place, whether or not there is torch."""
    reply = call.post("create_custom_loss", {**request_body, "session_id": call.session()})
    assert reply.status == 422
    assert reply.body["detail"][0]["loc"] == ["body", "graph"]
    assert re.search(fault, reply.body["detail"][0]["msg"]), reply.body


def test_without_torch(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """501 and the way out, to a request that is right; and nobody is told that losses are computed here."""
    monkeypatch.setattr(custom_losses, "is_torch_installed", lambda: False)
    monkeypatch.setattr(client_config, "is_torch_installed", lambda: False)
    reply = call.post("create_custom_loss", {**PLAIN, "session_id": call.session()})
    assert (reply.status, reply.headers["x-should-retry"]) == (501, "false")
    assert "torch, which is not installed here; install it" in reply.body["detail"]
    with pytest.raises(ValueError, match="flag custom_loss_server_side: the server needs torch for that; install it"):
        client_config.ClientConfig(contract(NEWEST), {"custom_loss_server_side": True})


def test_losses_belong_to_sessions(call: Any, batch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Number by number; what another session made is not there."""
    monkeypatch.setattr(custom_losses, "is_torch_installed", lambda: True)
    session_id = call.session()
    mine = {**PLAIN, "session_id": session_id}
    first = call.submit("create_custom_loss", mine)
    assert call.submit("create_custom_loss", mine) == first
    loss_id = call.result(first)["loss_id"]
    assert call.do("create_custom_loss", {**mine, "custom_loss_seq_id": 1})["loss_id"] != loss_id
    assert call.post("create_custom_loss", {**mine, "name": "other"}).status == 409
    assert call.post("create_custom_loss", {**mine, "custom_loss_seq_id": -1}).status == 422
    assert call.post("create_custom_loss", {**mine, "session_id": "none"}).status == 404
    stranger = call.model()
    for config, status in (
        ({"loss_id": loss_id}, 404),
        ({"loss_id": "none"}, 404),
        ({"loss_id": 1.0}, 422),
        ({}, 422),
        ({"loss_id": loss_id, "beta": 1.0}, 422),
    ):
        given = Converter().structure({**batch(loss_fn="custom"), "loss_fn_config": config}, ForwardBackwardInput)
        asked = ForwardBackwardRequest(forward_backward_input=given, model_id=stranger)
        content = encode_request(asked, NEWEST)
        reply = call.post("forward_backward", content, headers={"content-type": PROTOBUF})
        assert reply.status == status, reply


# --- with torch: what is computed ------------------------------------------------------------------------------------


def graph(*steps: dict[str, Any], inputs: Sequence[tuple[str, int]] = (("logprobs", 1),)) -> LossGraph:
    """The graph of a request."""
    return checked(Converter().structure(body(*steps, inputs=inputs), CreateCustomLossRequest))


LOGPROBS = np.array([-1.0, -2.0], np.float32)


@needs_torch
@pytest.mark.parametrize(
    ("steps", "fault"),
    [
        ([node("call_method", "a", "exp", ref("logprobs"))], r"its loss has the shape \[2\]"),
        ([node("call_method", "a", "size", ref("logprobs"), 0)], "its loss has the type int"),
        (
            [node("call_method", "d", "detach", ref("logprobs")), node("call_method", "a", "sum", ref("d"))],
            "not follow",
        ),
        ([node("call_method", "a", "sum", ref("logprobs"), 7)], r"step a \(sum\): Dimension out of range"),
        ([node("call_function", "a", "operator.mul", "x", 9)], "operator.mul of a str; it takes tensors and numbers"),
        (
            [
                node("call_function", "s", "getattr", ref("logprobs"), "shape"),
                node("call_function", "a", "operator.mul", ref("s"), 10**12),
            ],
            "operator.mul of a Size",
        ),
        ([node("call_function", "a", "operator.pow", 10, 10**15)], "does not fit into 64 bits"),
        ([node("call_function", "a", "operator.mul", 2**62, 2**62)], "does not fit into 64 bits"),
        (
            [
                node("call_method", "n", "size", ref("logprobs")),
                node("call_function", "a", "getattr", ref("n"), "shape"),
            ],
            "shape can be read of tensors only",
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
            r"its gradient by logprobs at \[0\] is nan",
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
            "its loss is -inf",
        ),
    ],
)
def test_what_cannot_be_computed(steps: list[dict[str, Any]], fault: str) -> None:
    """The fault of the loss, with the step and the datum; nothing fills the memory or the time."""
    with pytest.raises(EngineError, match=f"datum 3: loss mine: .*{fault}"):
        evaluate("datum 3", graph(*steps), LOGPROBS, [])


HUGE = 10**11


@needs_torch
@pytest.mark.parametrize(
    "steps",
    [
        [node("call_function", "a", "torch.zeros", HUGE)],
        [node("call_function", "a", "torch.full", [HUGE], 1.0, device={"device": "cpu"})],
        [node("call_function", "a", "torch.arange", HUGE)],
        [node("call_method", "a", "new_ones", ref("logprobs"), HUGE)],
        [node("call_method", "a", "repeat", ref("logprobs"), HUGE)],
        [node("call_function", "a", "torch.nn.functional.pad", ref("logprobs"), {"tuple": [HUGE, 0]})],
        [node("call_function", "a", "torch.repeat_interleave", ref("logprobs"), HUGE)],
        [
            node("call_function", "n", "torch.full", [2], HUGE, dtype={"dtype": "int64"}),
            node("call_function", "a", "torch.repeat_interleave", ref("logprobs"), ref("n")),
        ],
        [
            node("call_function", "n", "torch.full", [1], HUGE, dtype={"dtype": "int64"}),
            node("call_function", "a", "torch._C._nn.one_hot", ref("n")),
        ],
        [
            node("call_method", "e", "expand", ref("logprobs"), HUGE, 2),
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
            node("call_method", "e", "expand", ref("logprobs"), HUGE, 2),
            node("call_method", "a", "sum", ref("e")),
        ],
    ],
    ids=lambda steps: steps[-1]["target"],
)
def test_what_would_fill_the_memory(steps: list[dict[str, Any]]) -> None:
    """A loss that would take gigabytes is refused before it takes them, also those of its gradients."""
    import resource  # noqa: PLC0415

    last = node("call_method", "total", "sum", ref(steps[-1]["name"]))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(EngineError, match=r"datum 3: loss mine: .*(would take [\d,]+ bytes with what aten)"):
        evaluate("datum 3", graph(*steps, last), LOGPROBS, [])
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 1.2 * MOST_BYTES / 1024


@needs_torch
def test_small_steps_are_not_measured_beforehand(monkeypatch: pytest.MonkeyPatch) -> None:
    """That takes many times as long as the steps themselves, also where they have three long operands."""
    import torch  # noqa: PLC0415

    measured = []
    plain = torch.empty_strided

    def count(*args: Any, **kwargs: Any) -> Any:
        measured.append(args)
        return plain(*args, **kwargs)

    monkeypatch.setattr(torch, "empty_strided", count)
    steps = [
        node("call_function", "c", "operator.gt", ref("logprobs"), 1e6),
        node("call_method", "d", "exp", ref("logprobs")),
        node("call_function", "w", "torch.where", ref("c"), ref("d"), ref("logprobs")),
        node("call_function", "m", "operator.mul", ref("w"), 1e6),
        node("call_method", "a", "sum", ref("m")),
    ]
    evaluate("datum 0", graph(*steps), np.full((2000, 1), -1, np.float32), [])
    assert not measured


@needs_torch
def test_all_names_are_of_this_torch() -> None:
    """Each name that is let in stands for something, and torch.fx calls it so."""
    import torch  # noqa: PLC0415

    found = dict(_functions())
    lacking = sorted(name for (_, name), value in found.items() if value.__qualname__.startswith("_lacking"))
    assert not lacking
    for (op, name), value in found.items():
        if op == "call_function" and name.startswith("torch."):
            assert torch.fx.node._get_qualified_name(value) == name


@needs_torch
def test_arguments_of_every_form() -> None:
    """Slices, tuples, ellipses, infinities, dtypes and the like mean what they say."""
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
    found = evaluate("datum 0", graph(*steps), LOGPROBS, [])
    assert found.loss == -3.0 - 4.0
    assert found.gradient.dtype == np.float32
    assert found.gradient.tolist() == [1.0, 3.0]


@needs_torch
def test_a_sparse_gradient() -> None:
    """It is a gradient like others."""
    steps = [
        node("call_function", "i", "torch.ones", [1], dtype={"dtype": "int64"}),
        node("call_function", "g", "torch.gather", ref("logprobs"), 0, ref("i"), sparse_grad=True),
        node("call_method", "a", "sum", ref("g")),
    ]
    assert evaluate("datum 0", graph(*steps), LOGPROBS, []).gradient.tolist() == [0.0, 1.0]


RANKS = {"logprobs": 1, "advantages": 1, "old": 1}


def ratio(logprobs: Any, advantages: Any, old: Any) -> Any:
    """A clipped policy gradient."""
    import torch  # noqa: PLC0415

    r = torch.exp(logprobs - old)
    held = torch.clamp(r, 0.8, 1.2)
    loss = -torch.minimum(r * advantages, held * advantages).sum()
    return loss, {"custom/ratio:mean": r.mean(), "custom/clipped:sum": (r != held).float().sum()}


def examples() -> list[tw.Datum]:
    """Datums of several lengths."""
    rng = np.random.default_rng(0)
    found = []
    for length in (8, 12, 9, 20, 5):
        tokens = list(b"to be or not to be, that"[:length])
        inputs = {
            "target_tokens": tokens[1:],
            "advantages": rng.normal(1.0, 0.5, length - 1).astype(np.float32),
            "old": np.full(length - 1, -5.5, np.float32),
        }
        found.append(tw.Datum(model_input=tw.ModelInput.from_ints(tokens[:-1]), loss_fn_inputs=inputs))
    return found


def bare(datums: list[tw.Datum]) -> list[tw.Datum]:
    """The same, with nothing but targets."""
    return [
        tw.Datum(model_input=each.model_input, loss_fn_inputs={"target_tokens": each.loss_fn_inputs["target_tokens"]})
        for each in datums
    ]


def rehearsal(version: str, *flags: str) -> tuple[tw.LossHandle, list[dict[str, float]]]:
    """The metrics of four steps on a loss of one's own, and the loss of plain cross-entropy after them."""
    with (
        embedded_http_server("--wire", version, *flags) as url,
        tw.ServiceClient(base_url=url, chunk_limits=tw.ChunkLimits(datums=2)) as client,
    ):
        handle = client.create_custom_loss(ratio, RANKS).result(PATIENCE_S)
        training = client.create_lora_training_client("tinkerwire/byte-nano", rank=4, seed=0)
        steps = []
        for _ in range(4):
            trained = training.forward_backward_custom(examples(), handle)
            stepped = training.optim_step(tw.AdamParams(learning_rate=3e-3))
            steps.append({**trained.result(PATIENCE_S).metrics, **stepped.result(PATIENCE_S).metrics})
        after = training.forward(bare(examples()), "cross_entropy").result(PATIENCE_S)
        return handle, [*steps, {"after": after.metrics["loss:sum"]}]


@needs_torch
def test_here_and_there_are_the_same() -> None:
    """What the server computes and what the client does by itself: metrics, weights after a step, and it trains."""
    handle, here = rehearsal(NEWEST, "--flag", "custom_loss_server_side=true")
    assert handle.loss_id is not None
    for version in (NEWEST, "0.16.1"):
        handle, there = rehearsal(version)
        assert handle.loss_id is None
        for ours, theirs in zip(here, there, strict=True):
            assert ours == pytest.approx({key: theirs[key] for key in ours}, rel=1e-4)
    losses = [step["loss:sum"] for step in here[:-1]]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0] - 1


@needs_torch
def test_only_forward() -> None:
    """The loss without gradients; what a datum lacks is told by the server, too."""
    with (
        embedded_http_server("--wire", NEWEST, "--flag", "custom_loss_server_side=true") as url,
        tw.ServiceClient(base_url=url) as client,
    ):
        handle = client.create_custom_loss(ratio, RANKS).result(PATIENCE_S)
        training = client.create_lora_training_client("tinkerwire/byte-nano", rank=4, seed=0)
        config = {"loss_id": str(handle.loss_id)}
        looked = training.forward(examples(), "custom", config).result(PATIENCE_S)
        trained = training.forward_backward_custom(examples(), handle).result(PATIENCE_S)
        assert looked.metrics == trained.metrics
        assert looked.loss_fn_outputs[0].keys() == {"logprobs"}
        with pytest.raises(tw.RequestFailedError, match="datum 0: 'advantages' is missing; loss ratio reads it"):
            training.forward_backward(bare(examples()), "custom", config).result(PATIENCE_S)
