"""One session per service: created once, kept alive, ended."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor

import pytest

import tinkerwire as tw
from support.clients import ADAM, PARAMS, PROMPT, open_client, wait_until
from support.scripted import PATIENCE_S, Gate, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._session import heartbeat
from tinkerwire._transport import aiohttp_transport

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A heart that beats often."""
    assert heartbeat.HEARTBEAT_S == 10.0
    monkeypatch.setattr(heartbeat, "HEARTBEAT_S", 0.02)


def test_it_is_created_when_it_is_needed(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """Neither the constructor nor calls without a session create one."""
    client.get_server_capabilities()
    assert not server.named("create_session")
    client.create_lora_training_client("base").result(PATIENCE_S)
    assert len(server.named("create_session")) == 1


def test_it_is_created_once_for_all(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """Forty clients made at once by eight threads share one session, and have numbers of their own in it."""
    hold = Gate()
    server.rules["create_session"] = lambda asked: ScriptedResponse(server.healthy_response(asked).body, hold=hold)
    with ThreadPoolExecutor(8) as pool:
        training = [pool.submit(client.create_lora_training_client, "base") for _ in range(20)]
        sampling = [pool.submit(client.create_sampling_client, None, "base") for _ in range(20)]
        hold.release()
        for job in (*training, *sampling):
            job.result(PATIENCE_S).result(PATIENCE_S)
    assert len(server.named("create_session")) == 1
    assert sorted(body["model_seq_id"] for body in server.bodies("create_model")) == list(range(20))
    numbers = sorted(body["sampling_session_seq_id"] for body in server.bodies("create_sampling_session"))
    assert numbers == list(range(20))


def test_model_numbers_are_those_of_the_calls(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """Models are numbered in the order in which they were asked for."""
    for future in [client.create_lora_training_client(f"base{i}") for i in range(10)]:
        future.result(PATIENCE_S)
    found = {body["base_model"]: body["model_seq_id"] for body in server.bodies("create_model")}
    assert found == {f"base{i}": i for i in range(10)}


def test_a_failed_creation_is_tried_again_by_the_next(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """All who wait for a session that cannot be created get the error; who asks later gets a new try."""
    hold = Gate()
    server.rules["create_session"] = in_order(
        ScriptedResponse({"detail": "no seats"}, status=403, hold=hold), server.healthy_response
    )
    waiting = [client.create_lora_training_client("base") for _ in range(3)]
    server.wait_for_requests("create_session")
    hold.release()
    for training in waiting:
        with pytest.raises(tw.PermissionDeniedError, match="no seats"):
            training.result(PATIENCE_S)
    client.create_lora_training_client("base").result(PATIENCE_S)
    assert len(server.named("create_session")) == 2


def test_one_who_stops_waiting_does_not_stop_the_others(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """A client whose creation is cancelled while the session is created leaves the session to the others."""
    hold = Gate()
    server.rules["create_session"] = lambda asked: ScriptedResponse(server.healthy_response(asked).body, hold=hold)
    first, second = client.create_lora_training_client("base"), client.create_lora_training_client("base")
    server.wait_for_requests("create_session")
    first._operations.creation.cancel()
    hold.release()
    second.result(PATIENCE_S)


@pytest.mark.usefixtures("quick")
def test_the_heart_beats_until_close(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """Heartbeats name the session, keep coming, and stop at close."""
    client.create_lora_training_client("base").result(PATIENCE_S)
    beats = server.wait_for_requests("session_heartbeat", 5)
    assert {beat.body["session_id"] for beat in beats} == {"s1"}
    client.close().result(PATIENCE_S)
    number = len(server.named("session_heartbeat"))
    with open_client(server.url) as other:
        # The loop goes on for the other client, and would go on for the heart.
        for _ in range(20):
            other.get_server_capabilities()
    assert len(server.named("session_heartbeat")) == number


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "trouble",
    [
        ScriptedResponse(status=500),
        ScriptedResponse(drop=True),
        ScriptedResponse(status=404),
        ScriptedResponse(b"<html>"),
        ScriptedResponse(b"null"),
    ],
    ids=str,
)
def test_the_heart_survives(server: ScriptedServer, client: tw.ServiceClient, trouble: ScriptedResponse) -> None:
    """A heartbeat that fails in whatever way is followed by the next, without a resend of its own."""
    server.rules["session_heartbeat"] = lambda _: trouble
    client.create_lora_training_client("base").result(PATIENCE_S)
    beats = server.wait_for_requests("session_heartbeat", 4)
    assert len({beat.headers["x-idempotency-key"] for beat in beats}) == len(beats)


def test_a_heart_over_a_broken_transport_survives(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even an error of a foreign kind, from a transport of the user's, ends the heartbeat."""
    monkeypatch.setattr(heartbeat, "HEARTBEAT_S", 0.01)
    inner = aiohttp_transport.AiohttpTransport(server.url)
    tried: list[str] = []

    class Broken:
        async def send(self, request: tw.service.Any, traffic: tw.service.Any, timeout_s: float) -> tw.service.Any:
            if "heartbeat" in request.path:
                tried.append(request.path)
                raise RuntimeError("not mine")
            return await inner.send(request, traffic, timeout_s)

        async def close(self) -> None:
            await inner.close()

    with open_client(server.url, transport=Broken()) as client:
        client.create_lora_training_client("base").result(PATIENCE_S)
        while len(tried) < 3:
            client.get_server_capabilities()


@pytest.mark.usefixtures("quick")
def test_an_expired_session_has_no_heart(
    server: ScriptedServer, client: tw.ServiceClient, caplog: pytest.LogCaptureFixture
) -> None:
    """410 ends the heartbeat, and says so once."""
    server.rules["session_heartbeat"] = lambda _: ScriptedResponse(status=410)
    with caplog.at_level(logging.WARNING, "tinkerwire"):
        client.create_lora_training_client("base").result(PATIENCE_S)
        heart = client._session._heartbeat._task
        assert heart is not None

        async def end() -> None:
            await heart

        client._connection.start(end).result(PATIENCE_S)
    assert len(server.named("session_heartbeat")) == 1
    assert [message for message in caplog.messages if "has expired" in message]


@pytest.mark.usefixtures("quick")
def test_long_silence_is_worth_a_word(
    server: ScriptedServer, client: tw.ServiceClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """When no heartbeat gets through for two minutes the log says so, with the reason."""
    assert heartbeat.SILENCE_S == 120.0
    monkeypatch.setattr(heartbeat, "SILENCE_S", 0.0)
    server.rules["session_heartbeat"] = lambda _: ScriptedResponse({"detail": "on fire"}, status=500)
    with caplog.at_level(logging.WARNING, "tinkerwire"):
        client.create_lora_training_client("base").result(PATIENCE_S)
        server.wait_for_requests("session_heartbeat", 3)
    assert "session s1: no heartbeat has succeeded" in caplog.text
    assert "on fire" in caplog.text


def test_what_the_server_has_to_say_is_logged(
    server: ScriptedServer, client: tw.ServiceClient, caplog: pytest.LogCaptureFixture
) -> None:
    """Messages that come with the session go to the log at their levels."""
    said = {"info_message": "hello", "warning_message": "careful", "error_message": "alas"}
    server.rules["create_session"] = lambda _: ScriptedResponse({"session_id": "s1", **said})
    with caplog.at_level(logging.INFO, "tinkerwire"):
        client.create_lora_training_client("base").result(PATIENCE_S)
    found = {(record.levelname, record.message) for record in caplog.records}
    assert {("INFO", "hello"), ("WARNING", "careful"), ("ERROR", "alas")} <= found


def test_what_the_session_tells(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Metadata, project and tags of the session are sent, from arguments and environment."""
    monkeypatch.setenv("TINKER_TAGS", "a,b")
    monkeypatch.setenv("TINKER_PROJECT_ID", "from-environment")
    with open_client(server.url, user_metadata={"who": "me"}) as client:
        client.create_sampling_client(base_model="base").result(PATIENCE_S)
    with open_client(server.url, project_id="given") as client:
        client.create_sampling_client(base_model="base").result(PATIENCE_S)
    first, second = server.bodies("create_session")
    assert (first["tags"], first["user_metadata"], first["project_id"]) == (
        ["a", "b"],
        {"who": "me"},
        "from-environment",
    )
    assert (second["user_metadata"], second["project_id"]) == ({}, "given")
    assert first["sdk_version"] == "0.16.1"


def test_sessions_end_with_pending_work(server: ScriptedServer) -> None:
    """Closing while the session is still being created ends what waits for it."""
    hold = Gate()
    server.rules["create_session"] = lambda asked: ScriptedResponse(server.healthy_response(asked).body, hold=hold)
    with open_client(server.url) as client:
        training, sampling = (
            client.create_lora_training_client("base"),
            client.create_sampling_client(base_model="base"),
        )
        futures = [training.optim_step(ADAM), sampling.sample(PROMPT, 1, PARAMS)]
        server.wait_for_requests("create_session")
    for waiting in (training, sampling, *futures):
        with pytest.raises(tw.ClientClosedError):
            waiting.result(PATIENCE_S)
    hold.release()


@pytest.fixture
def beaten(server: ScriptedServer, client: tw.ServiceClient, monkeypatch: pytest.MonkeyPatch) -> tw.TrainingClient:
    """A training client whose session's heart has beaten, and does so again only when it is asked."""
    monkeypatch.setattr(heartbeat, "HEARTBEAT_S", 0.02)
    monkeypatch.setattr(heartbeat, "PROBE_REUSE_S", 0.0)
    training = client.create_lora_training_client("base").result(PATIENCE_S)
    server.wait_for_requests("session_heartbeat", 1)
    monkeypatch.setattr(heartbeat, "HEARTBEAT_S", 10 * PATIENCE_S)
    # The last quick beat, if there is one more, is over before anything is asked.
    wait_until(lambda: client._session._heartbeat._was_accepted, "the server has answered")
    return training


def test_a_server_that_was_started_again_has_lost_the_session(
    server: ScriptedServer, client: tw.ServiceClient, beaten: tw.TrainingClient
) -> None:
    """Such a server speaks of an unknown model; the error speaks of the session, and so do all that follow."""
    for name in ("session_heartbeat", "optim_step"):
        server.rules[name] = lambda _: ScriptedResponse({"detail": "Model not found"}, status=404)
    steps = [beaten.optim_step(ADAM) for _ in range(3)]
    for step in steps:
        with pytest.raises(tw.SessionExpiredError, match="session s1: the server no longer has it"):
            step.result(PATIENCE_S)
    with pytest.raises(tw.SessionExpiredError):
        client.create_lora_training_client("base").result(PATIENCE_S)


def test_what_is_not_found_in_a_living_session_is_told_as_that(
    server: ScriptedServer, beaten: tw.TrainingClient
) -> None:
    """The server is asked for the session, and knows it."""
    server.rules["optim_step"] = lambda _: ScriptedResponse({"detail": "Model not found"}, status=404)
    beats = len(server.named("session_heartbeat"))
    with pytest.raises(tw.NotFoundError, match="Model not found"):
        beaten.optim_step(ADAM).result(PATIENCE_S)
    assert len(server.named("session_heartbeat")) > beats


def test_the_session_id_is_public(server: ScriptedServer) -> None:
    """It creates the session and waits for it, costs one request, and outlives the client."""
    with open_client(server.url) as client:
        assert client.session_id == client.session_id == "s1"
        assert len(server.named("create_session")) == 1
    assert client.session_id == "s1"


def test_a_session_that_cannot_be_created_has_no_id(server: ScriptedServer) -> None:
    """Its error is raised where the id is read, and a client that was closed before it had one says so."""
    server.rules["create_session"] = lambda _: ScriptedResponse(status=403)
    with open_client(server.url) as client, pytest.raises(tw.PermissionDeniedError):
        _ = client.session_id
    with pytest.raises(tw.ClientClosedError):
        _ = client.session_id
