"""Tests of API keys and headers: their sources, their checks, and the requests that contain them."""

from __future__ import annotations

import traceback

import pytest

import tinkerwire as tw
from support.clients import ADAM, KEY, PARAMS, PROMPT, open_client
from support.scripted import TEST_TIMEOUT_S, ScriptedServer
from tinkerwire._credentials.secret import Secret
from tinkerwire._credentials.sources import StaticCredential, resolve_credential

pytestmark = pytest.mark.timeout(60)


def test_every_request_has_the_key(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """Requests of every kind have the header X-API-Key, and never Authorization."""
    client.create_lora_training_client("base").optim_step(ADAM).result(TEST_TIMEOUT_S)
    client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
    client.create_rest_client().list_training_runs().result(TEST_TIMEOUT_S)
    assert len({request.name for request in server.requests}) >= 7
    assert {request.headers["x-api-key"] for request in server.requests} == {KEY}
    assert not any("authorization" in request.headers for request in server.requests)


def test_arguments_override_the_environment(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """TINKER_API_KEY and TINKER_BASE_URL replace only missing or empty arguments."""
    monkeypatch.setenv("TINKER_API_KEY", "from-environment")
    monkeypatch.setenv("TINKER_BASE_URL", server.url + "/")
    for options in ({}, {"api_key": "", "base_url": ""}, {"api_key": "from-argument"}):
        with tw.ServiceClient(**options) as client:
            client.get_server_capabilities()
    keys = [request.headers["x-api-key"] for request in server.named("get_server_capabilities")]
    assert keys == ["from-environment"] * 2 + ["from-argument"]
    monkeypatch.setenv("TINKER_BASE_URL", "http://127.0.0.1:1")
    with tw.ServiceClient(base_url=server.url) as client:
        client.get_server_capabilities()
    assert len(server.named("get_server_capabilities")) == 4


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "http://LOCALHOST:1", "http://127.8.0.1:1"],
)
def test_loopback_address_needs_no_key(address: str) -> None:
    """A key is optional for a server on this machine, and may be sent over plain HTTP."""
    assert resolve_credential(None, address) is None
    assert isinstance(resolve_credential(KEY, address), StaticCredential)


def test_remote_address_needs_a_key(server: ScriptedServer) -> None:
    """A client without a key sends no header; for a remote server, the error names the sources of a key."""
    with tw.ServiceClient(base_url=server.url) as client:
        client.get_server_capabilities()
    assert "x-api-key" not in server.requests[0].headers
    with pytest.raises(tw.TinkerError, match=r"api_key=.*TINKER_API_KEY.*local"):
        tw.ServiceClient(base_url="https://example.org")
    assert resolve_credential(KEY, "local") is None


@pytest.mark.parametrize("key", [f"{KEY} ", f" {KEY}", f"{KEY}\n", f"{KEY}\x00", f"{KEY}\u2011x", f"{KEY}é"])
def test_key_with_invalid_characters_raises(key: str) -> None:
    """A key with spaces, control or non-ASCII characters raises an error that does not show the key."""
    with pytest.raises(tw.TinkerError, match="copy it again") as caught:
        tw.ServiceClient(base_url="https://example.org", api_key=key)
    assert KEY not in "".join(traceback.format_exception(caught.value))


def test_default_headers_overrides_are_on_every_request(server: ScriptedServer) -> None:
    """The headers in default_headers_overrides do not replace the key."""
    with open_client(server.url, default_headers_overrides={"CF-Access-Client-Id": "c", "X-Api-Key": "z"}) as client:
        client.create_lora_training_client("base").optim_step(ADAM).result(TEST_TIMEOUT_S)
    assert {request.headers["cf-access-client-id"] for request in server.requests} == {"c"}
    assert {request.headers["x-api-key"] for request in server.requests} == {KEY}


def test_cloudflare_headers_of_the_environment_are_sent(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every request has the headers; an argument overrides them in any letter case, and no repr shows the secret."""
    monkeypatch.setenv("CLOUDFLARE_ACCESS_CLIENT_ID", "id")
    monkeypatch.setenv("CLOUDFLARE_ACCESS_CLIENT_SECRET", "cf-secret")
    with open_client(
        server.url, wire_version=None, default_headers_overrides={"CF-Access-Client-ID": "mine"}
    ) as client:
        client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
        for owner in (
            client,
            client._connection,
            client._connection.codec._headers,
            client._connection._authorization.headers,
        ):
            assert "cf-secret" not in repr(owner)
    assert {request.headers["cf-access-client-id"] for request in server.requests} == {"mine"}
    assert {request.headers["cf-access-client-secret"] for request in server.requests} == {"cf-secret"}
    monkeypatch.setenv("CLOUDFLARE_ACCESS_CLIENT_ID", "")
    with open_client(server.url) as client:
        client.get_server_capabilities()
    assert "cf-access-client-id" not in server.requests[-1].headers


@pytest.mark.parametrize(
    ("name", "value"),
    [("x", f"{KEY}\nx: y"), ("x", f"{KEY}\0"), ("x", f"{KEY}é"), ("a b", KEY), ("a:", KEY), ("", KEY)],
)
def test_invalid_header_raises_in_the_constructor(name: str, value: str) -> None:
    """The error names the header and does not show its value."""
    with pytest.raises(ValueError, match=f"header '{name}'") as caught:
        tw.ServiceClient(base_url="local", default_headers_overrides={name: value})
    assert KEY not in "".join(traceback.format_exception(caught.value))
    with pytest.raises(TypeError, match="expected a value of type str, got Secret"):
        tw.ServiceClient(base_url="local", default_headers_overrides={"x": Secret(KEY)})  # type: ignore[dict-item]
