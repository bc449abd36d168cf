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


def ranks(loss: catalogue.Loss) -> dict[str, int]:
    return {name: catalogue.RANKS[name] for name in inspect.signature(loss).parameters}


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    """One that computes losses, and takes any."""
    with scripted_server() as found:
        found.rules["client/config"] = lambda _: ScriptedResponse({"custom_loss_server_side": True})
        found.rules["telemetry"] = lambda _: ScriptedResponse({"status": "accepted"})
        found.on_poll("CreateCustomLoss", lambda asked: ScriptedResponse({"loss_id": asked.body["request_id"]}))
        yield found


@pytest.fixture(scope="module")
def make(server: ScriptedServer) -> Iterator[Any]:
    """Return a function that creates a loss with a client of each kind, in one session."""
    # The official client stays open: closing it waits for telemetry, which this server does not implement.
    services = {name: client.ServiceClient(base_url=server.url, api_key=KEY) for name, client in CLIENTS.items()}
    yield lambda name, loss: services[name].create_custom_loss(loss, ranks(loss)).result(TEST_TIMEOUT_S)
    services["ours"].close().result(TEST_TIMEOUT_S)


@pytest.fixture(scope="module")
def sent(server: ScriptedServer, make: Any) -> Any:
    """Return a function that returns the request of a client for a loss, without its seq_id."""

    @cache
    def send(name: str, loss: catalogue.Loss) -> Any:
        make(name, loss)
        return {key: value for key, value in server.bodies("create_custom_loss")[-1].items() if "seq_id" not in key}

    return send


@pytest.mark.parametrize("loss", catalogue.TAKEN, ids=lambda loss: loss.__name__)
def test_graphs_equal_those_of_official_sdk(sent: Any, loss: catalogue.Loss) -> None:
    """Byte for byte, but for the order of keys."""
    assert sent("ours", loss) == sent("official", loss)


@pytest.mark.parametrize("loss", catalogue.REFUSED, ids=lambda loss: loss.__name__)
def test_rejections_equal_those_of_official_sdk(sent: Any, loss: catalogue.Loss) -> None:
    """By the same class."""
    for name in CLIENTS:
        with pytest.raises(ValueError, match=r"^create_custom_loss: "):
            sent(name, loss)


@pytest.mark.parametrize("loss", catalogue.OURS_ALONE, ids=lambda loss: loss.__name__)
def test_known_losses_are_rejected_by_this_client_only(sent: Any, loss: catalogue.Loss) -> None:
    """On purpose."""
    assert sent("official", loss)
    with pytest.raises(ValueError, match=r"^create_custom_loss: "):
        sent("ours", loss)


def test_identical_loss_is_rejected_by_both_clients(make: Any) -> None:
    """In a session."""
    for name in CLIENTS:
        make(name, lambda logprobs: (logprobs.var(), {}))
        with pytest.raises(ValueError, match=r"^create_custom_loss: "):
            make(name, lambda logprobs: (logprobs.var(), {}))


@pytest.mark.parametrize("loss", catalogue.TAKEN, ids=lambda loss: loss.__name__)
def test_embedded_server_accepts_graphs(sent: Any, loss: catalogue.Loss) -> None:
    """All of them: it lacks nothing that is usual."""
    from tinkerwire._server.custom_loss.graph import validate_graph  # noqa: PLC0415
    from tinkerwire_base.conversion.converter import Converter  # noqa: PLC0415
    from tinkerwire_generated.models import CreateCustomLossRequest  # noqa: PLC0415

    body = {**sent("official", loss), "custom_loss_seq_id": 0}
    found = validate_graph(Converter().structure(body, CreateCustomLossRequest))
    assert [each.name for each in found.inputs] == list(ranks(loss))


def data(client: Any) -> list[Any]:
    """Return the same datums as types of a client."""
    rng = np.random.default_rng(0)
    found = []
    for length in (8, 12, 9):
        tokens = list(b"to be or not to be, that"[:length])
        inputs = {
            "target_tokens": np.array(tokens[1:]),
            "advantages": rng.normal(1.0, 0.5, length - 1).astype(np.float32),
            "old": np.full(length - 1, -5.5, np.float32),
        }
        model_input = client.ModelInput.from_ints(tokens[:-1])
        found.append(client.Datum(model_input=model_input, loss_fn_inputs=inputs))
    return found


def rehearsed(name: str, *flags: str) -> list[dict[str, float]]:
    """Return the metrics of three steps."""
    client = CLIENTS[name]
    with embedded_http_server("--wire", "0.38.0", *flags) as url:
        service = client.ServiceClient(base_url=url, api_key=KEY)
        handle = service.create_custom_loss(catalogue.policy, ranks(catalogue.policy)).result(TEST_TIMEOUT_S)
        training = service.create_lora_training_client("tinkerwire/byte-nano", rank=4, seed=0).result(TEST_TIMEOUT_S)
        steps = []
        for _ in range(3):
            trained = training.forward_backward_custom(data(client), handle)
            stepped = training.optim_step(client.AdamParams(learning_rate=3e-3))
            steps.append({**trained.result(TEST_TIMEOUT_S).metrics, **stepped.result(TEST_TIMEOUT_S).metrics})
        if name == "ours":
            service.close().result(TEST_TIMEOUT_S)
    return steps


def test_both_train_alike() -> None:
    """Training is the same whether the official client, tinkerwire or the server computes the loss."""
    runs = {(name, *flags): rehearsed(name, *flags) for name in CLIENTS for flags in ((), FLAG)}
    here = runs[("ours", *FLAG)]
    assert here == runs[("official", *FLAG)]
    assert runs[("ours",)] == [pytest.approx(step, rel=1e-6) for step in runs[("official",)]]
    for ours, theirs in zip(here, runs[("official",)], strict=True):
        assert ours == pytest.approx({key: theirs[key] for key in ours}, rel=1e-5)
