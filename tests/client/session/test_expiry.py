"""Sessions that the server lets go of: a clear error, at once for all that belongs to them, and a clean close."""

from __future__ import annotations

import pickle

import pytest

import tinkerwire as tw
from support.clients import ADAM, FAST, PARAMS, PROMPT, open_client, wait_until
from support.scripted import PATIENCE_S, Gate, ScriptedResponse, ScriptedServer
from tinkerwire._session import heartbeat
from tinkerwire._transport.embedded import embedded_transport
from tinkerwire.local import EmbeddedServer

pytestmark = pytest.mark.timeout(60)
GONE = ScriptedResponse({"detail": "no sign of life"}, status=410)


@pytest.mark.parametrize("name", ["optim_step", "asample", "create_model", "create_sampling_session"])
def test_an_operation_that_is_refused_because_the_session_is_gone(
    server: ScriptedServer, client: tw.ServiceClient, name: str
) -> None:
    """410 to an operation is the session's end: the error names it, the server's words and the way out; no resend."""
    sampling = client.create_sampling_client(base_model="base").result(PATIENCE_S)
    training = client.create_lora_training_client("base").result(PATIENCE_S)
    server.rules[name] = lambda _: GONE
    before = len(server.named(name))
    with pytest.raises(tw.SessionExpiredError, match=r"session s1.*no sign of life.*new ServiceClient") as caught:
        {
            "optim_step": lambda: training.optim_step(ADAM),
            "asample": lambda: sampling.sample(PROMPT, 1, PARAMS),
            "create_model": lambda: client.create_lora_training_client("base"),
            "create_sampling_session": lambda: client.create_sampling_client(base_model="base"),
        }[name]().result(PATIENCE_S)
    assert len(server.named(name)) == before + 1
    assert caught.value.session_id == "s1"
    assert isinstance(caught.value.__cause__, tw.APIStatusError)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (type(copy), str(copy), copy.session_id) == (tw.SessionExpiredError, str(caught.value), "s1")


def test_a_heartbeat_that_is_answered_so(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After it operations are refused without a request; what needs no session goes on, and close says nothing."""
    monkeypatch.setattr(heartbeat, "HEARTBEAT_S", 0.02)
    with open_client(server.url, wire_version="0.38.0") as client:
        training = client.create_lora_training_client("base").result(PATIENCE_S)
        sampling = client.create_sampling_client(base_model="base").result(PATIENCE_S)
        server.rules["session_heartbeat"] = lambda _: GONE
        wait_until(lambda: client._connection.session_state.is_expired, "the heartbeat hears of it")
        for attempt in (training.optim_step(ADAM), sampling.sample(PROMPT, 1, PARAMS)):
            with pytest.raises(tw.SessionExpiredError, match="session s1"):
                attempt.result(PATIENCE_S)
        with pytest.raises(tw.SessionExpiredError):
            client.create_lora_training_client("base").result(PATIENCE_S)
        assert client.get_server_capabilities().supported_models
    assert not server.named("optim_step")
    assert not server.named("asample")
    assert not server.named("sessions/s1/finish")
    assert "has expired on the server" in caplog.text
    assert "could not be finished" not in caplog.text


def test_a_missing_checkpoint_is_no_expiry(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """410 to what belongs to no session, and before there is one, stays what it is."""
    server.rules["training_runs"] = lambda _: GONE
    server.rules["create_session"] = lambda _: GONE
    with pytest.raises(tw.APIStatusError, match="no sign of life"):
        client.create_rest_client().list_training_runs().result(PATIENCE_S)
    with pytest.raises(tw.APIStatusError, match="no sign of life"):
        client.create_lora_training_client("base").result(PATIENCE_S)


def test_a_real_server_that_lets_go() -> None:
    """A session without a heart expires on the embedded server, and training in it fails as expired."""
    now = [1000.0]
    with EmbeddedServer(session_ttl_s=60.0, clock=lambda: now[0]) as embedded:
        transport = embedded_transport(embedded)
        with tw.ServiceClient(base_url="local", transport=transport, retry=FAST) as client:
            training = client.create_lora_training_client("tinkerwire/byte-nano").result(PATIENCE_S)
            now[0] += 1000.0
            with pytest.raises(tw.SessionExpiredError, match="create_training_client_from_state_with_optimizer"):
                client.create_lora_training_client("tinkerwire/byte-nano").result(PATIENCE_S)
            with pytest.raises(tw.SessionExpiredError):
                training.optim_step(ADAM).result(PATIENCE_S)


def test_a_heartbeat_whose_session_is_not_known_any_longer(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """404 after heartbeats that were answered is the end, as after a restart; from the first one on it says nothing."""
    monkeypatch.setattr(heartbeat, "HEARTBEAT_S", 0.02)
    unknown = ScriptedResponse({"detail": "Session not found"}, status=404)
    server.rules["session_heartbeat"] = lambda _: unknown
    with open_client(server.url) as client:
        training = client.create_lora_training_client("base").result(PATIENCE_S)
        before = len(server.named("session_heartbeat"))
        wait_until(lambda: len(server.named("session_heartbeat")) > before + 2, "it beats on")
        training.optim_step(ADAM).result(PATIENCE_S)
        server.rules["session_heartbeat"] = server.healthy_response
        before = len(server.named("session_heartbeat"))
        wait_until(lambda: len(server.named("session_heartbeat")) > before + 2, "the session is known")
        server.rules["session_heartbeat"] = lambda _: unknown
        wait_until(lambda: client._connection.session_state.is_expired, "the heartbeat hears of it")
        with pytest.raises(tw.SessionExpiredError, match="new ServiceClient"):
            training.optim_step(ADAM).result(PATIENCE_S)


def test_a_heartbeat_that_hangs_delays_no_error(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A 404 to many operations is theirs, soon, where nobody says whether the session is gone."""
    monkeypatch.setattr(heartbeat, "HEARTBEAT_TIMEOUT_S", 1000.0)
    monkeypatch.setattr(heartbeat, "PROBE_TIMEOUT_S", 0.1)
    hold = Gate()
    server.rules["session_heartbeat"] = lambda _: ScriptedResponse({}, hold=hold)
    server.rules["asample"] = lambda _: ScriptedResponse({"detail": "no such sampler"}, status=404)
    with open_client(server.url) as client:
        sampling = client.create_sampling_client(base_model="base")
        for future in [sampling.sample(PROMPT, 1, PARAMS) for _ in range(20)]:
            with pytest.raises(tw.NotFoundError, match="no such sampler"):
                future.result(PATIENCE_S)
        assert len(server.named("session_heartbeat")) == 1
        hold.release()
