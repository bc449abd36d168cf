"""Tests of the exchange of the API key for a token, and of replacing an expired or rejected token."""

from __future__ import annotations

import itertools
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest

import tinkerwire as tw
from support.clients import ADAM, FAST, KEY, PARAMS, PROMPT, open_client
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer, in_order, seq_ids
from support.tokens import token
from tinkerwire._server.app import EmbeddedServer
from tinkerwire._transport.backpressure import Traffic
from tinkerwire._transport.embedded import EmbeddedTransport
from tinkerwire_base.call import WireRequest, WireResponse

pytestmark = pytest.mark.timeout(60)
EXCHANGE: dict[str, object] = {"wire_version": "0.38.0", "client_config": {"pjwt_auth_enabled": True}}
"""Options of a client that exchanges its key."""
INVALID_TOKEN = 'Bearer error="invalid_token"'


@attrs.frozen
class SentRequest:
    """Request of a client, with its headers x-api-key and x-idempotency-key."""

    name: str
    """The path after /api/v1/."""
    credential: str | None
    idempotency_key: str | None


class RecordingTransport:
    """Transport to an embedded server that records the requests."""

    def __init__(self, server: EmbeddedServer) -> None:
        self.inner = EmbeddedTransport(server)
        self.requests: list[SentRequest] = []

    async def send(self, request: WireRequest, traffic: Traffic, timeout_s: float) -> WireResponse:
        name, headers = request.path.removeprefix("/api/v1/"), request.headers
        self.requests.append(SentRequest(name, headers.get("x-api-key"), headers.get("x-idempotency-key")))
        return await self.inner.send(request, traffic, timeout_s)

    async def close(self) -> None:
        pass

    def credentials(self, name: str) -> list[str | None]:
        """Return the credentials of the requests to one path."""
        return [request.credential for request in self.requests if request.name == name]


class TokenServer:
    """Embedded server that requires tokens, and whose clock the test moves; ``open`` creates a client of it."""

    def __init__(self, **flags: str) -> None:
        self.clock_offset_s = 0.0
        self.server = EmbeddedServer(
            wire_version="0.38.0",
            api_key=KEY,
            session_ttl_s=None,
            client_config={"pjwt_auth_enabled": True, **flags},
            clock=lambda: time.time() + self.clock_offset_s,
        )
        self.transport = RecordingTransport(self.server)

    def open(self, key: str | None = KEY, **options: Any) -> tw.ServiceClient:
        """Open a client without long waits."""
        return tw.ServiceClient(
            base_url="https://example.org", api_key=key, transport=self.transport, retry=FAST, **options
        )


@pytest.fixture
def token_server() -> Iterator[TokenServer]:
    """Run a server that requires tokens."""
    token_server = TokenServer()
    with token_server.server:
        yield token_server


def test_key_is_exchanged_for_one_token(token_server: TokenServer) -> None:
    """Only client/config and auth/token have the key; all other requests have the same token."""
    with token_server.open() as client:
        training = client.create_lora_training_client("tinkerwire/byte-nano", rank=4)
        training.optim_step(ADAM).result(TEST_TIMEOUT_S)
        client.create_rest_client().list_training_runs().result(TEST_TIMEOUT_S)
    requests = token_server.transport.requests
    paths_with_key = {request.name for request in requests if request.credential == KEY}
    tokens = {request.credential for request in requests if request.name not in paths_with_key}
    assert paths_with_key == {"client/config", "auth/token"}
    assert len(token_server.transport.credentials("auth/token")) == len(tokens) == 1
    assert str(tokens.pop()).startswith("eyJ")


@pytest.mark.parametrize("hours", [-5, 5])
def test_token_is_used_again_when_the_clocks_differ(token_server: TokenServer, hours: int) -> None:
    token_server.clock_offset_s = hours * 3600.0
    with token_server.open() as client:
        for _ in range(5):
            client.get_server_capabilities()
    assert len(token_server.transport.credentials("auth/token")) == 1


def test_client_config_enables_the_exchange_without_discovery(token_server: TokenServer) -> None:
    """With wire_version, the argument client_config decides, and by default requests have the key itself."""
    with token_server.open(**EXCHANGE) as client:
        client.get_server_capabilities()
    assert [request.name for request in token_server.transport.requests if request.credential == KEY] == ["auth/token"]
    with token_server.open(wire_version="0.38.0") as client:
        client.get_server_capabilities()
    assert token_server.transport.requests[-1].credential == KEY


def test_expired_token_is_replaced_once_and_requests_are_resent(token_server: TokenServer) -> None:
    """Concurrent requests wait for one new token; a resent sample keeps its idempotency key."""
    with token_server.open() as client:
        rest = client.create_rest_client()
        client.create_sampling_client(base_model="tinkerwire/byte-nano").result(TEST_TIMEOUT_S)
        token_server.clock_offset_s = 3601.0
        for future in [rest.list_training_runs() for _ in range(10)]:
            future.result(TEST_TIMEOUT_S)
        sampling = client.create_sampling_client(base_model="tinkerwire/byte-nano").result(TEST_TIMEOUT_S)
        token_server.clock_offset_s = 7300.0
        sampling.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
    assert len(token_server.transport.credentials("auth/token")) == 3
    samples = [request for request in token_server.transport.requests if request.name == "asample"]
    assert len({request.credential for request in samples}) == 2
    assert len({request.idempotency_key for request in samples}) == 1


def test_token_is_refreshed_at_half_its_lifetime(server: ScriptedServer, pass_time: Callable[[float], None]) -> None:
    """A valid token is replaced after half its lifetime; once the new token has arrived, no request has the old one."""
    server.rules["auth/token"] = lambda _: ScriptedResponse({"jwt": token(3600.0)})

    def sent_tokens() -> list[str]:
        return [request.headers["x-api-key"] for request in server.named("get_server_capabilities")]

    with open_client(server.url, **EXCHANGE) as client:
        for number in (1, 2, 3):
            # The first request after half the lifetime starts the refresh, and does not wait for it.
            while len(set(sent_tokens())) < number:
                client.get_server_capabilities()
            pass_time(1000.0)
            client.get_server_capabilities()
            assert len(server.named("auth/token")) == number
            pass_time(1000.0)
    assert [sent for sent, _ in itertools.groupby(sent_tokens())] == list(dict.fromkeys(sent_tokens()))


def test_rejected_exchange_raises_and_is_repeated_by_the_next_request(token_server: TokenServer) -> None:
    """The error is that of the exchange, and the client does not retry it."""
    with token_server.open("tml-wrong-key", **EXCHANGE) as client:
        for number in (1, 2):
            with pytest.raises(tw.AuthenticationError, match=r"POST .*auth/token: HTTP 401.*the API key is wrong"):
                client.get_server_capabilities()
            assert len(token_server.transport.credentials("auth/token")) == number
    assert token_server.transport.credentials("get_server_capabilities") == []


def test_failing_exchange_makes_max_attempts_requests(server: ScriptedServer) -> None:
    """The attempts of the exchange do not multiply with those of the request that needs the token."""
    server.rules["auth/token"] = lambda _: ScriptedResponse({"detail": "busy"}, status=503)
    policy = tw.RetryConfig(retry_delay_base=0.001, max_attempts=4)
    with open_client(server.url, retry=policy, **EXCHANGE) as client, pytest.raises(tw.InternalServerError):
        client.get_server_capabilities()
    assert len(server.named("auth/token")) == 4


@pytest.mark.parametrize(
    "error", [ScriptedResponse({"detail": "no"}, status=401), ScriptedResponse({"detail": "busy"}, status=503)]
)
@pytest.mark.parametrize("may_be_accepted", [False, True])
def test_failed_exchange_frees_the_seq_id_unless_it_may_be_used(
    server: ScriptedServer, error: ScriptedResponse, may_be_accepted: bool
) -> None:
    """The next step gets the seq_id of a step that failed for lack of a token, unless an attempt may have arrived."""
    exchange = in_order(ScriptedResponse({"jwt": token()}), error, error, ScriptedResponse({"jwt": token()}))
    server.rules["auth/token"] = exchange
    expired = ScriptedResponse(status=401, headers={"www-authenticate": INVALID_TOKEN})
    attempts = [ScriptedResponse(status=500), expired] if may_be_accepted else [expired]
    server.rules["optim_step"] = in_order(server.healthy_response, *attempts, server.healthy_response)
    policy = tw.RetryConfig(retry_delay_base=0.001, max_attempts=2)
    with open_client(server.url, retry=policy, **EXCHANGE) as client:
        training = client.create_lora_training_client("base")
        training.optim_step(ADAM).result(TEST_TIMEOUT_S)
        with pytest.raises(tw.APIStatusError, match="auth/token"):
            training.optim_step(ADAM).result(TEST_TIMEOUT_S)
        if error.status == 401:
            # The client does not retry a 401 of the exchange, so the rule has one more error.
            server.rules["auth/token"] = lambda _: ScriptedResponse({"jwt": token()})
        training.optim_step(ADAM).result(TEST_TIMEOUT_S)
    assert list(dict.fromkeys(seq_ids(server))) == ([1, 2, 3] if may_be_accepted else [1, 2])
    assert seq_ids(server)[-1] == (3 if may_be_accepted else 2)


@pytest.mark.parametrize("body", [{"token": token()}, {"jwt": ""}, {"jwt": f"{token()}\n"}, [], {"jwt": 5}])
def test_exchange_without_a_token_hides_the_response(server: ScriptedServer, body: object) -> None:
    """The error does not show the response, which may contain a token in another form."""
    server.rules["auth/token"] = lambda _: ScriptedResponse(body)
    with open_client(server.url, **EXCHANGE) as client, pytest.raises(tw.TinkerError) as caught:
        client.get_server_capabilities()
    assert str(caught.value) == f"POST {server.url}/api/v1/auth/token: HTTP 200: the response must contain a token"
    assert "eyJ" not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is None


def test_only_a_401_about_the_token_replaces_it_and_only_once(server: ScriptedServer) -> None:
    """A 401 without error="invalid_token" is final, and so is the second such 401 of a request."""
    server.rules["auth/token"] = lambda _: ScriptedResponse({"jwt": token()})
    challenges = iter(["Bearer", "", INVALID_TOKEN, INVALID_TOKEN])
    server.rules["get_server_capabilities"] = lambda _: ScriptedResponse(
        status=401, headers={"www-authenticate": next(challenges)}
    )
    with open_client(server.url, **EXCHANGE) as client:
        for attempts, exchanges in ((1, 1), (2, 1), (4, 2)):
            with pytest.raises(tw.AuthenticationError):
                client.get_server_capabilities()
            assert len(server.named("get_server_capabilities")) == attempts
            assert len(server.named("auth/token")) == exchanges


def test_expired_jwt_as_key_raises_before_a_request(server: ScriptedServer) -> None:
    """An API key may be a JWT; after its expiry, the client sends nothing."""
    expired = pytest.raises(tw.TinkerError, match="a JWT that has expired")
    with open_client(server.url, api_key=token(-1)) as client, expired:
        client.get_server_capabilities()
    assert server.requests == []


def test_organization_may_require_a_credential_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client exchanges the credential of the command; without a command, the error names the variable."""
    token_server = TokenServer(credential_default_source="credential_cmd")
    transport = token_server.transport
    with token_server.server:
        with token_server.open() as client, pytest.raises(tw.TinkerError, match="set TINKER_CREDENTIAL_CMD"):
            client.get_server_capabilities()
        assert transport.credentials("auth/token") == []
        monkeypatch.setenv("TINKER_CREDENTIAL_CMD", "echo tml-of-the-command")
        with token_server.open() as client, pytest.raises(tw.AuthenticationError):
            client.get_server_capabilities()
        assert set(transport.credentials("auth/token")) == {"tml-of-the-command"}
        monkeypatch.setenv("TINKER_CREDENTIAL_CMD", f"echo {KEY}")
        with token_server.open(None) as client:
            client.get_server_capabilities()
    assert str(transport.credentials("get_server_capabilities")[-1]).startswith("eyJ")
