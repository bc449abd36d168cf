"""Restarted servers: every operation of a lost session raises SessionExpiredError, at any stage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import ADAM, PARAMS, PROMPT, datum, open_client
from support.scripted import TEST_TIMEOUT_S, Gate, RecordedRequest, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._futures.event_loop import LOOP
from tinkerwire._session import heartbeat

pytestmark = pytest.mark.timeout(60)
SUBMITTED = {
    "optim_step": "OptimStep",
    "forward": "Forward",
    "forward_backward": "ForwardBackward",
    "custom": "Forward",
    "save_weights": "SaveWeights",
    "save_weights_for_sampler": "SaveWeightsForSampler",
    "load_weights": "LoadWeights",
    "asample": "Sample",
    "create_model": "CreateModel",
    "unload_model": "UnloadModel",
}
PATHS = {"custom": "forward"}
LOST_HEARTBEATS = {
    "names the session": ScriptedResponse({"detail": "Session s1 not found"}, status=404),
    "has a session code": ScriptedResponse({"error": {"code": "session_not_found"}}, status=404),
    "400": ScriptedResponse({"detail": "Unknown session_id"}, status=400),
    "410": ScriptedResponse({"detail": "no sign of life"}, status=410),
}


def start_operations(client: tw.ServiceClient) -> dict[str, Callable[[], Any]]:
    """Return functions that start operations, by the name of the operation."""
    training = client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
    sampling = client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)

    def loss(data: Any, logprobs: Any) -> Any:
        raise AssertionError("the log probabilities never arrive")

    return {
        "optim_step": lambda: training.optim_step(ADAM),
        "forward": lambda: training.forward([datum()], "cross_entropy"),
        "forward_backward": lambda: training.forward_backward([datum()], "cross_entropy"),
        "custom": lambda: training.forward_backward_custom([datum()], loss, arrays="numpy"),
        "save_weights": lambda: training.save_state("a"),
        "save_weights_for_sampler": training.save_weights_and_get_sampling_client,
        "load_weights": lambda: training.load_state("tinker://m1/weights/a"),
        "asample": lambda: sampling.sample(PROMPT, 1, PARAMS),
        "create_model": lambda: client.create_lora_training_client("base"),
        "create_sampling_session": lambda: client.create_sampling_client(base_model="base"),
        "unload_model": training.unload_model,
    }


@pytest.mark.parametrize("heartbeat", LOST_HEARTBEATS.values(), ids=LOST_HEARTBEATS)
@pytest.mark.parametrize("name", [*SUBMITTED, "create_sampling_session"])
def test_operation_after_restart_raises_session_expired(
    server: ScriptedServer, client: tw.ServiceClient, name: str, heartbeat: ScriptedResponse
) -> None:
    """The error comes before the next regular heartbeat, although the server names a model."""
    start = start_operations(client)[name]
    server.rules[PATHS.get(name, name)] = lambda _: ScriptedResponse({"detail": "Model m1 not found"}, status=404)
    server.rules["session_heartbeat"] = lambda _: heartbeat
    with pytest.raises(tw.SessionExpiredError, match="session s1"):
        start().result(TEST_TIMEOUT_S)


@pytest.mark.parametrize("status", [400, 404, 410])
@pytest.mark.parametrize("name", SUBMITTED)
def test_poll_after_restart_raises_session_expired(
    server: ScriptedServer, client: tw.ServiceClient, name: str, status: int
) -> None:
    """The error is not about a missing result, and nothing is submitted again."""
    start = start_operations(client)[name]
    not_found = ScriptedResponse({"detail": "Future not found"}, status=status)
    server.on_poll(SUBMITTED[name], in_order(ScriptedResponse(status=408), not_found))
    server.rules["session_heartbeat"] = lambda _: LOST_HEARTBEATS["names the session"]
    before = len(server.named(PATHS.get(name, name)))
    with pytest.raises(tw.SessionExpiredError, match="session s1"):
        start().result(TEST_TIMEOUT_S)
    assert len(server.named(PATHS.get(name, name))) == before + 1


@pytest.mark.parametrize("body", [{"error": "busy"}, {"detail": "Not Found"}, b""], ids=str)
def test_405_to_get_shows_that_heartbeats_exist(server: ScriptedServer, body: Any) -> None:
    """If the text of a 404 is empty, a GET that returns 405 shows that the server has heartbeats."""

    def heartbeat(request: RecordedRequest) -> ScriptedResponse:
        return ScriptedResponse(body, status=404 if request.method == "POST" else 405)

    with open_client(server.url) as client:
        training = client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
        server.rules["session_heartbeat"] = heartbeat
        server.rules["optim_step"] = lambda _: ScriptedResponse({"detail": "Not Found"}, status=404)
        with pytest.raises(tw.SessionExpiredError):
            training.optim_step(ADAM).result(TEST_TIMEOUT_S)


@pytest.mark.parametrize(
    "body",
    [
        {"detail": "Not Found"},
        b"404 page not found",
        b"Cannot POST /api/v1/session_heartbeat",
        {"path": "/api/v1/session_heartbeat", "error": "Not Found"},
        {"detail": "heartbeats of sessions are not supported"},
        b"",
    ],
    ids=str,
)
def test_404_without_heartbeats_is_ordinary_error(server: ScriptedServer, body: Any) -> None:
    """The next operation is sent."""
    with open_client(server.url) as client:
        training = client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
        server.rules["session_heartbeat"] = lambda _: ScriptedResponse(body, status=404)
        server.rules["save_weights"] = lambda _: ScriptedResponse({"detail": "Model not found"}, status=404)
        with pytest.raises(tw.NotFoundError, match="Model not found"):
            training.save_state("a").result(TEST_TIMEOUT_S)
        training.optim_step(ADAM).result(TEST_TIMEOUT_S)


@pytest.mark.parametrize("status", [400, 404])
@pytest.mark.parametrize(
    "body",
    [
        {"detail": "Session s1 not found"},
        {"error": {"code": "session_not_found"}},
        {"detail": "Unknown session_id 's1'"},
        {"detail": "session has expired"},
        {"error": "SessionNotFoundError: s1"},
        b"no such session: s1",
    ],
    ids=str,
)
def test_error_that_names_session_is_enough(server: ScriptedServer, body: Any, status: int) -> None:
    """It is enough on a server without heartbeats, too."""
    with open_client(server.url) as client:
        training = client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
        server.rules["session_heartbeat"] = lambda _: ScriptedResponse({"detail": "Not Found"}, status=404)
        server.rules["optim_step"] = lambda _: ScriptedResponse(body, status=status)
        with pytest.raises(tw.SessionExpiredError, match="session s1"):
            training.optim_step(ADAM).result(TEST_TIMEOUT_S)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"detail": "Sampling session sampler1 not found"}, 404),
        ({"detail": "sampling_session_not_found"}, 404),
        ({"detail": "Model s1:train:0 not found"}, 404),
        ({"detail": "max_tokens must be positive"}, 400),
    ],
    ids=str,
)
def test_missing_model_in_live_session_is_ordinary_error(server: ScriptedServer, body: Any, status: int) -> None:
    """A missing sampler or model or a bad argument is not a lost session."""
    with open_client(server.url) as client:
        sampling = client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)
        server.rules["asample"] = lambda _: ScriptedResponse(body, status=status)
        with pytest.raises(tw.APIStatusError) as caught:
            sampling.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
        assert caught.value.status_code == status


def test_unfinished_poll_ends_with_session(
    server: ScriptedServer, client: tw.ServiceClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restarted server may respond "not ready" to every poll; the poll ends once a heartbeat shows the loss."""
    monkeypatch.setattr(heartbeat, "HEARTBEAT_S", 0.02)
    training = client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
    server.on_poll("OptimStep", lambda _: ScriptedResponse(status=408))
    step = training.optim_step(ADAM)
    server.wait_for(lambda: bool(server.polls("OptimStep")), "a poll")
    server.rules["session_heartbeat"] = lambda _: ScriptedResponse({"detail": "no"}, status=410)
    with pytest.raises(tw.SessionExpiredError):
        step.result(TEST_TIMEOUT_S)


def test_queued_operations_raise_session_expired(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """Operations that are queued during the restart raise SessionExpiredError, too."""
    training = client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
    gate = Gate()
    server.rules["forward_backward"] = lambda _: ScriptedResponse({"detail": "Model not found"}, status=404, gate=gate)
    server.rules["session_heartbeat"] = lambda _: LOST_HEARTBEATS["names the session"]
    futures = [
        training.forward_backward([datum()], "cross_entropy"),
        training.optim_step(ADAM),
        training.save_state("a"),
    ]
    server.wait_for_requests("forward_backward")
    gate.release()
    for future in futures:
        with pytest.raises(tw.SessionExpiredError):
            future.result(TEST_TIMEOUT_S)


def test_rest_call_is_independent_of_session(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """A missing checkpoint raises NotFoundError even after the session is lost."""
    client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
    server.rules["session_heartbeat"] = lambda _: LOST_HEARTBEATS["names the session"]
    server.rules["training_runs/r1"] = lambda _: ScriptedResponse({"detail": "not found"}, status=404)
    with pytest.raises(tw.NotFoundError):
        client.create_rest_client().get_training_run("r1").result(TEST_TIMEOUT_S)


def test_late_loss_of_replaced_session_leaves_its_successor(
    server: ScriptedServer, client: tw.ServiceClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The probe of a session is answered after the session was replaced, and its request ends with its own id."""
    monkeypatch.setattr(heartbeat, "PROBE_REUSE_S", 0.0)
    ids = iter(["s1", "s2"])
    server.rules["create_session"] = lambda _: ScriptedResponse({"type": "create_session", "session_id": next(ids)})
    training = client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
    gate = Gate()
    server.rules["optim_step"] = lambda _: ScriptedResponse({"detail": "Model m1 not found"}, status=404)
    server.rules["session_heartbeat"] = lambda _: ScriptedResponse({"detail": "no"}, status=410, gate=gate)
    step = training.optim_step(ADAM)
    server.wait_for_requests("session_heartbeat")
    LOOP.start(lambda: client._session.renew("s1")).result(TEST_TIMEOUT_S)
    del server.rules["session_heartbeat"]
    successor = client.create_lora_training_client("base")
    assert client.session_id == "s2"
    gate.release()
    with pytest.raises(tw.SessionExpiredError, match="session s1"):
        step.result(TEST_TIMEOUT_S)
    assert not client._connection.session_state.is_expired
    assert successor.result(TEST_TIMEOUT_S).model_id
