"""Sessions that expire on the server: the error is clear, holds for all operations of the session, and close works."""

from __future__ import annotations

import pickle

import pytest

import tinkerwire as tw
from support.clients import ADAM, FAST, PARAMS, PROMPT, open_client, wait_until
from support.scripted import TEST_TIMEOUT_S, Gate, ScriptedResponse, ScriptedServer
from tinkerwire._session import heartbeat
from tinkerwire._transport.embedded import embedded_transport
from tinkerwire.local import EmbeddedServer

pytestmark = pytest.mark.timeout(60)
EXPIRED = ScriptedResponse({"detail": "no sign of life"}, status=410)


@pytest.mark.parametrize("name", ["optim_step", "asample", "create_model", "create_sampling_session"])
def test_410_to_operation_raises_session_expired(server: ScriptedServer, client: tw.ServiceClient, name: str) -> None:
    """The error has the session, the server's text and the remedy; the operation is not resent."""
    sampling = client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)
    training = client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
    server.rules[name] = lambda _: EXPIRED
    before = len(server.named(name))
    with pytest.raises(tw.SessionExpiredError, match=r"session s1.*no sign of life.*new ServiceClient") as caught:
        {
            "optim_step": lambda: training.optim_step(ADAM),
            "asample": lambda: sampling.sample(PROMPT, 1, PARAMS),
            "create_model": lambda: client.create_lora_training_client("base"),
            "create_sampling_session": lambda: client.create_sampling_client(base_model="base"),
        }[name]().result(TEST_TIMEOUT_S)
    assert len(server.named(name)) == before + 1
    assert caught.value.session_id == "s1"
    assert isinstance(caught.value.__cause__, tw.APIStatusError)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (type(copy), str(copy), copy.session_id) == (tw.SessionExpiredError, str(caught.value), "s1")


def test_410_to_heartbeat_rejects_later_operations(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Later operations of the session are not sent; calls without a session work, and close logs nothing."""
    monkeypatch.setattr(heartbeat, "HEARTBEAT_S", 0.02)
    with open_client(server.url, wire_version="0.38.0") as client:
        training = client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
        sampling = client.create_sampling_client(base_model="base").result(TEST_TIMEOUT_S)
        server.rules["session_heartbeat"] = lambda _: EXPIRED
        wait_until(lambda: client._connection.session_state.is_expired, "a heartbeat shows the expiry")
        for attempt in (training.optim_step(ADAM), sampling.sample(PROMPT, 1, PARAMS)):
            with pytest.raises(tw.SessionExpiredError, match="session s1"):
                attempt.result(TEST_TIMEOUT_S)
        with pytest.raises(tw.SessionExpiredError):
            client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
        assert client.get_server_capabilities().supported_models
    assert not server.named("optim_step")
    assert not server.named("asample")
    assert not server.named("sessions/s1/finish")
    assert "has expired on the server" in caplog.text
    assert "could not be finished" not in caplog.text


def test_410_outside_session_is_not_expiry(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """A 410 to a call that belongs to no session stays an ordinary error."""
    server.rules["training_runs"] = lambda _: EXPIRED
    server.rules["create_session"] = lambda _: EXPIRED
    with pytest.raises(tw.APIStatusError, match="no sign of life"):
        client.create_rest_client().list_training_runs().result(TEST_TIMEOUT_S)
    with pytest.raises(tw.APIStatusError, match="no sign of life"):
        client.create_lora_training_client("base").result(TEST_TIMEOUT_S)


def test_embedded_server_expires_session_without_heartbeats() -> None:
    """Training in the expired session raises SessionExpiredError."""
    now = [1000.0]
    with EmbeddedServer(session_ttl_s=60.0, clock=lambda: now[0]) as embedded:
        transport = embedded_transport(embedded)
        with tw.ServiceClient(base_url="local", transport=transport, retry=FAST) as client:
            training = client.create_lora_training_client("tinkerwire/byte-nano").result(TEST_TIMEOUT_S)
            now[0] += 1000.0
            with pytest.raises(tw.SessionExpiredError, match="create_training_client_from_state_with_optimizer"):
                client.create_lora_training_client("tinkerwire/byte-nano").result(TEST_TIMEOUT_S)
            with pytest.raises(tw.SessionExpiredError):
                training.optim_step(ADAM).result(TEST_TIMEOUT_S)


def test_404_after_accepted_heartbeats_expires_session(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A 404 from the first heartbeat on means that the server has no heartbeats."""
    monkeypatch.setattr(heartbeat, "HEARTBEAT_S", 0.02)
    unknown = ScriptedResponse({"detail": "Session not found"}, status=404)
    server.rules["session_heartbeat"] = lambda _: unknown
    with open_client(server.url) as client:
        training = client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
        before = len(server.named("session_heartbeat"))
        wait_until(lambda: len(server.named("session_heartbeat")) > before + 2, "it beats on")
        training.optim_step(ADAM).result(TEST_TIMEOUT_S)
        server.rules["session_heartbeat"] = server.healthy_response
        before = len(server.named("session_heartbeat"))
        wait_until(lambda: len(server.named("session_heartbeat")) > before + 2, "the session is known")
        server.rules["session_heartbeat"] = lambda _: unknown
        wait_until(lambda: client._connection.session_state.is_expired, "a heartbeat shows the expiry")
        with pytest.raises(tw.SessionExpiredError, match="new ServiceClient"):
            training.optim_step(ADAM).result(TEST_TIMEOUT_S)


def test_hanging_heartbeat_does_not_delay_errors(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations raise their own 404 soon if no heartbeat shows whether the session is lost."""
    monkeypatch.setattr(heartbeat, "HEARTBEAT_TIMEOUT_S", 1000.0)
    monkeypatch.setattr(heartbeat, "PROBE_TIMEOUT_S", 0.1)
    gate = Gate()
    server.rules["session_heartbeat"] = lambda _: ScriptedResponse({}, gate=gate)
    server.rules["asample"] = lambda _: ScriptedResponse({"detail": "no such sampler"}, status=404)
    with open_client(server.url) as client:
        sampling = client.create_sampling_client(base_model="base")
        for future in [sampling.sample(PROMPT, 1, PARAMS) for _ in range(20)]:
            with pytest.raises(tw.NotFoundError, match="no such sampler"):
                future.result(TEST_TIMEOUT_S)
        assert len(server.named("session_heartbeat")) == 1
        gate.release()
