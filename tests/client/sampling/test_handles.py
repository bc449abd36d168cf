"""Handles and pickles of sampling clients: their contents, their copies in this process and in others."""

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
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer
from tinkerwire._sampling.handles import SamplerHandle
from tinkerwire._session import heartbeat

pytestmark = pytest.mark.timeout(120)
TESTS = Path(__file__).parents[2]


def decode(handle: str) -> dict[str, object]:
    """Return the JSON object in a handle."""
    state: dict[str, object] = json.loads(base64.urlsafe_b64decode(handle))
    return state


def encode(state: dict[str, object]) -> str:
    """Return the handle of a JSON object."""
    return base64.urlsafe_b64encode(json.dumps(state).encode()).decode()


def test_handle_holds_no_secrets(server: ScriptedServer) -> None:
    """A handle holds address, sessions, dialect and policy, but neither the key nor secret headers."""
    with open_client(server.url, default_headers_overrides={"x-secret": "hidden"}) as client:
        sampling = client.create_sampling_client(base_model="base", record_stability_info=True)
        handle = sampling.get_sampler_handle()
        pickled = pickle.dumps(sampling)
    decoded = SamplerHandle.decode(handle)
    assert (decoded.base_url, decoded.session_id, decoded.sampling_session_id) == (server.url, "s1", "sampler1")
    assert decoded.retry == FAST
    assert decoded.record_stability_info
    assert (decoded.dialect.min_version, decoded.dialect.max_version) == ("0.16.1", "0.16.1")
    for secret in (KEY, "hidden"):
        assert secret.encode() not in pickled
        assert secret not in json.dumps(decode(handle))


def test_handle_holds_dialect_and_retry_policy(server: ScriptedServer) -> None:
    """A handle holds the dialect of the server, with its flags, and the retry policy of the client unchanged."""
    policy = tw.RetryConfig(max_connections=None, progress_timeout=float("inf"))
    with open_client(server.url, wire_version="0.38.0", client_config={"sample_no_retries": True}) as client:
        sampling = client.create_sampling_client(base_model="base", retry_config=policy)
        decoded = SamplerHandle.decode(sampling.get_sampler_handle())
        assert decoded.dialect == client.dialect
        assert decoded.retry == policy


def test_handle_has_the_default_retryable_exceptions(server: ScriptedServer) -> None:
    """A handle cannot hold exception classes, but a pickled policy can."""
    policy = tw.RetryConfig(5, enable_stuck_detection=False, retryable_exceptions=(tw.NotFoundError,))
    with open_client(server.url) as client:
        sampling = client.create_sampling_client(base_model="base", retry_config=policy)
        decoded = SamplerHandle.decode(sampling.get_sampler_handle())
        assert decoded.retry == tw.RetryConfig(5, enable_stuck_detection=False)
        assert pickle.loads(pickle.dumps(policy)) == policy


def test_receiver_provides_the_key(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The receiver of a handle takes the key from the environment or the argument."""
    with open_client(server.url) as client:
        handle = client.create_sampling_client(base_model="base").get_sampler_handle()
    monkeypatch.setenv("TINKER_API_KEY", "tml-environment")
    tw.SamplingClient.from_sampler_handle(handle).sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
    tw.SamplingClient.from_sampler_handle(handle, api_key="tml-argument").sample(PROMPT, 1, PARAMS).result(
        TEST_TIMEOUT_S
    )
    keys = [request.headers.get("x-api-key") for request in server.named("asample")]
    assert keys == ["tml-environment", "tml-argument"]
    remote = decode(handle) | {"base_url": "https://example.invalid"}
    monkeypatch.delenv("TINKER_API_KEY")
    with pytest.raises(tw.TinkerError, match="no API key"):
        tw.SamplingClient.from_sampler_handle(encode(remote))


@pytest.mark.parametrize(
    "handle", ["", "not a handle", base64.urlsafe_b64encode(b'{"session_id": "s1"}').decode(), "e30="]
)
def test_invalid_handle_is_rejected(handle: str) -> None:
    """Text that is not a handle, and handles of the official SDK, raise an error that names get_sampler_handle."""
    with pytest.raises(ValueError, match="get_sampler_handle of this version"):
        tw.SamplingClient.from_sampler_handle(handle)


def test_client_of_the_embedded_server_cannot_be_pickled() -> None:
    """A client of the server in this process cannot be pickled; the error names ``tinkerwire serve``."""
    with tw.ServiceClient(base_url="local") as client:
        sampling = client.create_sampling_client(base_model="tinkerwire/byte-nano")
        with pytest.raises(ValueError, match="tinkerwire serve"):
            pickle.dumps(sampling)


def test_pickling_after_failed_creation_raises_its_error(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """Pickling a client whose creation failed raises the error of the creation."""
    server.rules["create_sampling_session"] = lambda _: ScriptedResponse(status=403)
    with pytest.raises(tw.PermissionDeniedError):
        pickle.dumps(client.create_sampling_client(base_model="base"))


def test_copies_share_a_connection_that_ends_with_the_last(
    server: ScriptedServer, client: tw.ServiceClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copies in one process share connection and heartbeat, which end with the last copy; the session does not end."""
    monkeypatch.setattr(heartbeat, "HEARTBEAT_S", 0.02)
    pickled = pickle.dumps(client.create_sampling_client(base_model="base"))
    client.close().result(TEST_TIMEOUT_S)
    wait_until(lambda: not loop_threads(), "the end of the thread of the service")
    beats = len(server.named("session_heartbeat"))
    first, second = pickle.loads(pickled), pickle.loads(pickled)
    assert first._connection is second._connection
    assert len(server.named("session_heartbeat")) == beats
    first.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
    server.wait_for_requests("session_heartbeat", beats + 3)
    del first
    pending = second.sample(PROMPT, 1, PARAMS)
    del second
    assert pending.result(TEST_TIMEOUT_S).sequences[0].tokens == [1, 2]
    wait_until(lambda: not loop_threads(), "the end of the thread of the copies")
    assert not server.named("sessions/s1/finish")


def test_copy_of_a_copy_has_the_same_handle(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """The handle of a copy equals the handle of the original."""
    original = client.create_sampling_client(base_model="base")
    clone = pickle.loads(pickle.dumps(original))
    assert clone.get_sampler_handle() == original.get_sampler_handle() == copy.copy(clone).get_sampler_handle()
    assert clone.sampling_session_id == "sampler1"
    assert clone.result(0) is clone


PROGRAM = """
import multiprocessing as mp, os, sys
from concurrent.futures import ProcessPoolExecutor
import tinkerwire as tw

PROMPT = tw.ModelInput.from_ints([1, 2])
PARAMS = tw.SamplingParams(max_tokens=4)

def sample(client, count):
    futures = [client.sample(PROMPT, 1, PARAMS) for _ in range(count)]
    return os.getpid(), [len(response.sequences) for response in tw.gather(futures).result(60)]

def sample_in_child(client, results):
    results.put(sample(client, 3))

if __name__ == "__main__":
    url, method = sys.argv[1:]
    context = mp.get_context(method)
    with tw.ServiceClient(base_url=url, api_key="tml-here") as service:
        client = service.create_sampling_client(base_model="tinkerwire/byte-nano").result(60)
        sample(client, 3)
        with ProcessPoolExecutor(2, mp_context=context) as pool:
            results = list(pool.map(sample, [client] * 6, [3] * 6))
        queue = context.Queue()
        child = context.Process(target=sample_in_child, args=(client, queue))
        child.start()
        results.append(queue.get(timeout=60))
        child.join(60)
        sample(client, 3)
    assert all(pid != os.getpid() and counts == [1, 1, 1] for pid, counts in results), results
    assert child.exitcode == 0, child.exitcode
    print("done")
"""


@pytest.mark.parametrize("method", ["spawn", "fork"])
@pytest.mark.parametrize("flags", [(), ("--flag", "sample_join_sampling_session=true")], ids=["random", "joined"])
def test_processes_sample_with_copied_clients(tmp_path: Path, method: str, flags: tuple[str, ...]) -> None:
    """Pool workers and a child process sample with pickled and forked clients, and so does the parent."""
    if method == "fork" and not hasattr(os, "fork"):
        pytest.skip("needs os.fork")
    program = tmp_path / "work.py"
    program.write_text(PROGRAM)
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
    assert (run.returncode, run.stdout) == (0, "done\n"), run.stderr
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


def read_last_sample_headers(server: ScriptedServer) -> dict[str, str]:
    """Return the headers of the last sample."""
    return {name.lower(): value for name, value in server.named("asample")[-1].headers.items()}


@pytest.mark.parametrize("form", ["handle", "pickle"])
def test_handle_holds_headers_without_a_credential(
    server: ScriptedServer, form: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A copy sends the headers without a credential; a warning names the others, which the copy lacks."""
    with open_client(server.url, default_headers_overrides={**SECRET_HEADERS, **SHARED_HEADERS}) as client:
        sampling = client.create_sampling_client(base_model="base")
        handle, pickled = sampling.get_sampler_handle(), pickle.dumps(sampling)
    for value in SECRET_HEADERS.values():
        assert value not in json.dumps(decode(handle))
        assert value.encode() not in pickled
        assert value not in base64.urlsafe_b64decode(handle).decode()
    from_handle = tw.SamplingClient.from_sampler_handle
    sampling_copy = from_handle(handle, api_key=KEY) if form == "handle" else pickle.loads(pickled)
    sampling_copy.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
    sent = read_last_sample_headers(server)
    assert {name.lower(): value for name, value in SHARED_HEADERS.items()}.items() <= sent.items()
    assert not {name.lower() for name in SECRET_HEADERS} - {"x-api-key"} & sent.keys()
    (record,) = [record for record in caplog.records if "it does not contain these headers" in record.message]
    assert "authorization, cf-access-client-secret, cookie" in record.message
    assert not any(value in record.message for value in SECRET_HEADERS.values())


def test_receiver_provides_secret_headers(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An argument or TINKERWIRE_HEADERS provides secret headers for handles, pickles and service clients."""
    headers = {"Authorization": "Bearer first", "x-route": "blue"}
    with open_client(server.url, default_headers_overrides=headers) as client:
        sampling = client.create_sampling_client(base_model="base")
        handle, pickled = sampling.get_sampler_handle(), pickle.dumps(sampling)
    secret_headers = {"authorization": "Bearer second"}
    copied = tw.SamplingClient.from_sampler_handle(handle, api_key=KEY, default_headers_overrides=secret_headers)
    copied.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
    assert (read_last_sample_headers(server)["authorization"], read_last_sample_headers(server)["x-route"]) == (
        "Bearer second",
        "blue",
    )
    monkeypatch.setenv("TINKERWIRE_HEADERS", "\nAuthorization: Bearer third\nx-route: red\n")
    pickle.loads(pickled).sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
    assert (read_last_sample_headers(server)["authorization"], read_last_sample_headers(server)["x-route"]) == (
        "Bearer third",
        "blue",
    )
    with open_client(server.url) as client:
        client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
    assert read_last_sample_headers(server)["authorization"] == "Bearer third"
    assert "it does not contain these headers" not in caplog.text


def test_malformed_headers_variable_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """An invalid line raises an error that names its number and does not show its text."""
    monkeypatch.setenv("TINKERWIRE_HEADERS", "x-a: 1\nhidden")
    with pytest.raises(ValueError, match="TINKERWIRE_HEADERS: line 2 must have the form") as caught:
        tw.ServiceClient(base_url="http://127.0.0.1:1")
    assert "hidden" not in str(caught.value)


def test_handle_without_headers_is_accepted(server: ScriptedServer) -> None:
    """A handle without headers is valid; a handle with malformed headers is not."""
    with open_client(server.url) as client:
        state = decode(client.create_sampling_client(base_model="base").get_sampler_handle())
    del state["headers"], state["omitted_headers"]
    assert SamplerHandle.decode(encode(state)).headers == {}
    malformed: list[dict[str, object]] = [{"headers": {"a": 1}}, {"headers": [1]}, {"omitted_headers": 5}]
    for fields in malformed:
        with pytest.raises(ValueError, match="handle:"):
            SamplerHandle.decode(encode({**state, **fields}))
