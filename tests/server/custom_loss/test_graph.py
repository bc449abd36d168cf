"""Tests of custom losses on the embedded server: accepted graphs and their results."""

from __future__ import annotations

import copy
import re
from typing import Any

import numpy as np
import pytest

import tinkerwire as tw
from support.embedded import embedded_http_server
from support.loss_graphs import body, node, ref
from support.server_fixtures import BatchFactory, Caller, ServerFactory
from tinkerwire._server.handlers import custom_losses
from tinkerwire._server.http.openapi import load_contract
from tinkerwire._server.sessions import client_config
from tinkerwire._wire.protobuf import encode_request
from tinkerwire_base.call import PROTOBUF
from tinkerwire_base.conversion.converter import Converter
from tinkerwire_base.tensors import is_torch_installed
from tinkerwire_generated.models import ForwardBackwardInput, ForwardBackwardRequest

pytestmark = pytest.mark.timeout(120)
needs_torch = pytest.mark.skipif(not is_torch_installed(), reason="torch is not installed")
NEWEST = "0.38.0"
TEST_TIMEOUT_S = 60.0


@pytest.fixture
def call(serve: ServerFactory, tmp_path: Any) -> Any:
    """Return a caller of a server of the newest version."""
    return serve(wire_version=NEWEST, folder=tmp_path / "data")


SUM = node("call_method", "sum_1", "sum", ref("logprobs"))
SUM_BODY = body(SUM)


def replace_value(path: str, value: Any) -> dict[str, Any]:
    """Replace the value at a path of the basic request."""
    changed_body = copy.deepcopy(SUM_BODY)
    *parents, key = (int(part) if part.isdecimal() else part for part in path.split("."))
    parent: Any = changed_body
    for part in parents:
        parent = parent[part]
    parent[key] = value
    return changed_body


NESTED_REFERENCE: Any = ref("logprobs")
for _ in range(20):
    NESTED_REFERENCE = [NESTED_REFERENCE]


@pytest.mark.parametrize(
    ("request_body", "error"),
    [
        (replace_value("inputs", []), "a loss must have 1 to 16, got 0"),
        (body(SUM, inputs=[("logprobs", 1), *((f"x{i}", 1) for i in range(16))]), "got 17"),
        (replace_value("inputs.0.name", "weights"), "must be logprobs with rank 1 or 2"),
        (replace_value("inputs.0.rank", 0), "must be logprobs with rank 1 or 2"),
        (body(SUM, inputs=[("logprobs", 1), ("Beta", 0)]), "of a-z, 0-9 and _, got 'Beta'"),
        (body(SUM, inputs=[("logprobs", 1), ("logprobs", 1)]), "must be unique"),
        (replace_value("graph.nodes", []), "the last node must be the output"),
        (replace_value("graph.nodes.2.op", "call_method"), "the last node must be the output"),
        (replace_value("graph.nodes.0.target", "weights"), "placeholders must be the inputs"),
        (body(node("placeholder", "again", "logprobs"), SUM), "placeholders must be the inputs"),
        (replace_value("graph.nodes.0.args", [1.0]), "an input must not have arguments"),
        (replace_value("graph.nodes.1.name", "logprobs"), "must be a unique identifier"),
        (replace_value("graph.nodes.1.name", "a b"), "must be a unique identifier"),
        (replace_value("graph.nodes.1.args", [ref("later")]), "'later' must be the name of an earlier node"),
        (replace_value("graph.nodes.1.args", [ref("sum_1")]), "'sum_1' must be the name of an earlier node"),
        (replace_value("graph.nodes.1.args", []), "the first argument must be a tensor"),
        (replace_value("graph.nodes.1.args", [1.0]), "the first argument must be a tensor"),
        (replace_value("graph.nodes.1.target", "backward"), "method 'backward' is not allowed"),
        (replace_value("graph.nodes.1.target", "__class__"), "method '__class__' is not allowed"),
        (body(node("call_function", "a", "os.system", "true")), "function 'os.system' is not allowed"),
        (body(node("call_function", "a", "torch.load", "f")), "function 'torch.load' is not allowed"),
        (body(node("call_function", "a", "torch.ops.aten.exp", ref("logprobs"))), "function 'torch.ops"),
        (
            body(node("call_function", "a", "getattr", ref("logprobs"), "__class__")),
            "getattr is only allowed for a tensor",
        ),
        (
            body(node("call_function", "a", "getattr", ref("logprobs"), "shape", None)),
            "getattr is only allowed for a tensor",
        ),
        (body(node("call_function", "a", "getattr", "x", "shape")), "getattr is only allowed for a tensor"),
        (body(node("call_module", "a", "linear", ref("logprobs"))), "op call_module is not allowed"),
        (body(node("get_attr", "a", "_tensor_constant0")), "op get_attr is not allowed"),
        (body(node("output", "a", "output", ref("logprobs")), SUM), "op output is not allowed"),
        (replace_value("graph.nodes.1.kwargs", {"dim": {"node": 1}}), "dim: .* is not a valid argument"),
        (replace_value("graph.nodes.1.kwargs", {"dim": {"float": "1"}}), "is not a valid argument"),
        (replace_value("graph.nodes.1.kwargs", {"dim": {"slice": [1]}}), "is not a valid argument"),
        (replace_value("graph.nodes.1.kwargs", {"dim": {"tuple": 1, "dict": {}}}), "is not a valid argument"),
        (replace_value("graph.nodes.1.kwargs", {"dim": {"ellipsis": False}}), "is not a valid argument"),
        (replace_value("graph.nodes.1.kwargs", {"dtype": {"dtype": "quint8"}}), "dtype must be one of .* got 'quint8'"),
        (
            replace_value("graph.nodes.1.kwargs", {"device": {"device": "cuda"}}),
            "device must be one of cpu, got 'cuda'",
        ),
        (replace_value("graph.nodes.1.args", [NESTED_REFERENCE]), "nested at most 16 levels"),
        (replace_value("graph.nodes.2.args", [ref("sum_1")]), "a pair of the loss and a dict"),
        (replace_value("graph.nodes.2.args", [{"tuple": [1.0, {"dict": {}}]}]), "loss and metrics must be nodes"),
        (
            replace_value("graph.nodes.2.args", [[ref("sum_1"), {"dict": {"custom/a:sum": 1}}]]),
            "loss and metrics must be nodes",
        ),
        (replace_value("graph.nodes.2.args", [[ref("sum_1"), {"dict": {"a": ref("sum_1")}}]]), "metric 'a' must match"),
    ],
)
def test_invalid_graph_is_422_with_its_place(call: Caller, request_body: dict[str, Any], error: str) -> None:
    """The status is 422 and the error names the place, with and without torch."""
    reply = call.post("create_custom_loss", {**request_body, "session_id": call.create_session()})
    assert reply.status == 422
    assert reply.body["detail"][0]["loc"] == ["body", "graph"]
    assert re.search(error, reply.body["detail"][0]["msg"]), reply.body


def test_valid_graph_without_torch_is_501(call: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the remedy; the server does not advertise custom losses."""
    monkeypatch.setattr(custom_losses, "is_torch_installed", lambda: False)
    monkeypatch.setattr(client_config, "is_torch_installed", lambda: False)
    reply = call.post("create_custom_loss", {**SUM_BODY, "session_id": call.create_session()})
    assert (reply.status, reply.headers["x-should-retry"]) == (501, "false")
    assert "torch, which is not installed; install torch" in reply.body["detail"]
    with pytest.raises(
        ValueError, match="flag custom_loss_server_side: requires torch in the server's environment; install it"
    ):
        client_config.ClientConfig(load_contract(NEWEST), {"custom_loss_server_side": True})


def test_losses_are_numbered_by_session(call: Caller, batch: BatchFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each session counts its own losses; losses of other sessions do not exist for it."""
    monkeypatch.setattr(custom_losses, "is_torch_installed", lambda: True)
    session_id = call.create_session()
    request_body = {**SUM_BODY, "session_id": session_id}
    first = call.submit("create_custom_loss", request_body)
    assert call.submit("create_custom_loss", request_body) == first
    loss_id = call.result(first)["loss_id"]
    assert call.run("create_custom_loss", {**request_body, "custom_loss_seq_id": 1})["loss_id"] != loss_id
    assert call.post("create_custom_loss", {**request_body, "name": "other"}).status == 409
    assert call.post("create_custom_loss", {**request_body, "custom_loss_seq_id": -1}).status == 422
    assert call.post("create_custom_loss", {**request_body, "session_id": "none"}).status == 404
    other_model = call.create_model()
    for config, status in (
        ({"loss_id": loss_id}, 404),
        ({"loss_id": "none"}, 404),
        ({"loss_id": 1.0}, 422),
        ({}, 422),
        ({"loss_id": loss_id, "beta": 1.0}, 422),
    ):
        batch_input = Converter().structure({**batch(loss_fn="custom"), "loss_fn_config": config}, ForwardBackwardInput)
        request = ForwardBackwardRequest(forward_backward_input=batch_input, model_id=other_model)
        content = encode_request(request, NEWEST)
        reply = call.post("forward_backward", content, headers={"content-type": PROTOBUF})
        assert reply.status == status, reply


RANKS = {"logprobs": 1, "advantages": 1, "old": 1}


def ratio(logprobs: Any, advantages: Any, old: Any) -> Any:
    """Compute a clipped policy gradient."""
    import torch  # noqa: PLC0415

    r = torch.exp(logprobs - old)
    clipped = torch.clamp(r, 0.8, 1.2)
    loss = -torch.minimum(r * advantages, clipped * advantages).sum()
    return loss, {"custom/ratio:mean": r.mean(), "custom/clipped:sum": (r != clipped).float().sum()}


def make_examples() -> list[tw.Datum]:
    """Create datums of several lengths."""
    rng = np.random.default_rng(0)
    datums = []
    for length in (8, 12, 9, 20, 5):
        tokens = list(b"to be or not to be, that"[:length])
        inputs = {
            "target_tokens": tokens[1:],
            "advantages": rng.normal(1.0, 0.5, length - 1).astype(np.float32),
            "old": np.full(length - 1, -5.5, np.float32),
        }
        datums.append(tw.Datum(model_input=tw.ModelInput.from_ints(tokens[:-1]), loss_fn_inputs=inputs))
    return datums


def keep_targets(datums: list[tw.Datum]) -> list[tw.Datum]:
    """Create datums of several lengths with targets only."""
    return [
        tw.Datum(model_input=datum.model_input, loss_fn_inputs={"target_tokens": datum.loss_fn_inputs["target_tokens"]})
        for datum in datums
    ]


def train_on_custom_loss(version: str, *flags: str) -> tuple[tw.LossHandle, list[dict[str, float]]]:
    """Return the metrics of four steps on a custom loss, and the cross-entropy loss after them."""
    with (
        embedded_http_server("--wire", version, *flags) as url,
        tw.ServiceClient(base_url=url, chunk_limits=tw.ChunkLimits(max_datums=2)) as client,
    ):
        handle = client.create_custom_loss(ratio, RANKS).result(TEST_TIMEOUT_S)
        training = client.create_lora_training_client("tinkerwire/byte-nano", rank=4, seed=0)
        steps = []
        for _ in range(4):
            trained = training.forward_backward_custom(make_examples(), handle)
            stepped = training.optim_step(tw.AdamParams(learning_rate=3e-3))
            steps.append({**trained.result(TEST_TIMEOUT_S).metrics, **stepped.result(TEST_TIMEOUT_S).metrics})
        after = training.forward(keep_targets(make_examples()), "cross_entropy").result(TEST_TIMEOUT_S)
        return handle, [*steps, {"after": after.metrics["loss:sum"]}]


@needs_torch
def test_server_and_client_evaluation_agree() -> None:
    """Metrics and weights after a step are equal, and the model trains."""
    handle, server_steps = train_on_custom_loss(NEWEST, "--flag", "custom_loss_server_side=true")
    assert handle.loss_id is not None
    for version in (NEWEST, "0.16.1"):
        handle, client_steps = train_on_custom_loss(version)
        assert handle.loss_id is None
        for server_metrics, client_metrics in zip(server_steps, client_steps, strict=True):
            assert server_metrics == pytest.approx({key: client_metrics[key] for key in server_metrics}, rel=1e-4)
    losses = [step["loss:sum"] for step in server_steps[:-1]]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0] - 1


@needs_torch
def test_forward_returns_the_loss_without_gradients() -> None:
    """The server also reports what a datum lacks."""
    with (
        embedded_http_server("--wire", NEWEST, "--flag", "custom_loss_server_side=true") as url,
        tw.ServiceClient(base_url=url) as client,
    ):
        handle = client.create_custom_loss(ratio, RANKS).result(TEST_TIMEOUT_S)
        training = client.create_lora_training_client("tinkerwire/byte-nano", rank=4, seed=0)
        config = {"loss_id": str(handle.loss_id)}
        evaluated = training.forward(make_examples(), "custom", config).result(TEST_TIMEOUT_S)
        trained = training.forward_backward_custom(make_examples(), handle).result(TEST_TIMEOUT_S)
        assert evaluated.metrics == trained.metrics
        assert evaluated.loss_fn_outputs[0].keys() == {"logprobs"}
        with pytest.raises(tw.RequestFailedError, match="datum 0: 'advantages' is missing; loss ratio requires it"):
            training.forward_backward(keep_targets(make_examples()), "custom", config).result(TEST_TIMEOUT_S)
