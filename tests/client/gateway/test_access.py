"""Keys, hosts, errors of the gateway itself, and what its files hold."""

from __future__ import annotations

import logging
from pathlib import Path

import httpx
import orjson
import pytest

from support.gateway_clients import Client, Upstreams, json_response, value_of
from tinkerwire._gateway.memory import Memory
from tinkerwire._gateway.trace import GatewayTrace
from tinkerwire.gateway import Gateway
from tinkerwire.testing import FaultInjection, LocalServer
from tinkerwire_base.call import WireRequest, WireResponse
from tinkerwire_base.errors import APIConnectionError, APITimeoutError, RequestInfo

STEP = {"model_id": "m", "seq_id": 1, "adam_params": {}, "type": "optim_step"}
SECRET = "tml-secret-of-upstream"


def test_own_key_replaces_that_of_clients(upstream: Upstreams) -> None:
    upstream.answers["optim_step"] = json_response({"request_id": "r"})
    client = Client(upstream, api_key=SECRET, client_key="tml-client-key")
    assert client.post("optim_step", STEP, "0.16.1", {"Authorization": "Bearer b"}).status == 200
    (sent,) = upstream.requests
    assert sent.headers["x-api-key"] == SECRET
    assert "authorization" not in sent.headers


@pytest.mark.parametrize("key", ["", "other", SECRET])
def test_other_keys_are_rejected(upstream: Upstreams, key: str) -> None:
    client = Client(upstream, api_key=SECRET, client_key="tml-client-key")
    response = client.post("optim_step", STEP, "0.16.1", {"X-API-Key": key})
    assert response.status == 401
    assert SECRET not in response.content.decode()
    assert not upstream.requests


def test_own_key_turns_off_tokens(upstream: Upstreams) -> None:
    upstream.answers["client/config"] = json_response({"pjwt_auth_enabled": True, "credential_default_source": "jwt"})
    client = Client(upstream, None, api_key=SECRET, client_key="tml-client-key")
    flags = value_of(client.post("client/config", {"sdk_version": "0.38.0"}, "0.38.0"))
    assert (flags["pjwt_auth_enabled"], flags["credential_default_source"]) == (False, "api_key")
    assert client.post("auth/token", {}, "0.38.0").status == 404


def test_upstreams_401_passes_from_discovery(upstream: Upstreams) -> None:
    """The next client may have another key."""
    upstream.answers["client/config"] = json_response({"detail": "who are you"}, 401)
    upstream.answers["optim_step"] = json_response({"request_id": "r"})
    client = Client(upstream, None)
    refused = client.post("optim_step", STEP, "0.16.1")
    assert (refused.status, value_of(refused)) == (401, {"detail": "who are you"})
    upstream.answers["client/config"] = json_response({})
    assert client.post("optim_step", STEP, "0.16.1").status == 200


@pytest.mark.parametrize("status", [400, 409, 410, 422])
def test_other_statuses_of_discovery_are_not_those_of_the_request(upstream: Upstreams, status: int) -> None:
    """A poll with status 409 or 410 would end the wait for its result."""
    upstream.answers["client/config"] = json_response({"detail": "its text"}, status)
    response = Client(upstream, None).post("retrieve_future", {"request_id": "r"}, "0.38.0")
    assert response.status == 502
    assert "its text" in value_of(response)["detail"]


@pytest.mark.parametrize("kind", [APIConnectionError, APITimeoutError])
def test_unreachable_upstream_is_a_502_that_names_the_gateway(
    upstream: Upstreams, kind: type[APIConnectionError]
) -> None:
    def fail(request: WireRequest) -> WireResponse:
        raise kind(RequestInfo(method="POST", url="http://upstream.test"), "no route")

    upstream.answers["optim_step"] = fail
    response = Client(upstream).post("optim_step", STEP, "0.16.1")
    assert response.status == 502
    assert value_of(response)["detail"].startswith("tinkerwire gateway: ")


def test_upstream_is_discovered_again_after_a_failure(upstream: Upstreams) -> None:
    def fail(request: WireRequest) -> WireResponse:
        raise APIConnectionError(RequestInfo(method="POST", url="http://upstream.test"), "gone")

    client = Client(upstream, None)
    upstream.answers["optim_step"] = fail
    assert client.post("optim_step", STEP, "0.16.1").status == 502
    upstream.answers["optim_step"] = json_response({"request_id": "r"})
    assert client.post("optim_step", STEP, "0.16.1").status == 200
    assert len(upstream.named("client/config")) == 2


@pytest.mark.parametrize("status", [400, 402, 404, 409, 413, 422, 429, 500, 503])
def test_errors_of_the_upstream_pass(upstream: Upstreams, status: int) -> None:
    upstream.answers["optim_step"] = json_response({"detail": "its text"}, status, retry_after="3", x_should_retry="no")
    response = Client(upstream).post("optim_step", STEP, "0.16.1")
    assert (response.status, value_of(response)) == (status, {"detail": "its text"})
    assert (response.headers["retry-after"], response.headers["x-should-retry"]) == ("3", "no")


def test_keys_reach_no_file_and_no_log(upstream: Upstreams, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def fail(request: WireRequest) -> WireResponse:
        raise RuntimeError(f"key {request.headers['x-api-key']}")

    caplog.set_level(logging.INFO)
    upstream.answers["optim_step"] = fail
    upstream.answers["create_session"] = json_response({"session_id": "s"})
    trace, state = tmp_path / "trace.jsonl", tmp_path / "state.sqlite3"
    client = Client(upstream, trace=GatewayTrace(trace), memory=Memory(state))
    response = client.post("optim_step", STEP, "0.16.1")
    session = {"tags": [], "user_metadata": None, "sdk_version": "0.16.1"}
    assert client.post("create_session", session).status == 200
    assert response.status == 502
    client.close()
    texts = [response.content.decode(), caplog.text, trace.read_text()]
    texts += [file.read_bytes().decode("latin-1") for file in tmp_path.iterdir()]
    assert not any("tml-client-key" in text for text in texts)
    assert "optim_step" in trace.read_text()


def test_trace_has_a_line_for_each_request(upstream: Upstreams, tmp_path: Path) -> None:
    upstream.answers["optim_step"] = json_response({"request_id": "r"})
    trace = tmp_path / "trace.jsonl"
    client = Client(upstream, "0.4.1", trace=GatewayTrace(trace))
    client.post("optim_step", STEP, "0.16.1")
    client.post("optim_step", STEP, "0.4.1")
    client.close()
    first, second = map(orjson.loads, trace.read_bytes().splitlines())
    assert (first["operation"], first["wire"], first["upstream"]) == ("optim_step", "0.16.1", "0.4.1")
    assert (first["form"], second["form"], second["status"]) == ("translated", "passed", 200)


def test_hosts_of_other_sites_are_rejected() -> None:
    with LocalServer() as server, Gateway(to=server.url, allowed_hosts=["gpu.example.org"]) as gateway:
        url = f"{gateway.url}/api/v1/healthz"
        assert httpx.get(url).status_code == 200
        assert httpx.get(url, headers={"host": "gpu.example.org"}).status_code == 200
        rejected = httpx.get(url, headers={"host": "evil.example.org"})
        assert rejected.status_code == 421
        assert "tinkerwire gateway --allow-host" in rejected.json()["detail"]
        assert httpx.get(url, headers={"origin": "http://evil.example.org"}).status_code == 403


def test_own_key_generates_a_client_key() -> None:
    with LocalServer() as server, Gateway(to=server.url, api_key=SECRET) as gateway:
        assert gateway.client_key is not None
        url = f"{gateway.url}/api/v1/get_server_capabilities"
        assert httpx.get(url, headers={"x-api-key": gateway.client_key}).status_code == 200
        assert httpx.get(url, headers={"x-api-key": SECRET}).status_code == 401
        assert SECRET not in repr(gateway)


def test_faults_are_injected_into_responses_to_clients() -> None:
    faults = FaultInjection()
    with LocalServer() as server, Gateway(to=server.url, fault_injection=faults) as gateway:
        faults.fail_next(503)
        url = f"{gateway.url}/api/v1/healthz"
        assert [httpx.get(url).status_code for _ in range(2)] == [503, 200]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"to": "upstream"}, "to: 'upstream' is not an http"),
        ({"to": "http://127.0.0.1:1", "to_wire": "9.0.0"}, "to_wire: .*9.0.0 is unknown"),
        ({"to": "http://127.0.0.1:1", "to_wire": "x"}, "to_wire"),
        ({"to": "http://127.0.0.1:1", "speak": "0.1.0"}, "speak: wire version must be 0.3.0 or newer"),
    ],
)
def test_invalid_arguments_are_named(options: dict[str, str], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Gateway(**options)  # type: ignore[arg-type]


def test_key_is_not_sent_in_clear_text_to_another_machine() -> None:
    with pytest.raises(RuntimeError) as caught:
        Gateway(to="http://192.0.2.1:80")
    assert "plain http" in str(caught.value.__cause__)
