"""The official SDK 0.38.0 as oracle of custom losses, in one environment with torch and tinkerwire.

Both clients trace the same functions to the same graphs, reject the same functions, and train alike on the embedded
server. The name keeps the module out of the fast tests: `make test-torch` runs it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

import tinkerwire
from support.embedded import embedded_http_server
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer, scripted_server

tinker: Any = pytest.importorskip("tinker")
pytest.importorskip("torch")

from tests.rigs.official import losses_catalogue as catalogue  # noqa: E402

pytestmark = pytest.mark.timeout(300)
CLIENTS = {"official": tinker, "ours": tinkerwire}
FLAG = ("--flag", "custom_loss_server_side=true")
KEY = "tml-losses"


def list_ranks(loss: catalogue.Loss) -> dict[str, int]:
    return {name: catalogue.RANKS[name] for name in inspect.signature(loss).parameters}


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    """Run a server that accepts every custom loss."""
    with scripted_server() as scripted:
        scripted.rules["client/config"] = lambda _: ScriptedResponse({"custom_loss_server_side": True})
        scripted.rules["telemetry"] = lambda _: ScriptedResponse({"status": "accepted"})
        scripted.on_poll("CreateCustomLoss", lambda poll: ScriptedResponse({"loss_id": poll.body["request_id"]}))
        yield scripted


@pytest.fixture(scope="module")
def make_loss(server: ScriptedServer) -> Iterator[Any]:
    """Return a function that creates a loss with a client of each kind, in one session."""
    # The official client stays open: closing it waits for telemetry, which this server does not implement.
    services = {name: client.ServiceClient(base_url=server.url, api_key=KEY) for name, client in CLIENTS.items()}
    yield lambda name, loss: services[name].create_custom_loss(loss, list_ranks(loss)).result(TEST_TIMEOUT_S)
    services["ours"].close().result(TEST_TIMEOUT_S)


@pytest.fixture(scope="module")
def request_of(server: ScriptedServer, make_loss: Any) -> Any:
    """Return a function that returns a client's request for a loss, without its seq_id."""

    @cache
    def send(name: str, loss: catalogue.Loss) -> Any:
        make_loss(name, loss)
        return {key: value for key, value in server.bodies("create_custom_loss")[-1].items() if "seq_id" not in key}

    return send


@pytest.mark.parametrize("loss", catalogue.ACCEPTED, ids=lambda loss: loss.__name__)
def test_graphs_equal_those_of_official_sdk(request_of: Any, loss: catalogue.Loss) -> None:
    """Both clients send the same graph, apart from the order of keys."""
    assert request_of("ours", loss) == request_of("official", loss)


@pytest.mark.parametrize("loss", catalogue.REJECTED, ids=lambda loss: loss.__name__)
def test_rejections_equal_those_of_official_sdk(request_of: Any, loss: catalogue.Loss) -> None:
    """Both clients reject these losses with a ValueError."""
    for name in CLIENTS:
        with pytest.raises(ValueError, match=r"^create_custom_loss: "):
            request_of(name, loss)


@pytest.mark.parametrize("loss", catalogue.REJECTED_HERE_ONLY, ids=lambda loss: loss.__name__)
def test_known_losses_are_rejected_by_this_client_only(request_of: Any, loss: catalogue.Loss) -> None:
    """The official SDK accepts these losses, which tinkerwire rejects on purpose."""
    assert request_of("official", loss)
    with pytest.raises(ValueError, match=r"^create_custom_loss: "):
        request_of("ours", loss)


def test_identical_loss_is_rejected_by_both_clients(make_loss: Any) -> None:
    """Within a session, both clients reject a loss that repeats an earlier one."""
    for name in CLIENTS:
        make_loss(name, lambda logprobs: (logprobs.var(), {}))
        with pytest.raises(ValueError, match=r"^create_custom_loss: "):
            make_loss(name, lambda logprobs: (logprobs.var(), {}))


@pytest.mark.parametrize("loss", catalogue.ACCEPTED, ids=lambda loss: loss.__name__)
def test_embedded_server_accepts_graphs(request_of: Any, loss: catalogue.Loss) -> None:
    """The embedded server accepts every graph that the clients send."""
    from tinkerwire._server.custom_loss.graph import validate_graph  # noqa: PLC0415
    from tinkerwire_base.conversion.converter import Converter  # noqa: PLC0415
    from tinkerwire_generated.models import CreateCustomLossRequest  # noqa: PLC0415

    body = {**request_of("official", loss), "custom_loss_seq_id": 0}
    graph = validate_graph(Converter().structure(body, CreateCustomLossRequest))
    assert [graph_input.name for graph_input in graph.inputs] == list(list_ranks(loss))


def make_datums(client: Any) -> list[Any]:
    """Return the same datums as types of a client."""
    rng = np.random.default_rng(0)
    datums = []
    for length in (8, 12, 9):
        tokens = list(b"to be or not to be, that"[:length])
        inputs = {
            "target_tokens": np.array(tokens[1:]),
            "advantages": rng.normal(1.0, 0.5, length - 1).astype(np.float32),
            "old": np.full(length - 1, -5.5, np.float32),
        }
        model_input = client.ModelInput.from_ints(tokens[:-1])
        datums.append(client.Datum(model_input=model_input, loss_fn_inputs=inputs))
    return datums


def run_steps(name: str, *flags: str) -> list[dict[str, float]]:
    """Return the metrics of three steps."""
    client = CLIENTS[name]
    with embedded_http_server("--wire", "0.38.0", *flags) as url:
        service = client.ServiceClient(base_url=url, api_key=KEY)
        handle = service.create_custom_loss(catalogue.policy, list_ranks(catalogue.policy)).result(TEST_TIMEOUT_S)
        training = service.create_lora_training_client("tinkerwire/byte-nano", rank=4, seed=0).result(TEST_TIMEOUT_S)
        steps = []
        for _ in range(3):
            forward_backward = training.forward_backward_custom(make_datums(client), handle)
            optim_step = training.optim_step(client.AdamParams(learning_rate=3e-3))
            steps.append(
                {**forward_backward.result(TEST_TIMEOUT_S).metrics, **optim_step.result(TEST_TIMEOUT_S).metrics}
            )
        if name == "ours":
            service.close().result(TEST_TIMEOUT_S)
    return steps


def test_training_is_equal_wherever_the_loss_runs() -> None:
    """Training is the same whether the official client, tinkerwire or the server computes the loss."""
    runs = {(name, *flags): run_steps(name, *flags) for name in CLIENTS for flags in ((), FLAG)}
    server_side_steps = runs[("ours", *FLAG)]
    assert server_side_steps == runs[("official", *FLAG)]
    assert runs[("ours",)] == [pytest.approx(step, rel=1e-6) for step in runs[("official",)]]
    for our_metrics, official_metrics in zip(server_side_steps, runs[("official",)], strict=True):
        assert our_metrics == pytest.approx({key: official_metrics[key] for key in our_metrics}, rel=1e-5)
