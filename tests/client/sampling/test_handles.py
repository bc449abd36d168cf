"""Sampling clients that cross processes: what travels, what does not, and that nothing is left behind."""

from __future__ import annotations

import base64
import copy
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import tinkerwire as tw
from support.clients import FAST, KEY, PARAMS, PROMPT, loop_threads, open_client, wait_until
from support.embedded import embedded_http_server
from support.scripted import PATIENCE_S, ScriptedServer
from tinkerwire._sampling.handles import SamplerHandle
from tinkerwire._session import heartbeat

pytestmark = pytest.mark.timeout(120)
TESTS = Path(__file__).parents[2]


def state_of(handle: str) -> dict[str, object]:
    """What a handle says."""
    found: dict[str, object] = json.loads(base64.urlsafe_b64decode(handle))
    return found


def test_what_a_handle_says(server: ScriptedServer) -> None:
    """Address, session, sampling session, dialect and policy; neither the key nor secret headers."""
    with open_client(server.url, default_headers_overrides={"x-secret": "hidden"}) as client:
        sampling = client.create_sampling_client(base_model="base", record_stability_info=True)
        handle = sampling.get_sampler_handle()
        pickled = pickle.dumps(sampling)
    decoded = SamplerHandle.decode(handle)
    assert (decoded.base_url, decoded.session_id, decoded.sampling_session_id) == (server.url, "s1", "sampler1")
    assert decoded.retry == FAST
    assert decoded.record_stability_info
    assert (decoded.dialect.floor, decoded.dialect.ceiling) == ("0.16.1", "0.16.1")
    for secret in (KEY, "hidden"):
        assert secret.encode() not in pickled
        assert secret not in json.dumps(state_of(handle))


def test_a_copy_brings_the_servers_wishes_and_its_own_policy(server: ScriptedServer) -> None:
    """Flags of the server, what is known of its bodies, and the policy of this client arrive as they were."""
    policy = tw.RetryConfig(max_connections=None, progress_timeout=float("inf"))
    with open_client(server.url, wire_version="0.38.0", client_config={"sample_no_retries": True}) as client:
        sampling = client.create_sampling_client(base_model="base", retry_config=policy)
        decoded = SamplerHandle.decode(sampling.get_sampler_handle())
        assert decoded.dialect == client.dialect
        assert decoded.retry == policy


def test_a_handle_has_the_default_retryable_exceptions(server: ScriptedServer) -> None:
    """Classes are no text; a pickled client keeps them."""
    policy = tw.RetryConfig(5, enable_stuck_detection=False, retryable_exceptions=(tw.NotFoundError,))
    with open_client(server.url) as client:
        sampling = client.create_sampling_client(base_model="base", retry_config=policy)
        decoded = SamplerHandle.decode(sampling.get_sampler_handle())
        assert decoded.retry == tw.RetryConfig(5, enable_stuck_detection=False)
        assert pickle.loads(pickle.dumps(policy)) == policy


def test_the_receiver_finds_its_own_key(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key is that of the environment or of the argument, and goes into no handle."""
    with open_client(server.url) as client:
        handle = client.create_sampling_client(base_model="base").get_sampler_handle()
    monkeypatch.setenv("TINKER_API_KEY", "tml-from-the-environment")
    tw.SamplingClient.from_sampler_handle(handle).sample(PROMPT, 1, PARAMS).result(PATIENCE_S)
    tw.SamplingClient.from_sampler_handle(handle, api_key="tml-given").sample(PROMPT, 1, PARAMS).result(PATIENCE_S)
    keys = [asked.headers.get("x-api-key") for asked in server.named("asample")]
    assert keys == ["tml-from-the-environment", "tml-given"]
    far = state_of(handle) | {"base_url": "https://example.invalid"}
    monkeypatch.delenv("TINKER_API_KEY")
    with pytest.raises(tw.TinkerError, match="no API key"):
        tw.SamplingClient.from_sampler_handle(base64.urlsafe_b64encode(json.dumps(far).encode()).decode())


@pytest.mark.parametrize(
    "handle", ["", "no handle", base64.urlsafe_b64encode(b'{"session_id": "s1"}').decode(), "e30="]
)
def test_what_is_no_handle(handle: str) -> None:
    """Other text is refused by a clear error, the official SDK's handles as well."""
    with pytest.raises(ValueError, match="get_sampler_handle of this version"):
        tw.SamplingClient.from_sampler_handle(handle)


def test_the_embedded_server_stays_at_home() -> None:
    """A client of the server in this process says that it cannot leave, and how one could."""
    with tw.ServiceClient(base_url="local") as client:
        sampling = client.create_sampling_client(base_model="tinkerwire/byte-nano")
        with pytest.raises(ValueError, match="tinkerwire serve"):
            pickle.dumps(sampling)


def test_a_client_that_was_not_created_has_no_handle(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """The error of the creation, not one of pickling."""
    server.rules["create_sampling_session"] = lambda asked: server.healthy_response(asked).__class__(status=403)
    with pytest.raises(tw.PermissionDeniedError):
        pickle.dumps(client.create_sampling_client(base_model="base"))


def test_copies_share_a_connection_and_leave_nothing(
    server: ScriptedServer, client: tw.ServiceClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copies in one process share connection and heart; with the last of them all of it ends, the session does not."""
    monkeypatch.setattr(heartbeat, "HEARTBEAT_S", 0.02)
    pickled = pickle.dumps(client.create_sampling_client(base_model="base"))
    client.close().result(PATIENCE_S)
    wait_until(lambda: not loop_threads(), "the thread of the service ends")
    beats = len(server.named("session_heartbeat"))
    first, second = pickle.loads(pickled), pickle.loads(pickled)
    assert first._connection is second._connection
    assert len(server.named("session_heartbeat")) == beats
    first.sample(PROMPT, 1, PARAMS).result(PATIENCE_S)
    server.wait_for_requests("session_heartbeat", beats + 3)
    del first
    pending = second.sample(PROMPT, 1, PARAMS)
    del second
    assert pending.result(PATIENCE_S).sequences[0].tokens == [1, 2]
    wait_until(lambda: not loop_threads(), "the thread of the copies ends")
    assert not server.named("sessions/s1/finish")


def test_a_copy_of_a_copy_follows_the_same_session(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """A copy can be sent on; it says the same again."""
    original = client.create_sampling_client(base_model="base")
    clone = pickle.loads(pickle.dumps(original))
    assert clone.get_sampler_handle() == original.get_sampler_handle() == copy.copy(clone).get_sampler_handle()
    assert clone.sampling_session_id == "sampler1"
    assert clone.result(0) is clone


WORK = """
import multiprocessing as mp, os, sys
from concurrent.futures import ProcessPoolExecutor
import tinkerwire as tw

PROMPT = tw.ModelInput.from_ints([1, 2])
PARAMS = tw.SamplingParams(max_tokens=4)

def draw(client, number):
    futures = [client.sample(PROMPT, 1, PARAMS) for _ in range(number)]
    return os.getpid(), [len(r.sequences) for r in tw.gather(futures).result(60)]

def inherited(client, answers):
    answers.put(draw(client, 3))

if __name__ == "__main__":
    url, method = sys.argv[1:]
    context = mp.get_context(method)
    with tw.ServiceClient(base_url=url, api_key="tml-here") as service:
        client = service.create_sampling_client(base_model="tinkerwire/byte-nano").result(60)
        draw(client, 3)
        with ProcessPoolExecutor(2, mp_context=context) as pool:
            found = list(pool.map(draw, [client] * 6, [3] * 6))
        answers = context.Queue()
        child = context.Process(target=inherited, args=(client, answers))
        child.start()
        found.append(answers.get(timeout=60))
        child.join(60)
        draw(client, 3)
    assert all(pid != os.getpid() and parts == [1, 1, 1] for pid, parts in found), found
    assert child.exitcode == 0, child.exitcode
    print("all is well")
"""


@pytest.mark.parametrize("method", ["spawn", "fork"])
@pytest.mark.parametrize("flags", [(), ("--flag", "sample_join_sampling_session=true")], ids=["chance", "joined"])
def test_real_processes(tmp_path: Path, method: str, flags: tuple[str, ...]) -> None:
    """Workers of a pool and a process of its own sample, by pickle and by fork, while the parent does."""
    if method == "fork" and not hasattr(os, "fork"):
        pytest.skip("forks")
    program = tmp_path / "work.py"
    program.write_text(WORK)
    path = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, "TINKER_API_KEY": "tml-there"}
    with embedded_http_server("--wire", "0.38.0", *flags) as url:
        run = subprocess.run(
            [sys.executable, str(program), url, method],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
            env=environment,
        )
    assert (run.returncode, run.stdout) == (0, "all is well\n"), run.stderr
    assert "Traceback" not in run.stderr


SECRET_HEADERS = {
    "Authorization": "Bearer abcdef",
    "Cookie": "a=b",
    "X-API-Key": "a key",
    "Cf-Access-Client-Secret": "hidden",
    "x-gateway-token": "hidden",
    "x-note": "tml-abcdef0123",
    "x-other": "Basic dXNlcg==",
    "x-trace": "0123456789abcdef0123456789abcdef",
    "x-proxy": "http://user:word@proxy",
    "x-jwt-like": "eyJhbGciOi.eyJzdWIi.abc",
}
SHARED_HEADERS = {"X-Route": "blue/green-7", "x-org": "research", "User-Agent": "study/1.0 (Linux; x86_64)"}


def sampled_with(server: ScriptedServer) -> dict[str, str]:
    """The headers of the last sample."""
    return {name.lower(): value for name, value in server.named("asample")[-1].headers.items()}


@pytest.mark.parametrize("by", ["handle", "pickle"])
def test_headers_without_a_credential_travel(server: ScriptedServer, by: str, caplog: pytest.LogCaptureFixture) -> None:
    """A copy sends them as the client did; those with a credential stay behind, and are named."""
    with open_client(server.url, default_headers_overrides={**SECRET_HEADERS, **SHARED_HEADERS}) as client:
        sampling = client.create_sampling_client(base_model="base")
        handle, pickled = sampling.get_sampler_handle(), pickle.dumps(sampling)
    for value in SECRET_HEADERS.values():
        assert value not in json.dumps(state_of(handle))
        assert value.encode() not in pickled
        assert value not in base64.urlsafe_b64decode(handle).decode()
    make = tw.SamplingClient.from_sampler_handle
    found = make(handle, api_key=KEY) if by == "handle" else pickle.loads(pickled)
    found.sample(PROMPT, 1, PARAMS).result(PATIENCE_S)
    sent = sampled_with(server)
    assert {name.lower(): value for name, value in SHARED_HEADERS.items()}.items() <= sent.items()
    assert not {name.lower() for name in SECRET_HEADERS} - {"x-api-key"} & sent.keys()
    (record,) = [record for record in caplog.records if "it does not contain these headers" in record.message]
    assert "authorization, cf-access-client-secret, cookie" in record.message
    assert not any(value in record.message for value in SECRET_HEADERS.values())


def test_the_other_process_gives_secret_headers(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By an argument, or by TINKERWIRE_HEADERS, which pickles and services use, too; then nothing is missing."""
    headers = {"Authorization": "Bearer first", "x-route": "blue"}
    with open_client(server.url, default_headers_overrides=headers) as client:
        sampling = client.create_sampling_client(base_model="base")
        handle, pickled = sampling.get_sampler_handle(), pickle.dumps(sampling)
    own = {"authorization": "Bearer second"}
    copied = tw.SamplingClient.from_sampler_handle(handle, api_key=KEY, default_headers_overrides=own)
    copied.sample(PROMPT, 1, PARAMS).result(PATIENCE_S)
    assert (sampled_with(server)["authorization"], sampled_with(server)["x-route"]) == ("Bearer second", "blue")
    monkeypatch.setenv("TINKERWIRE_HEADERS", "\nAuthorization: Bearer third\nx-route: red\n")
    pickle.loads(pickled).sample(PROMPT, 1, PARAMS).result(PATIENCE_S)
    assert (sampled_with(server)["authorization"], sampled_with(server)["x-route"]) == ("Bearer third", "blue")
    with open_client(server.url) as client:
        client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS).result(PATIENCE_S)
    assert sampled_with(server)["authorization"] == "Bearer third"
    assert "it does not contain these headers" not in caplog.text


def test_headers_of_the_environment_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of another form is refused by its number, and not shown."""
    monkeypatch.setenv("TINKERWIRE_HEADERS", "x-a: 1\nhidden")
    with pytest.raises(ValueError, match="TINKERWIRE_HEADERS: line 2 is not of the form") as found:
        tw.ServiceClient(base_url="http://127.0.0.1:1")
    assert "hidden" not in str(found.value)


def test_an_older_handle_has_no_headers(server: ScriptedServer) -> None:
    """It is read as before; odd headers are refused."""
    with open_client(server.url) as client:
        state = state_of(client.create_sampling_client(base_model="base").get_sampler_handle())
    del state["headers"], state["omitted_headers"]
    text = base64.urlsafe_b64encode(json.dumps(state).encode()).decode()
    assert SamplerHandle.decode(text).headers == {}
    for odd in ({"headers": {"a": 1}}, {"headers": [1]}, {"omitted_headers": 5}):
        text = base64.urlsafe_b64encode(json.dumps({**state, **odd}).encode()).decode()
        with pytest.raises(ValueError, match="handle:"):
            SamplerHandle.decode(text)
