"""Requirements on authentication: missing, wrong and expired credentials, and tokens in place of keys."""

from __future__ import annotations

import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import attrs
import orjson

from tinkerwire_base.call import WireRequest
from tinkerwire_generated import models
from tinkerwire_generated.api.auth import auth_token, get_own_api_key
from tinkerwire_generated.api.runs import list_training_runs
from tinkerwire_generated.api.service import healthz

from ..checks.session_requests import session_request, try_session
from ..client.wire_client import API_KEY_HEADER
from ..exchange import Exchange
from ..requirement import Area, Breakage, Feature
from ..subject.server import Server
from ..violation import Blocked, NotApplicable, expect

AREA = Area("AUT", "authentication", "Authentication: missing, wrong and expired credentials, and tokens")
WRONG_KEY = "tml-conformance-wrong-key-0123456789"
TAKES_ANY_KEY = "the server takes requests with any key or none"
TOKENS_SINCE = "0.18.2"
INVALID_TOKEN_HINT = 'error="invalid_token"'
"""Part of WWW-Authenticate on which clients exchange their key again."""


@AREA.must(
    1,
    contract="create_session 401",
    remedy="Reject requests without X-API-Key with 401, if the server has keys at all.",
)
async def missing_key_is_rejected(server: Server) -> None:
    """A request without a key is rejected with 401, if the server rejects wrong keys."""
    await _expect_rejection(server, None, WRONG_KEY)


@AREA.must(
    2,
    contract="create_session 401",
    remedy="Compare X-API-Key with the keys of the server, and reject all others with 401.",
)
async def wrong_key_is_rejected(server: Server) -> None:
    """A request with a wrong key is rejected with 401, if the server rejects requests without a key."""
    await _expect_rejection(server, WRONG_KEY, None)


@AREA.should(
    3,
    contract=("create_session 401", "ErrorBody.detail"),
    remedy="Use status 401 and a JSON object with detail for a wrong key; clients show the reason.",
    needs=("AUT-002",),
)
async def rejection_has_a_reason(server: Server) -> None:
    """A wrong key is answered with 401 and a JSON object that has a detail."""
    exchange = await _require_keys(server)
    expect(exchange.status == 401, "401", exchange.describe(), exchange)
    server.client.require_contract("create_session", exchange)
    expect(bool(exchange.member("detail")), "a detail", exchange.describe(), exchange)


@AREA.must(
    4,
    contract="create_session 401",
    remedy="Never repeat a key in a response: responses are logged.",
    needs=("AUT-002",),
)
async def key_is_not_repeated(server: Server) -> None:
    """The rejection of a key does not repeat the key."""
    exchange = await _require_keys(server)
    repeated = WRONG_KEY.encode() in exchange.content or any(WRONG_KEY in text for text in exchange.headers.values())
    expect(not repeated, "a response without the key", "a response with it")


@AREA.must(
    5,
    contract=("list_training_runs 401", "retrieve_future 401"),
    remedy="Check the key before anything else, in every operation except healthz.",
    needs=("AUT-002",),
)
async def every_operation_checks_the_key(server: Server) -> None:
    """Reading, polling and training with a wrong key are rejected."""
    await _require_keys(server)
    requests = [server.futures.poll_request("no-such-request", "OptimStepResponse")]
    requests.append(server.client.json_request("POST", "get_info", {"model_id": "no-such-model"}))
    step = {"model_id": "no-such-model", "adam_params": {"learning_rate": 0.0}, "seq_id": 1}
    requests.append(server.client.json_request("POST", "optim_step", step))
    if "list_training_runs" not in server.missing:
        requests.append(server.client.encode(list_training_runs()))
    for request in requests:
        exchange = await server.client.send(_with_key(request, WRONG_KEY))
        expect(exchange.status in (401, 403), f"401 for {request.path}", exchange.describe(), exchange)


@AREA.must(
    6,
    contract="create_session 401",
    remedy="Compare the whole key, with its case.",
    needs=("AUT-002",),
)
async def whole_key_is_compared(server: Server) -> None:
    """A key that is cut off, extended or in another case is rejected."""
    await _require_keys(server)
    key = server.api_key or ""
    for changed in (key[:-1], f"{key}x", key.swapcase()):
        if changed not in ("", key):
            exchange = await _create_session(server, changed)
            expect(exchange.status in (401, 403), "401 for a changed key", exchange.describe())


@AREA.should(
    7,
    contract="healthz 200",
    remedy="Answer healthz without a key: monitors and load balancers have none.",
    needs=("SRV-001",),
)
async def health_needs_no_key(server: Server) -> None:
    """The health of the server can be read without a key."""
    exchange = await server.client.send(_with_key(server.client.encode(healthz()), None))
    expect(exchange.status == 200, "200", exchange.describe(), exchange)


@AREA.must(
    8,
    contract="create_session",
    remedy="Ignore the case of the header's name.",
    breaks=[Breakage("0.3.0", None, Feature.CONNECT, "is rejected although its key is right")],
)
async def header_has_any_case(server: Server) -> None:
    """The key is read from X-API-Key, whatever the case of the header's name."""
    request = session_request(server)
    plain = await try_session(server, request)
    if not plain.is_success:
        raise Blocked("the server rejects the key itself", plain)
    request = session_request(server)
    headers = {("X-API-Key" if name == API_KEY_HEADER else name): value for name, value in request.headers.items()}
    exchange = await try_session(server, attrs.evolve(request, headers=headers))
    expect(exchange.is_success, "the same response as with x-api-key", exchange.describe(), exchange)


@AREA.must(
    9,
    since=TOKENS_SINCE,
    contract=("auth_token 200", "AuthTokenResponse.jwt"),
    remedy="Issue a JWT with exp and iat from auth/token, and accept it in X-API-Key.",
    breaks=[Breakage("0.18.2", None, Feature.CONNECT, "cannot exchange its key, and raises an error")],
)
async def token_can_be_used(server: Server) -> None:
    """A token from auth/token expires in the future, and is accepted in place of the key."""
    _require_tokens(server)
    token, exchange = await _exchange(server)
    expires = _claims(token).get("exp")
    is_later = isinstance(expires, int | float) and expires > time.time()
    expect(is_later, "a JWT whose claim exp lies in the future", f"exp {expires!r}")
    used = await _create_session(server, token)
    expect(used.is_success, "a session with the token", used.describe())
    expect(exchange.status == 200, "200", exchange.status)


@AREA.must(
    10,
    since=TOKENS_SINCE,
    contract="create_session 401",
    remedy="Check signature and expiry of every token, and reject other tokens with 401.",
    needs=("AUT-009", "AUT-002"),
)
async def wrong_token_is_rejected(server: Server) -> None:
    """An expired token, and one that was changed, are rejected with 401."""
    _require_tokens(server)
    await _require_keys(server)
    token, _ = await _exchange(server)
    for wrong in (_expired_token(), _changed_token(token)):
        exchange = await _create_session(server, wrong)
        expect(exchange.status == 401, "401", exchange.describe())


@AREA.should(
    11,
    since=TOKENS_SINCE,
    contract="create_session 401",
    remedy='Send WWW-Authenticate: Bearer error="invalid_token" with the 401 for an expired token.',
    needs=("AUT-010",),
    breaks=[Breakage("0.38.0", None, Feature.CONNECT, "raises an error when its token has expired")],
)
async def expired_token_is_named(server: Server) -> None:
    """The rejection of an expired token names the reason in WWW-Authenticate, so that clients get a new one."""
    _require_tokens(server)
    await _require_keys(server)
    exchange = await _create_session(server, _expired_token())
    header = exchange.headers.get("www-authenticate", "")
    expect(INVALID_TOKEN_HINT in header, f"WWW-Authenticate with {INVALID_TOKEN_HINT}", header or "no such header")


@AREA.should(
    12,
    since="0.26.2",
    contract=("get_own_api_key 200", "SelfApiKeyResponse"),
    remedy="Describe the key of the request in get_own_api_key, without the key itself.",
    operations=("get_own_api_key",),
)
async def own_key_is_described(server: Server) -> None:
    """A client can read the description of its own key, which does not contain the key."""
    if server.api_key is None:
        raise NotApplicable("the tests have no key")
    request = _with_key(server.client.encode(get_own_api_key()), server.api_key)
    exchange = await server.client.send(request)
    server.client.read(get_own_api_key(), exchange)
    expect(server.api_key.encode() not in exchange.content, "a description without the key", "one with it")


async def _expect_rejection(server: Server, key: str | None, other: str | None) -> None:
    """Raise Violation unless a key is rejected; raise NotApplicable if another one is taken, too."""
    exchange = await _create_session(server, key)
    if exchange.is_success and (await _create_session(server, other)).is_success:
        raise NotApplicable(TAKES_ANY_KEY)
    expect(exchange.status in (401, 403), "401", exchange.describe(), exchange)


async def _require_keys(server: Server) -> Exchange:
    """Return the rejection of a wrong key; raise NotApplicable for a server that takes any key."""
    exchange = await _create_session(server, WRONG_KEY)
    if exchange.is_success:
        raise NotApplicable(TAKES_ANY_KEY)
    if exchange.response is None:
        raise Blocked(f"a request with a wrong key: {exchange.error}", exchange)
    return exchange


def _require_tokens(server: Server) -> None:
    server.require_operation("auth_token")
    if not server.client.dialect.config.pjwt_auth_enabled:
        raise NotApplicable("client/config does not ask for tokens")
    if server.api_key is None:
        raise NotApplicable("the tests have no key")


async def _exchange(server: Server) -> tuple[str, Exchange]:
    """Exchange the key for a token."""
    call = auth_token(body=models.AuthTokenRequest())
    exchange = await server.client.send(_with_key(server.client.encode(call), server.api_key))
    token: str = server.client.read(call, exchange).jwt
    server.client.secrets.add(token)
    return token, exchange


async def _create_session(server: Server, key: str | None) -> Exchange:
    """Try to create a session with a key."""
    return await try_session(server, _with_key(session_request(server), key))


def _with_key(request: WireRequest, key: str | None) -> WireRequest:
    others = {name: value for name, value in request.headers.items() if name != API_KEY_HEADER}
    return attrs.evolve(request, headers=others if key is None else {**others, API_KEY_HEADER: key})


def _claims(token: str) -> dict[str, Any]:
    """Return the claims of a JWT; none for another text."""
    part = (token.split(".") + [""])[1]
    try:
        claims = orjson.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except ValueError:
        return {}
    return claims if isinstance(claims, dict) else {}


def _expired_token() -> str:
    """Return a JWT that expired an hour ago, without a valid signature."""
    now = int(time.time())
    parts = ({"alg": "none", "typ": "JWT"}, {"iat": now - 7200, "exp": now - 3600, "sub": "conformance"})
    return ".".join([*(urlsafe_b64encode(orjson.dumps(part)).rstrip(b"=").decode() for part in parts), "AAAA"])


def _changed_token(token: str) -> str:
    """Return a token with other claims."""
    head, _, rest = token.partition(".")
    claims, _, signature = rest.partition(".")
    other = urlsafe_b64encode(orjson.dumps({**_claims(token), "sub": "conformance"})).rstrip(b"=").decode()
    return f"{head}.{other if other != claims else claims[::-1]}.{signature}"
