"""What requests are let in by, and that it shows nowhere but on the wire."""

from __future__ import annotations

import io
import itertools
import logging
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import ADAM, FAST, KEY, PARAMS, PROMPT, open_client
from support.scripted import PATIENCE_S, ScriptedResponse, ScriptedServer, in_order, seq_ids
from support.tokens import token
from tinkerwire._credentials.secret import Secret
from tinkerwire._credentials.sources import StaticCredential, resolve_credential
from tinkerwire._server.app import EmbeddedServer
from tinkerwire._transport.backpressure import Traffic
from tinkerwire._transport.embedded import EmbeddedTransport
from tinkerwire_base.call import WireRequest, WireResponse

pytestmark = pytest.mark.timeout(60)
TESTS = str(Path(__file__).parents[2])


def test_the_key_goes_with_every_request(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """X-API-Key is on every request of every kind; Authorization never is."""
    client.create_lora_training_client("base").optim_step(ADAM).result(PATIENCE_S)
    client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS).result(PATIENCE_S)
    client.create_rest_client().list_training_runs().result(PATIENCE_S)
    assert len({asked.name for asked in server.asked}) >= 7
    assert {asked.headers["x-api-key"] for asked in server.asked} == {KEY}
    assert not any("authorization" in asked.headers for asked in server.asked)


def test_the_argument_goes_before_the_environment(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Key and address: the argument, else TINKER_API_KEY and TINKER_BASE_URL; empty ones count as none."""
    monkeypatch.setenv("TINKER_API_KEY", "from-environment")
    monkeypatch.setenv("TINKER_BASE_URL", server.url + "/")
    for options in ({}, {"api_key": "", "base_url": ""}, {"api_key": "given"}):
        with tw.ServiceClient(**options) as client:
            client.get_server_capabilities()
    asked_keys = [asked.headers["x-api-key"] for asked in server.named("get_server_capabilities")]
    assert asked_keys == ["from-environment"] * 2 + ["given"]
    monkeypatch.setenv("TINKER_BASE_URL", "http://127.0.0.1:1")
    with tw.ServiceClient(base_url=server.url) as client:
        client.get_server_capabilities()
    assert len(server.named("get_server_capabilities")) == 4


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "http://LOCALHOST:1", "http://127.8.0.1:1"],
)
def test_loopback_needs_no_key(address: str) -> None:
    """A server on this machine takes a key over plain http, and does without one."""
    assert resolve_credential(None, address) is None
    assert isinstance(resolve_credential(KEY, address), StaticCredential)


def test_without_a_key(server: ScriptedServer) -> None:
    """Without a key no header is sent; a server elsewhere needs one, and the error says where it may come from."""
    with tw.ServiceClient(base_url=server.url) as client:
        client.get_server_capabilities()
    assert "x-api-key" not in server.asked[0].headers
    with pytest.raises(tw.TinkerError, match=r"api_key=.*TINKER_API_KEY.*local"):
        tw.ServiceClient(base_url="https://example.org")
    assert resolve_credential(KEY, "local") is None


@pytest.mark.parametrize("wrong", [f"{KEY} ", f" {KEY}", f"{KEY}\n", f"{KEY}\x00", f"{KEY}\u2011x", f"{KEY}é"])
def test_a_key_that_cannot_be_one(wrong: str) -> None:
    """A key with blanks or characters that no header takes is refused, without showing it."""
    with pytest.raises(tw.TinkerError, match="how it was copied") as caught:
        tw.ServiceClient(base_url="https://example.org", api_key=wrong)
    assert KEY not in "".join(traceback.format_exception(caught.value))


def everything_in(thing: object, depth: int = 4) -> Iterator[str]:
    """The texts of an object and of what hangs on it, as a debugger or an error reporter would show them."""
    yield repr(thing)
    yield str(thing)
    if depth:
        for value in (*vars(thing).values(), *getattr(thing, "args", ())) if hasattr(thing, "__dict__") else ():
            yield from everything_in(value, depth - 1)
        for link in ("__cause__", "__context__"):
            if getattr(thing, link, None) is not None:
                yield from everything_in(getattr(thing, link), depth - 1)


TROUBLE: dict[str, Callable[[ScriptedServer], Any]] = {
    "status": lambda server: server.rules.update({"asample": lambda _: ScriptedResponse({"detail": "no"}, status=403)}),
    "dropped": lambda server: server.rules.update({"asample": lambda _: ScriptedResponse(drop=True)}),
    "no HTTP": lambda server: server.rules.update(
        {"asample": lambda _: ScriptedResponse(raw=b"HTTP/9 banana\r\n\r\n")}
    ),
    "cut": lambda server: server.rules.update(
        {"asample": lambda _: ScriptedResponse(raw=b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{")}
    ),
    "misfit": lambda server: server.rules.update({"asample": lambda _: ScriptedResponse([1])}),
    "failed": lambda server: server.on_poll("Sample", lambda _: ScriptedResponse({"error": "e"})),
    "expired": lambda server: server.on_poll("Sample", lambda _: ScriptedResponse(status=410)),
    "late": lambda server: server.on_poll("Sample", lambda _: ScriptedResponse(status=408)),
}


@pytest.mark.parametrize("kind", ["aiohttp", "httpx"])
@pytest.mark.parametrize("trouble", TROUBLE.values(), ids=TROUBLE)
def test_no_error_shows_the_key(server: ScriptedServer, trouble: Callable[[ScriptedServer], Any], kind: str) -> None:
    """No error, its parts, causes, traceback or log line shows the key, whatever went wrong."""
    trouble(server)
    import httpx  # noqa: PLC0415

    text = io.StringIO()
    handler = logging.StreamHandler(text)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    http = httpx.AsyncClient() if kind == "httpx" else None
    policy = tw.RetryConfig(retry_delay_base=0.01, max_attempts=3, progress_timeout=1.0)
    try:
        with open_client(server.url, retry=policy, http_client=http) as client:
            sampling = client.create_sampling_client(base_model="base")
            with pytest.raises(tw.TinkerError) as caught:
                sampling.sample(PROMPT, 1, PARAMS).result(PATIENCE_S)
            for thing in (client, sampling, client._connection, client._session, client.create_rest_client()):
                text.write(repr(thing) + str(thing))
            for thing in (client._connection._exchanger._transport, client._connection.codec._headers):
                text.write(repr(thing))
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    shown = "".join(traceback.format_exception(caught.value))
    assert KEY not in shown
    assert KEY not in text.getvalue()
    assert not [found for found in everything_in(caught.value) if KEY in found]


def test_no_frame_of_an_error_holds_the_key(server: ScriptedServer) -> None:
    """The traceback of a failed request has no local variable with the key, as error reporters would send them."""
    server.rules["get_server_capabilities"] = lambda _: ScriptedResponse(raw=b"HTTP/9 banana\r\n\r\n")
    policy = tw.RetryConfig(enable_retry_logic=False)
    with open_client(server.url, retry=policy) as client, pytest.raises(tw.APIConnectionError) as caught:
        client.get_server_capabilities()
    shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    text = "".join(line for line in shown.format() if TESTS not in line)
    assert "WireRequest" in text
    assert KEY not in text.replace(f"KEY = {KEY!r}", "")


def test_headers_of_the_users_own(server: ScriptedServer) -> None:
    """default_headers_overrides go with every request, and do not replace the key."""
    with open_client(server.url, default_headers_overrides={"CF-Access-Client-Id": "c", "X-Api-Key": "z"}) as client:
        client.create_lora_training_client("base").optim_step(ADAM).result(PATIENCE_S)
    assert {asked.headers["cf-access-client-id"] for asked in server.asked} == {"c"}
    assert {asked.headers["x-api-key"] for asked in server.asked} == {KEY}


def test_headers_of_cloudflare(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the environment go with every request; one that is given goes before them, in any letter case."""
    monkeypatch.setenv("CLOUDFLARE_ACCESS_CLIENT_ID", "id")
    monkeypatch.setenv("CLOUDFLARE_ACCESS_CLIENT_SECRET", "cf-secret")
    with open_client(
        server.url, wire_version=None, default_headers_overrides={"CF-Access-Client-ID": "mine"}
    ) as client:
        client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS).result(PATIENCE_S)
        for thing in (
            client,
            client._connection,
            client._connection.codec._headers,
            client._connection._authorization.headers,
        ):
            assert "cf-secret" not in repr(thing)
    assert {asked.headers["cf-access-client-id"] for asked in server.asked} == {"mine"}
    assert {asked.headers["cf-access-client-secret"] for asked in server.asked} == {"cf-secret"}
    monkeypatch.setenv("CLOUDFLARE_ACCESS_CLIENT_ID", "")
    with open_client(server.url) as client:
        client.get_server_capabilities()
    assert "cf-access-client-id" not in server.asked[-1].headers


@pytest.mark.parametrize(
    ("name", "value"),
    [("x", f"{KEY}\nx: y"), ("x", f"{KEY}\0"), ("x", f"{KEY}é"), ("a b", KEY), ("a:", KEY), ("", KEY)],
)
def test_headers_that_cannot_be_sent(name: str, value: str) -> None:
    """They are refused with their name, and without their value, before anything is sent."""
    with pytest.raises(ValueError, match=f"header '{name}'") as caught:
        tw.ServiceClient(base_url="local", default_headers_overrides={name: value})
    assert KEY not in "".join(traceback.format_exception(caught.value))
    with pytest.raises(TypeError, match="expected its value as a str, got Secret"):
        tw.ServiceClient(base_url="local", default_headers_overrides={"x": Secret(KEY)})  # type: ignore[dict-item]


class Recorded:
    """A way to an embedded server that keeps the calls and what each was let in by."""

    def __init__(self, server: EmbeddedServer) -> None:
        self.inner = EmbeddedTransport(server)
        self.keys: list[tuple[str, str | None, str | None]] = []

    async def send(self, request: WireRequest, traffic: Traffic, timeout_s: float) -> WireResponse:
        key, name = request.headers.get("x-api-key"), request.path.removeprefix("/api/v1/")
        self.keys.append((name, key, request.headers.get("x-idempotency-key")))
        return await self.inner.send(request, traffic, timeout_s)

    async def close(self) -> None:
        pass

    def named(self, name: str) -> list[str | None]:
        """What the requests of one call were let in by."""
        return [key for called, key, _ in self.keys if called == name]


class Wanting:
    """An embedded server that wants tokens, and whose clock the test moves; ``open`` makes a client of it."""

    def __init__(self, **flags: Any) -> None:
        self.ahead_s = 0.0
        self.server = EmbeddedServer(
            wire_version="0.38.0",
            api_key=KEY,
            session_ttl_s=None,
            client_config={"pjwt_auth_enabled": True, **flags},
            clock=lambda: time.time() + self.ahead_s,
        )
        self.transport = Recorded(self.server)

    def open(self, key: str | None = KEY, **options: Any) -> tw.ServiceClient:
        return tw.ServiceClient(
            base_url="https://example.org", api_key=key, transport=self.transport, retry=FAST, **options
        )


@pytest.fixture
def wanting() -> Iterator[Wanting]:
    """A server that wants tokens."""
    found = Wanting()
    with found.server:
        yield found


def test_the_key_is_exchanged(wanting: Wanting) -> None:
    """The key goes with client/config and auth/token alone; everything else goes with the one token."""
    with wanting.open() as client:
        training = client.create_lora_training_client("tinkerwire/byte-nano", rank=4)
        training.optim_step(ADAM).result(PATIENCE_S)
        client.create_rest_client().list_training_runs().result(PATIENCE_S)
    by_key = {name for name, key, _ in wanting.transport.keys if key == KEY}
    tokens = {key for name, key, _ in wanting.transport.keys if name not in by_key}
    assert by_key == {"client/config", "auth/token"}
    assert len(wanting.transport.named("auth/token")) == len(tokens) == 1
    assert str(tokens.pop()).startswith("eyJ")


def test_a_wire_version_that_was_given_wants_tokens_if_told(wanting: Wanting) -> None:
    """With client_config in place of a question, the exchange is the same."""
    with wanting.open(wire_version="0.38.0", client_config={"pjwt_auth_enabled": True}) as client:
        client.get_server_capabilities()
    assert [name for name, key, _ in wanting.transport.keys if key == KEY] == ["auth/token"]
    with wanting.open(wire_version="0.38.0") as client:
        client.get_server_capabilities()
    assert wanting.transport.keys[-1][1] == KEY


def test_a_token_that_is_refused(wanting: Wanting) -> None:
    """Requests that meet the end of the token wait for one new token, and go again under their own keys."""
    with wanting.open() as client:
        rest = client.create_rest_client()
        client.create_sampling_client(base_model="tinkerwire/byte-nano").result(PATIENCE_S)
        wanting.ahead_s = 3601.0
        for future in [rest.list_training_runs() for _ in range(10)]:
            future.result(PATIENCE_S)
        sampling = client.create_sampling_client(base_model="tinkerwire/byte-nano").result(PATIENCE_S)
        wanting.ahead_s = 7300.0
        sampling.sample(PROMPT, 1, PARAMS).result(PATIENCE_S)
    assert len(wanting.transport.named("auth/token")) == 3
    submitted = [(key, idempotency) for name, key, idempotency in wanting.transport.keys if name == "asample"]
    assert len({key for key, _ in submitted}) == 2
    assert len({idempotency for _, idempotency in submitted}) == 1


def test_renewal_at_half_time(server: ScriptedServer, pass_time: Callable[[float], None]) -> None:
    """A token past half its life is replaced although nobody refused it."""
    server.rules["auth/token"] = lambda _: ScriptedResponse({"jwt": token(3600.0)})
    options = {"wire_version": "0.38.0", "client_config": {"pjwt_auth_enabled": True}}

    def tokens() -> list[str]:
        return [asked.headers["x-api-key"] for asked in server.named("get_server_capabilities")]

    with open_client(server.url, **options) as client:
        for number in (1, 2, 3):
            # Whoever comes upon the half time begins the renewal, and does not wait for it.
            while len(set(tokens())) < number:
                client.get_server_capabilities()
            pass_time(1000.0)
            client.get_server_capabilities()
            assert len(server.named("auth/token")) == number
            pass_time(1000.0)
    # Each is in one piece: sent until the next is there, and never again.
    assert [key for key, _ in itertools.groupby(tokens())] == list(dict.fromkeys(tokens()))


def test_a_key_that_is_not_exchanged(wanting: Wanting) -> None:
    """The refusal of the exchange surfaces as it is, is not retried, and is asked anew by the next request."""
    with wanting.open("tml-wrong-key", wire_version="0.38.0", client_config={"pjwt_auth_enabled": True}) as client:
        for number in (1, 2):
            with pytest.raises(tw.AuthenticationError, match=r"POST .*auth/token: HTTP 401.*the API key is wrong"):
                client.get_server_capabilities()
            assert len(wanting.transport.named("auth/token")) == number
    assert wanting.transport.named("get_server_capabilities") == []


def test_an_exchange_that_fails_is_not_retried_twice_over(server: ScriptedServer) -> None:
    """The exchange is tried as often as the policy says, once, and not once more for each try of the request."""
    server.rules["auth/token"] = lambda _: ScriptedResponse({"detail": "busy"}, status=503)
    options = {"wire_version": "0.38.0", "client_config": {"pjwt_auth_enabled": True}}
    policy = tw.RetryConfig(retry_delay_base=0.001, max_attempts=4)
    with open_client(server.url, retry=policy, **options) as client, pytest.raises(tw.InternalServerError):
        client.get_server_capabilities()
    assert len(server.named("auth/token")) == 4


@pytest.mark.parametrize(
    "error", [ScriptedResponse({"detail": "no"}, status=401), ScriptedResponse({"detail": "busy"}, status=503)]
)
@pytest.mark.parametrize("doubt", [False, True])
def test_a_number_is_free_again_unless_it_may_be_taken(
    server: ScriptedServer, error: ScriptedResponse, doubt: bool
) -> None:
    """A step without a credential was not sent: the next one has its number, unless an earlier try went out."""
    exchange = in_order(ScriptedResponse({"jwt": token()}), error, error, ScriptedResponse({"jwt": token()}))
    server.rules["auth/token"] = exchange
    over = ScriptedResponse(status=401, headers={"www-authenticate": 'Bearer error="invalid_token"'})
    tries = [ScriptedResponse(status=500), over] if doubt else [over]
    server.rules["optim_step"] = in_order(server.healthy_response, *tries, server.healthy_response)
    options = {"wire_version": "0.38.0", "client_config": {"pjwt_auth_enabled": True}}
    policy = tw.RetryConfig(retry_delay_base=0.001, max_attempts=2)
    with open_client(server.url, retry=policy, **options) as client:
        training = client.create_lora_training_client("base")
        training.optim_step(ADAM).result(PATIENCE_S)
        with pytest.raises(tw.APIStatusError, match="auth/token"):
            training.optim_step(ADAM).result(PATIENCE_S)
        if error.status == 401:
            # One answer of the exchange is left over, as a plain refusal is not asked for again.
            server.rules["auth/token"] = lambda _: ScriptedResponse({"jwt": token()})
        training.optim_step(ADAM).result(PATIENCE_S)
    assert list(dict.fromkeys(seq_ids(server))) == ([1, 2, 3] if doubt else [1, 2])
    assert seq_ids(server)[-1] == (3 if doubt else 2)


@pytest.mark.parametrize("body", [{"token": token()}, {"jwt": ""}, {"jwt": f"{token()}\n"}, [], {"jwt": 5}])
def test_an_answer_without_a_token(server: ScriptedServer, body: Any) -> None:
    """It is an error that does not show the answer, in which a token may stand."""
    server.rules["auth/token"] = lambda _: ScriptedResponse(body)
    options = {"wire_version": "0.38.0", "client_config": {"pjwt_auth_enabled": True}}
    with open_client(server.url, **options) as client, pytest.raises(tw.TinkerError) as caught:
        client.get_server_capabilities()
    assert str(caught.value) == f"POST {server.url}/api/v1/auth/token: HTTP 200: the response holds no token"
    assert "eyJ" not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is None


def test_another_refusal_is_no_matter_of_tokens(server: ScriptedServer) -> None:
    """A 401 that does not speak of the token stands, and so does a second one that does."""
    server.rules["auth/token"] = lambda _: ScriptedResponse({"jwt": token()})
    refusals = iter(["Bearer", "", 'Bearer error="invalid_token"', 'Bearer error="invalid_token"'])
    server.rules["get_server_capabilities"] = lambda _: ScriptedResponse(
        status=401, headers={"www-authenticate": next(refusals)}
    )
    options = {"wire_version": "0.38.0", "client_config": {"pjwt_auth_enabled": True}}
    with open_client(server.url, **options) as client:
        for tries, exchanges in ((1, 1), (2, 1), (4, 2)):
            with pytest.raises(tw.AuthenticationError):
                client.get_server_capabilities()
            assert len(server.named("get_server_capabilities")) == tries
            assert len(server.named("auth/token")) == exchanges


def test_a_key_that_is_a_token_and_over(server: ScriptedServer) -> None:
    """It is refused before anything is sent."""
    expired = pytest.raises(tw.TinkerError, match="a JWT that has expired")
    with open_client(server.url, api_key=token(-1)) as client, expired:
        client.get_server_capabilities()
    assert server.asked == []


def test_an_organization_that_wants_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its keys are not exchanged: the command's credential is, or the error says that it is missing."""
    wanting = Wanting(credential_default_source="credential_cmd")
    with wanting.server:
        with wanting.open() as client, pytest.raises(tw.TinkerError, match="set TINKER_CREDENTIAL_CMD"):
            client.get_server_capabilities()
        assert wanting.transport.named("auth/token") == []
        monkeypatch.setenv("TINKER_CREDENTIAL_CMD", "echo tml-of-the-command")
        with wanting.open() as client, pytest.raises(tw.AuthenticationError):
            client.get_server_capabilities()
        assert set(wanting.transport.named("auth/token")) == {"tml-of-the-command"}
        monkeypatch.setenv("TINKER_CREDENTIAL_CMD", f"echo {KEY}")
        with wanting.open(None) as client:
            client.get_server_capabilities()
    assert str(wanting.transport.named("get_server_capabilities")[-1]).startswith("eyJ")
