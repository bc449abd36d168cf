"""Tests of API keys and headers: their sources, their checks, and the requests that contain them."""

from __future__ import annotations

import asyncio
import traceback
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import ADAM, KEY, PARAMS, PROMPT, open_client
from support.scripted import TEST_TIMEOUT_S, ScriptedServer
from support.tokens import token
from tinkerwire._credentials.authorization import Authorization
from tinkerwire._credentials.secret import Secret
from tinkerwire._credentials.sources import (
    StaticCredential,
    read_api_key,
    read_environment_headers,
    resolve_credential,
)
from tinkerwire_base.call import ResponseLimits, WireRequest, WireResponse

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


@pytest.mark.parametrize(
    ("headers", "kind", "pattern"),
    [
        ({3: "x"}, TypeError, "default_headers_overrides: expected names of type str, got int"),
        ({"x-a": 3}, TypeError, "header 'x-a': expected a value of type str, got int"),
        ({"x a": "y"}, ValueError, "header 'x a': the name must be printable ASCII"),
        ({"x:a": "y"}, ValueError, "header 'x:a': the name must be printable ASCII"),
        ({"Content-Length": "3"}, ValueError, "header 'Content-Length': the client sets this header itself"),
        ({"x-a": "y\n"}, ValueError, "header 'x-a': the value must be printable ASCII"),
        ({"x-a": "\xe9"}, ValueError, "header 'x-a': the value must be printable ASCII"),
    ],
)
def test_invalid_header_is_named_without_its_value(headers: Any, kind: type[Exception], pattern: str) -> None:
    """The error has the name of the header and the reason."""
    with pytest.raises(kind, match=f"^{pattern}"):
        Authorization(None, headers, no_exchange)


async def no_exchange() -> Secret:
    """Fail, because no test here exchanges a key."""
    raise AssertionError("no exchange")


def test_signed_request_has_all_headers_and_the_key() -> None:
    """The headers of the request take precedence, and secrets are known to the redaction."""
    authorization = Authorization(None, {"X-A": "secret-header", "x-b": "2", "User-Agent": "my-agent"}, no_exchange)
    limits = ResponseLimits(result=None, error=None)
    request = WireRequest(method="POST", path="/x", headers={"x-b": "own"}, content=b"")
    signed = authorization.sign(request, Secret("a-long-key"), limits)
    assert signed.headers == {"x-a": "secret-header", "x-b": "own", "user-agent": "my-agent", "x-api-key": "a-long-key"}
    assert signed.limits is limits
    assert authorization.redaction.redact_text("secret-header a-long-key my-agent") == "*** *** my-agent"
    assert "x-api-key" not in authorization.sign(request, None, limits).headers


def test_only_keys_that_are_tokens_of_the_service_identify_the_user() -> None:
    """An API key, another token, and a client without a credential have no token."""
    config = tw.types.ClientConfigResponse(pjwt_auth_enabled=False)

    def read(secret: str | None) -> Secret | None:
        credential = None if secret is None else StaticCredential(Secret(secret))
        return asyncio.run(Authorization(credential, {}, no_exchange).token(config))

    own = read(token(1000, iss="passport-prod"))
    assert own is not None
    assert own.claim("iss") == "passport-prod"
    for other in (None, "tml-key", token(1000), token(1000, iss="another")):
        assert read(other) is None


def test_rejected_key_has_no_replacement() -> None:
    """Only a 401 looks for another credential, and a static key is never replaced."""
    credential = StaticCredential(Secret("tml-key"))
    authorization = Authorization(credential, {}, no_exchange)
    for status in (401, 403):
        response = WireResponse(status=status, headers={}, content=b"")
        assert asyncio.run(authorization.retry_credential(credential, credential.secret, response)) is None
    with pytest.raises(tw.TinkerError, match="the API key is a JWT that has expired"):
        asyncio.run(StaticCredential(Secret(token(-5))).get())
    asyncio.run(authorization.close())


def test_headers_of_the_environment_are_read_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are lower case, values may contain colons, and an error names the line without its content."""
    monkeypatch.setenv("CLOUDFLARE_ACCESS_CLIENT_ID", "id")
    monkeypatch.setenv("TINKERWIRE_HEADERS", "X-A:  b:c \n\nCF-Access-Client-Id: mine\nempty:")
    assert read_environment_headers() == {"cf-access-client-id": "mine", "x-a": "b:c", "empty": ""}
    for text in ("x-a: 1\nsecret", "x-a: 1\n : secret"):
        monkeypatch.setenv("TINKERWIRE_HEADERS", text)
        with pytest.raises(ValueError, match=r"^TINKERWIRE_HEADERS: line 2 must have the form 'Name: value'$"):
            read_environment_headers()


def test_argument_precedes_environment_and_empty_keys_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that cannot be sent raises."""
    monkeypatch.setenv("TINKER_API_KEY", "of-the-environment")
    for argument, expected in (("given", "given"), ("", "of-the-environment"), (None, "of-the-environment")):
        secret = read_api_key(argument)
        assert secret is not None
        assert secret.reveal() == expected
    with pytest.raises(tw.TinkerError, match="must be printable ASCII without blanks"):
        read_api_key("a b")
    monkeypatch.delenv("TINKER_API_KEY")
    assert read_api_key("") is None
