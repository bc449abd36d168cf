"""One session per service: created once, kept alive, finished."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

import pytest

import tinkerwire as tw
from support.clients import ADAM, PARAMS, PROMPT, open_client, wait_until
from support.scripted import TEST_TIMEOUT_S, Gate, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._futures.event_loop import LOOP
from tinkerwire._session import heartbeat
from tinkerwire._transport import http_transport

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send heartbeats at short intervals."""
    assert heartbeat.HEARTBEAT_S == 10.0
    monkeypatch.setattr(heartbeat, "HEARTBEAT_S", 0.02)


def test_session_is_created_on_demand(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """Neither the constructor nor calls without a session create one."""
    client.get_server_capabilities()
    assert not server.named("create_session")
    client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
    assert len(server.named("create_session")) == 1


def test_concurrent_clients_share_one_session(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """Forty clients made at once by eight threads share one session, and have numbers of their own in it."""
    gate = Gate()
    server.rules["create_session"] = lambda request: ScriptedResponse(server.healthy_response(request).body, gate=gate)
    with ThreadPoolExecutor(8) as pool:
        training = [pool.submit(client.create_lora_training_client, "base") for _ in range(20)]
        sampling = [pool.submit(client.create_sampling_client, None, "base") for _ in range(20)]
        gate.release()
        for job in (*training, *sampling):
            job.result(TEST_TIMEOUT_S).result(TEST_TIMEOUT_S)
    assert len(server.named("create_session")) == 1
    assert sorted(body["model_seq_id"] for body in server.bodies("create_model")) == list(range(20))
    numbers = sorted(body["sampling_session_seq_id"] for body in server.bodies("create_sampling_session"))
    assert numbers == list(range(20))


def test_models_are_numbered_in_call_order(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """The model_seq_ids follow the order of the calls."""
    for future in [client.create_lora_training_client(f"base{i}") for i in range(10)]:
        future.result(TEST_TIMEOUT_S)
    seq_ids = {body["base_model"]: body["model_seq_id"] for body in server.bodies("create_model")}
    assert seq_ids == {f"base{i}": i for i in range(10)}


def test_failed_creation_is_repeated_by_next_operation(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """All operations that wait for the session get the error; a later one creates the session."""
    gate = Gate()
    server.rules["create_session"] = in_order(
        ScriptedResponse({"detail": "no seats"}, status=403, gate=gate), server.healthy_response
    )
    waiting = [client.create_lora_training_client("base") for _ in range(3)]
    server.wait_for_requests("create_session")
    gate.release()
    for training in waiting:
        with pytest.raises(tw.PermissionDeniedError, match="no seats"):
            training.result(TEST_TIMEOUT_S)
    client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
    assert len(server.named("create_session")) == 2


def test_cancelled_creation_leaves_session_to_others(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """A client whose creation is cancelled does not cancel the session of the others."""
    gate = Gate()
    server.rules["create_session"] = lambda request: ScriptedResponse(server.healthy_response(request).body, gate=gate)
    first, second = client.create_lora_training_client("base"), client.create_lora_training_client("base")
    server.wait_for_requests("create_session")
    first._operations.creation.cancel()
    gate.release()
    second.result(TEST_TIMEOUT_S)


def count_tasks() -> int:
    """Return the number of tasks on the loop of all clients."""

    async def count() -> int:
        return len(asyncio.all_tasks())

    return LOOP.start(count).result(TEST_TIMEOUT_S)


def test_close_leaves_no_task_behind(server: ScriptedServer) -> None:
    """The heartbeats of a closed client end at once, even if the loop runs on for another client."""
    with open_client(server.url) as other_client:
        other_client.get_server_capabilities()
        number = count_tasks()
        with open_client(server.url) as client:
            client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
            assert count_tasks() > number
        wait_until(lambda: count_tasks() <= number, "the tasks of the closed client end")


@pytest.mark.usefixtures("quick")
def test_heartbeats_continue_until_close(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """Heartbeats have the session id, and stop at close."""
    client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
    beats = server.wait_for_requests("session_heartbeat", 5)
    assert {beat.body["session_id"] for beat in beats} == {"s1"}
    client.close().result(TEST_TIMEOUT_S)
    number = len(server.named("session_heartbeat"))
    with open_client(server.url) as second_client:
        # The loop runs on for the other client, and would send heartbeats if they had not ended.
        for _ in range(20):
            second_client.get_server_capabilities()
    assert len(server.named("session_heartbeat")) == number


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "failure",
    [
        ScriptedResponse(status=500),
        ScriptedResponse(drop=True),
        ScriptedResponse(status=404),
        ScriptedResponse(b"<html>"),
        ScriptedResponse(b"null"),
    ],
    ids=str,
)
def test_heartbeat_continues_after_errors(
    server: ScriptedServer, client: tw.ServiceClient, failure: ScriptedResponse
) -> None:
    """After any error the next heartbeat is sent at its regular time."""
    server.rules["session_heartbeat"] = lambda _: failure
    client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
    beats = server.wait_for_requests("session_heartbeat", 4)
    assert len({beat.headers["x-idempotency-key"] for beat in beats}) == len(beats)


def test_heartbeat_survives_foreign_transport_error(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of an unknown class from a transport of the user does not end the heartbeats."""
    monkeypatch.setattr(heartbeat, "HEARTBEAT_S", 0.01)
    inner = http_transport.HttpTransport(server.url)
    paths: list[str] = []

    class Broken:
        async def send(self, request: tw.service.Any, traffic: tw.service.Any, timeout_s: float) -> tw.service.Any:
            if "heartbeat" in request.path:
                paths.append(request.path)
                raise RuntimeError("not mine")
            return await inner.send(request, traffic, timeout_s)

        async def close(self) -> None:
            await inner.close()

    with open_client(server.url, transport=Broken()) as client:
        client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
        while len(paths) < 3:
            client.get_server_capabilities()


@pytest.mark.usefixtures("quick")
def test_410_ends_heartbeats(
    server: ScriptedServer, client: tw.ServiceClient, caplog: pytest.LogCaptureFixture
) -> None:
    """The end is logged once."""
    server.rules["session_heartbeat"] = lambda _: ScriptedResponse(status=410)
    with caplog.at_level(logging.WARNING, "tinkerwire"):
        client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
        heartbeat_task = client._session._heartbeat._task
        assert heartbeat_task is not None

        async def end() -> None:
            await heartbeat_task

        client._connection.start(end).result(TEST_TIMEOUT_S)
    assert len(server.named("session_heartbeat")) == 1
    assert [message for message in caplog.messages if "has expired" in message]


@pytest.mark.usefixtures("quick")
def test_long_heartbeat_failure_is_logged(
    server: ScriptedServer, client: tw.ServiceClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After two minutes without a successful heartbeat the log has the cause."""
    assert heartbeat.SILENCE_S == 120.0
    monkeypatch.setattr(heartbeat, "SILENCE_S", 0.0)
    server.rules["session_heartbeat"] = lambda _: ScriptedResponse({"detail": "on fire"}, status=500)
    with caplog.at_level(logging.WARNING, "tinkerwire"):
        client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
        server.wait_for_requests("session_heartbeat", 3)
    assert "session s1: no heartbeat has succeeded" in caplog.text
    assert "on fire" in caplog.text


def test_server_messages_are_logged(
    server: ScriptedServer, client: tw.ServiceClient, caplog: pytest.LogCaptureFixture
) -> None:
    """Messages in the response to create_session are logged at their levels."""
    messages = {"info_message": "hello", "warning_message": "careful", "error_message": "alas"}
    server.rules["create_session"] = lambda _: ScriptedResponse({"session_id": "s1", **messages})
    with caplog.at_level(logging.INFO, "tinkerwire"):
        client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
    records = {(record.levelname, record.message) for record in caplog.records}
    assert {("INFO", "hello"), ("WARNING", "careful"), ("ERROR", "alas")} <= records


def test_session_metadata_is_sent(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Metadata, project and tags come from arguments and the environment."""
    monkeypatch.setenv("TINKER_TAGS", "a,b")
    monkeypatch.setenv("TINKER_PROJECT_ID", "from-environment")
    with open_client(server.url, user_metadata={"who": "me"}) as client:
        client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)
    with open_client(server.url, project_id="given") as client:
        client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)
    first, second = server.bodies("create_session")
    assert (first["tags"], first["user_metadata"], first["project_id"]) == (
        ["a", "b"],
        {"who": "me"},
        "from-environment",
    )
    assert (second["user_metadata"], second["project_id"]) == ({}, "given")
    assert first["sdk_version"] == "0.16.1"


def test_close_during_creation_ends_operations(server: ScriptedServer) -> None:
    """Operations that wait for the session end with ClientClosedError."""
    gate = Gate()
    server.rules["create_session"] = lambda request: ScriptedResponse(server.healthy_response(request).body, gate=gate)
    with open_client(server.url) as client:
        training, sampling = (
            client.create_lora_training_client("base"),
            client.create_sampling_client(base_model="base"),
        )
        futures = [training.optim_step(ADAM), sampling.sample(PROMPT, 1, PARAMS)]
        server.wait_for_requests("create_session")
    for waiting in (training, sampling, *futures):
        with pytest.raises(tw.ClientClosedError):
            waiting.result(TEST_TIMEOUT_S)
    gate.release()


@pytest.fixture
def training_with_heartbeats(
    server: ScriptedServer, client: tw.ServiceClient, monkeypatch: pytest.MonkeyPatch
) -> tw.TrainingClient:
    """Create a training client whose session has had a heartbeat, and gets further ones on request only."""
    monkeypatch.setattr(heartbeat, "HEARTBEAT_S", 0.02)
    monkeypatch.setattr(heartbeat, "PROBE_REUSE_S", 0.0)
    training = client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
    server.wait_for_requests("session_heartbeat", 1)
    monkeypatch.setattr(heartbeat, "HEARTBEAT_S", 10 * TEST_TIMEOUT_S)
    # A last quick heartbeat, if any, ends before the test sends a request.
    wait_until(lambda: client._session._heartbeat._was_accepted, "the server has accepted a heartbeat")
    return training


def test_restart_is_reported_as_session_expired(
    server: ScriptedServer, client: tw.ServiceClient, training_with_heartbeats: tw.TrainingClient
) -> None:
    """The server names an unknown model; the error of this and all later operations names the session."""
    for name in ("session_heartbeat", "optim_step"):
        server.rules[name] = lambda _: ScriptedResponse({"detail": "Model not found"}, status=404)
    steps = [training_with_heartbeats.optim_step(ADAM) for _ in range(3)]
    for step in steps:
        with pytest.raises(tw.SessionExpiredError, match="session s1: the server no longer has it"):
            step.result(TEST_TIMEOUT_S)
    with pytest.raises(tw.SessionExpiredError):
        client.create_lora_training_client("base").result(TEST_TIMEOUT_S)


def test_session_lost_while_a_result_is_polled_is_reported_with_the_response(
    server: ScriptedServer, training_with_heartbeats: tw.TrainingClient
) -> None:
    """The server that rejects a poll has no session any more; the error has its text."""
    for name in ("session_heartbeat", "retrieve_future"):
        server.rules[name] = lambda _: ScriptedResponse({"detail": "no such request"}, status=404)
    with pytest.raises(tw.SessionExpiredError, match=r"HTTP 404.*no such request"):
        training_with_heartbeats.optim_step(ADAM).result(TEST_TIMEOUT_S)


def test_not_found_in_live_session_stays_not_found(
    server: ScriptedServer, training_with_heartbeats: tw.TrainingClient
) -> None:
    """A heartbeat shows that the server has the session."""
    server.rules["optim_step"] = lambda _: ScriptedResponse({"detail": "Model not found"}, status=404)
    beats = len(server.named("session_heartbeat"))
    with pytest.raises(tw.NotFoundError, match="Model not found"):
        training_with_heartbeats.optim_step(ADAM).result(TEST_TIMEOUT_S)
    assert len(server.named("session_heartbeat")) > beats


def test_session_id_is_public(server: ScriptedServer) -> None:
    """Reading it creates the session with one request; a closed client still has it."""
    with open_client(server.url) as client:
        assert client.session_id == client.session_id == "s1"
        assert len(server.named("create_session")) == 1
    assert client.session_id == "s1"


def test_session_id_raises_error_of_creation(server: ScriptedServer) -> None:
    """A client that was closed before it had a session raises ClientClosedError."""
    server.rules["create_session"] = lambda _: ScriptedResponse(status=403)
    with open_client(server.url) as client, pytest.raises(tw.PermissionDeniedError):
        _ = client.session_id
    with pytest.raises(tw.ClientClosedError):
        _ = client.session_id
