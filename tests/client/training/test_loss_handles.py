"""Tests of custom losses of a session: their upload, their handles, and where they are computed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tinkerwire as tw
from support.clients import ADAM, datum, open_client
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer, seq_ids
from tinkerwire._training.losses import tracing
from tinkerwire._training.losses.tracing import TracedLoss
from tinkerwire_base.tensors import is_torch_installed
from tinkerwire_generated.models import CustomLossGraph, CustomLossInput, CustomLossNode

pytestmark = pytest.mark.timeout(60)
needs_torch = pytest.mark.skipif(not is_torch_installed(), reason="torch is not installed")
SERVER_SIDE: dict[str, Any] = {"wire_version": "0.38.0", "client_config": {"custom_loss_server_side": True}}
NODES: list[dict[str, Any]] = [
    {"op": "placeholder", "name": "logprobs", "target": "logprobs", "args": [], "kwargs": {}},
    {"op": "placeholder", "name": "beta", "target": "beta", "args": [], "kwargs": {}},
    {
        "op": "call_function",
        "name": "getitem",
        "target": "operator.getitem",
        "args": [{"ref": "logprobs"}, {"slice": [1, None, None]}],
        "kwargs": {},
    },
    {"op": "call_method", "name": "sum_1", "target": "sum", "args": [{"ref": "getitem"}], "kwargs": {"dim": None}},
    {
        "op": "output",
        "name": "output",
        "target": "output",
        "args": [{"tuple": [{"ref": "sum_1"}, {"dict": {"custom/a:mean": {"ref": "sum_1"}}}]}],
        "kwargs": {},
    },
]
"""The graph of ``lambda logprobs, beta: (x := logprobs[1:].sum(dim=None), {"custom/a:mean": x})``."""


def make_datum_with_beta(beta: Any = 0.5) -> tw.Datum:
    """Return a datum with an additional input."""
    targets = {"target_tokens": [2, 3], "beta": np.asarray(beta, np.float32)}
    return tw.Datum(model_input=tw.ModelInput.from_ints([1, 2]), loss_fn_inputs=targets)


def return_recorded_graph(fn: Any, input_ranks: Any) -> TracedLoss:
    """Return the graph above under the name of the function."""
    inputs = (CustomLossInput(name="logprobs", rank=1), CustomLossInput(name="beta", rank=0))
    graph = CustomLossGraph(nodes=[CustomLossNode(**node) for node in NODES])
    return TracedLoss(fn.__name__, inputs, graph, None)


def own_loss() -> None:
    """Represent a loss."""


def other_loss() -> None:
    """Represent another loss."""


@pytest.fixture
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace tracing by recorded graphs."""
    monkeypatch.setattr(tracing, "trace", return_recorded_graph)


@pytest.fixture
def loss_client(server: ScriptedServer, without_torch: None) -> Iterator[tw.ServiceClient]:
    """Create a client whose server computes losses."""
    server.on_poll("CreateCustomLoss", lambda request: ScriptedResponse({"loss_id": request.body["request_id"]}))
    with open_client(server.url, **SERVER_SIDE) as client:
        yield client


def test_loss_is_uploaded_like_the_official_sdk(server: ScriptedServer, loss_client: tw.ServiceClient) -> None:
    """Batches that train on the loss are sent with all inputs and its id."""
    handle = loss_client.create_custom_loss(own_loss, {"logprobs": 1, "beta": 0}).result(TEST_TIMEOUT_S)
    assert server.bodies("create_custom_loss") == [
        {
            "session_id": "s1",
            "custom_loss_seq_id": 0,
            "name": "own_loss",
            "inputs": [{"name": "logprobs", "rank": 1}, {"name": "beta", "rank": 0}],
            "graph": {"format": 1, "nodes": NODES},
            "type": "create_custom_loss",
        }
    ]
    assert (handle.name, handle.session_id, handle.input_names) == ("own_loss", "s1", ("beta",))
    assert handle.loss_id is not None and handle.loss_id.startswith("create_custom_loss/")
    assert handle.loss_id in repr(handle)
    training = loss_client.create_lora_training_client("base")
    training.forward_backward_custom([make_datum_with_beta()], handle).result(TEST_TIMEOUT_S)
    training.optim_step(ADAM).result(TEST_TIMEOUT_S)
    assert not server.named("forward")
    sent = server.bodies("forward_backward")[0]
    assert sent["loss_fn"] == "custom"
    assert sent["loss_fn_config_v2"] == {"loss_id": {"text": handle.loss_id}}
    assert sent["data"][0]["loss_fn_inputs"].keys() == {"target_tokens", "beta"}


def test_identical_loss_in_session_is_rejected(server: ScriptedServer, loss_client: tw.ServiceClient) -> None:
    """A second identical loss raises; a failed upload can be repeated."""
    rejection = ScriptedResponse({"detail": "no"}, status=422)
    server.rules["create_custom_loss"] = lambda request: (
        rejection if request.body["custom_loss_seq_id"] == 0 else server.healthy_response(request)
    )
    with pytest.raises(tw.UnprocessableEntityError):
        loss_client.create_custom_loss(own_loss, {}).result(TEST_TIMEOUT_S)
    loss_client.create_custom_loss(own_loss, {}).result(TEST_TIMEOUT_S)
    with pytest.raises(ValueError, match="own_loss: this session has an identical loss; use its LossHandle"):
        loss_client.create_custom_loss(own_loss, {}).result(TEST_TIMEOUT_S)
    loss_client.create_custom_loss(other_loss, {}).result(TEST_TIMEOUT_S)
    assert [body["custom_loss_seq_id"] for body in server.bodies("create_custom_loss")] == [0, 1, 2]


@pytest.mark.parametrize(
    "options", [{"wire_version": "0.16.1"}, {"wire_version": "0.38.0"}, {"wire_version": "0.38.0", "client_config": {}}]
)
def test_servers_without_custom_losses_receive_no_upload(
    server: ScriptedServer, without_torch: None, options: dict[str, Any]
) -> None:
    """The handle belongs to the session, and only the session is created."""
    with open_client(server.url, **options) as client:
        handle = client.create_custom_loss(own_loss, {}).result(TEST_TIMEOUT_S)
    assert handle.loss_id is None and handle.session_id == "s1"
    assert not server.named("create_custom_loss")


def test_handle_of_another_session_raises(server: ScriptedServer, loss_client: tw.ServiceClient) -> None:
    """Clients of other sessions, started or not, raise before anything is sent."""
    handle = loss_client.create_custom_loss(own_loss, {}).result(TEST_TIMEOUT_S)
    server.rules["create_session"] = lambda _: ScriptedResponse({"session_id": "s2"})
    with open_client(server.url, **SERVER_SIDE) as other_client:
        training = other_client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
        with pytest.raises(ValueError, match="loss own_loss: expected a loss of session s2, got one of s1"):
            training.forward_backward_custom([make_datum_with_beta()], handle)
    assert not server.named("forward_backward")


@pytest.mark.parametrize(
    ("datums", "options", "error"),
    [
        ([], {}, "data must have at least 1 datum"),
        ([make_datum_with_beta(), datum()], {}, r"data\[1\]: no beta in loss_fn_inputs; loss own_loss requires it"),
        ([make_datum_with_beta([0.5])], {}, r"data\[0\]: beta must have 0 dimensions for loss own_loss, got 1"),
        (
            [tw.Datum(model_input=tw.ModelInput.from_ints([1]), loss_fn_inputs={"beta": np.float32(1)})],
            {},
            "no target_tokens",
        ),
        ([make_datum_with_beta()], {"arrays": "numpy"}, "arrays: loss own_loss computes in torch"),
    ],
)
def test_datums_without_the_inputs_of_the_loss_raise(
    server: ScriptedServer, loss_client: tw.ServiceClient, datums: Any, options: Any, error: str
) -> None:
    """The next operation gets the seq_id."""
    handle = loss_client.create_custom_loss(own_loss, {}).result(TEST_TIMEOUT_S)
    training = loss_client.create_lora_training_client("base")
    with pytest.raises(ValueError, match=error):
        training.forward_backward_custom(datums, handle, **options)
    training.optim_step(ADAM).result(TEST_TIMEOUT_S)
    assert seq_ids(server) == [1]


def test_missing_torch_raises_error_with_advice(
    client: tw.ServiceClient, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the missing package; nothing is sent."""
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "torch.fx", None)
    with pytest.raises(ImportError, match="create_custom_loss: torch is not installed; install it"):
        client.create_custom_loss(own_loss, {"logprobs": 1})
    assert not server.requests


# --- with torch: what is taken down, and computed here ---------------------------------------------------------------


def scaled_loss(logprobs: Any, beta: Any) -> Any:
    """Return a loss whose gradient is an input of the datum."""
    loss = (logprobs**2).sum() * beta
    return loss, {"custom/twice:mean": loss * 2, "custom/ones:sum": logprobs.detach().exp().sum() * 0 + 1}


@needs_torch
def test_client_computes_losses_datum_by_datum(server: ScriptedServer) -> None:
    """Losses are summed; metrics are sums or means over the datums of all requests."""
    outputs = [{"logprobs": {"data": [-1.0, -2.0], "dtype": "float32", "shape": [2]}}]
    body = {"loss_fn_output_type": "T", "loss_fn_outputs": outputs, "metrics": {"loss:sum": 7.0}}
    server.on_poll("Forward", lambda _: ScriptedResponse(body))
    server.on_poll("ForwardBackward", lambda _: ScriptedResponse(body))
    with open_client(server.url, chunk_limits=tw.ChunkLimits(max_datums=1)) as client:
        handle = client.create_custom_loss(scaled_loss, {"logprobs": 1, "beta": 0}).result(TEST_TIMEOUT_S)
        training = client.create_lora_training_client("base")
        result = training.forward_backward_custom(
            [make_datum_with_beta(1.0), make_datum_with_beta(3.0)], handle
        ).result(TEST_TIMEOUT_S)
    assert result.metrics == {
        "loss:sum": 20.0,
        "surrogate_loss:sum": 14.0,
        "custom/twice:mean": 20.0,
        "custom/ones:sum": 2.0,
    }
    parts = [part["forward_backward_input"]["data"][0] for part in server.bodies("forward_backward")]
    assert [part["loss_fn_inputs"]["weights"]["data"] for part in parts] == [[2.0, 4.0], [6.0, 12.0]]


@needs_torch
def test_key_depends_on_the_computation(client: tw.ServiceClient) -> None:
    """The key of a loss depends on its computation, not on its name."""

    def doubled(logprobs: Any, beta: Any) -> Any:
        return scaled_loss(logprobs, beta)

    def of(fn: Any, **ranks: int) -> str:
        return client.create_custom_loss(fn, {"logprobs": 1, **ranks}).result(TEST_TIMEOUT_S).key

    key = of(scaled_loss, beta=0)
    assert len(key) == 64 and of(doubled, beta=0) == key
    assert key not in (of(scaled_loss, beta=1), of(lambda logprobs: (logprobs.sum(), {})))


@needs_torch
@pytest.mark.parametrize(
    ("loss", "error"),
    [
        (
            lambda logprobs: (logprobs * 2, {}),
            r"data\[0\]: the loss must be a tensor of one number, got the shape \[2\]",
        ),
        (lambda logprobs: (logprobs.size(0), {}), r"data\[0\]: the loss must be a tensor of one number, got int"),
        (
            lambda logprobs: (logprobs.sum(), {"custom/a:sum": logprobs}),
            r"custom/a:sum must be a tensor of one number, got the shape \[2\]",
        ),
        (lambda logprobs: (logprobs.detach().sum(), {}), "cannot differentiate the loss by the logprobs"),
    ],
)
def test_wrong_results_of_a_traced_loss_raise(server: ScriptedServer, loss: Any, error: str) -> None:
    """The operation raises, and no backward pass follows."""
    outputs = [{"logprobs": {"data": [-1.0, -2.0], "dtype": "float32", "shape": [2]}}]
    server.on_poll(
        "Forward", lambda _: ScriptedResponse({"loss_fn_output_type": "T", "loss_fn_outputs": outputs, "metrics": {}})
    )
    with open_client(server.url) as client:
        handle = client.create_custom_loss(loss, {"logprobs": 1}).result(TEST_TIMEOUT_S)
        training = client.create_lora_training_client("base")
        with pytest.raises(ValueError, match=error):
            training.forward_backward_custom([datum()], handle).result(TEST_TIMEOUT_S)
    assert not server.named("forward_backward")


def _outside() -> Callable[..., Any]:
    import torch  # noqa: PLC0415

    captured = torch.ones(2)
    return lambda logprobs: ((logprobs * captured).sum(), {})


def _without_gradients(logprobs: Any) -> Any:
    import torch  # noqa: PLC0415

    with torch.no_grad():
        factor = logprobs.exp()
    return (factor * logprobs).sum(), {}


async def _later(logprobs: Any) -> Any:
    return logprobs.sum(), {}


@needs_torch
@pytest.mark.parametrize(
    ("loss", "ranks", "error"),
    [
        (
            lambda logprobs: (logprobs.sum() if logprobs[0] > 0 else 0, {}),
            {"logprobs": 1},
            "torch cannot trace the function",
        ),
        (lambda logprobs: (logprobs.sum().item(), {}), {"logprobs": 1}, r"it calls .item\(\)"),
        (lambda logprobs: logprobs.sum(), {"logprobs": 1}, r"it must return \(loss, metrics\)"),
        (lambda logprobs: (1.0, {}), {"logprobs": 1}, "the loss must be a tensor computed from logprobs, got 1.0"),
        (lambda logprobs: (logprobs.sum(), {"kl": logprobs.sum()}), {"logprobs": 1}, "metric 'kl' must be custom/"),
        (lambda logprobs: (logprobs.sum(), {"custom/K:sum": logprobs.sum()}), {"logprobs": 1}, "must be custom/"),
        (lambda logprobs: (logprobs.sum(), {"custom/k:sum": 1.0}), {"logprobs": 1}, "must be a tensor, got 1.0"),
        (lambda logprobs: ((logprobs * 1j).sum(), {}), {"logprobs": 1}, "passes a complex"),
        (lambda logprobs: ((logprobs * 2**63).sum(), {}), {"logprobs": 1}, "does not fit into 64 bits"),
        (lambda logprobs: (len(logprobs), {}), {"logprobs": 1}, "torch cannot trace the function"),
        (_without_gradients, {"logprobs": 1}, r"the loss disables gradients; use .detach\(\)"),
        (_later, {"logprobs": 1}, "expected a synchronous function, got an async one"),
        (lambda logprobs, beta=1: (logprobs.sum(), {}), {"logprobs": 1, "beta": 0}, "'beta' has a default"),
        (lambda logprobs, *more: (logprobs.sum(), {}), {"logprobs": 1, "more": 0}, "'more' is variadic positional"),
        (lambda logprobs, *, beta: (logprobs.sum(), {}), {"logprobs": 1, "beta": 0}, "'beta' is keyword-only"),
        (lambda logprobs, Beta: (logprobs.sum(), {}), {"logprobs": 1, "Beta": 0}, "use lower-case letters"),
        (
            lambda beta, logprobs: (logprobs.sum(), {}),
            {"logprobs": 1, "beta": 0},
            "the first parameter must be logprobs, got beta",
        ),
        (lambda: (0, {}), {}, "the first parameter must be logprobs, got none"),
        (
            lambda logprobs, beta: (logprobs.sum(), {}),
            {"logprobs": 1},
            r"input_ranks must have the keys \['logprobs', 'beta'\], got \['logprobs'\]",
        ),
        (
            lambda logprobs: (logprobs.sum(), {}),
            {"logprobs": 1, "b": 0},
            r"input_ranks must have the keys \['logprobs'\], got \['logprobs', 'b'\]",
        ),
        (
            lambda logprobs: (logprobs.sum(), {}),
            {"logprobs": 0},
            "the rank of logprobs must be that of target_tokens, 1 or 2, got 0",
        ),
        (
            lambda logprobs: (logprobs.sum(), {}),
            {"logprobs": 3},
            "the rank of logprobs must be its .*, got 3",
        ),
        (
            lambda logprobs: (logprobs.sum(), {}),
            {"logprobs": True},
            "the rank of logprobs must be its .*, got True",
        ),
        (
            eval(f"lambda logprobs, {', '.join('abcdefghijklmnop')}: (logprobs.sum(), {{}})"),
            {},
            "at most 16 parameters, got 17",
        ),
    ],
)
def test_functions_that_cannot_be_traced_raise(
    client: tw.ServiceClient, server: ScriptedServer, loss: Any, ranks: dict[str, Any], error: str
) -> None:
    """The call raises with the broken rule, and nothing is sent."""
    with pytest.raises(ValueError, match=f"create_custom_loss: .*{error}"):
        client.create_custom_loss(loss, ranks)
    assert not server.requests


@needs_torch
def test_outer_tensors_and_wrong_argument_types_raise(client: tw.ServiceClient) -> None:
    """Outer tensors, values other than functions, and invalid ranks raise."""
    with pytest.raises(ValueError, match="it uses a tensor from outside"):
        client.create_custom_loss(_outside(), {"logprobs": 1})
    with pytest.raises(TypeError, match="expected a function, got int"):
        client.create_custom_loss(3, {})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="input_ranks: expected a dict of ints, got list"):
        client.create_custom_loss(scaled_loss, [1])  # type: ignore[arg-type]
