"""Tests of tokens in place of an API key."""

from __future__ import annotations

from base64 import urlsafe_b64decode

import orjson

from support.server_fixtures import Clock, ServerFactory
from tinkerwire._server.sessions.tokens import TOKEN_LIFETIME_S

FLAGS = {"pjwt_auth_enabled": True}


def test_token_is_valid_until_it_expires(serve: ServerFactory, clock: Clock) -> None:
    """Only the key gets a token, only issued tokens are valid, and a 401 makes clients request a new one."""
    call = serve(wire_version="0.38.0", api_key="tml-k", client_config=FLAGS, clock=clock, session_ttl_s=None)
    assert call.post("auth/token", {}).status == 401
    token = call.post("auth/token", {}, headers={"x-api-key": "tml-k"}).body["jwt"]
    claims = orjson.loads(urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims["exp"] - claims["iat"] == TOKEN_LIFETIME_S
    assert claims["iat"] == int(clock.now)
    assert call("GET", "sessions", headers={"x-api-key": token}).status == 200
    assert call("GET", "sessions", headers={"x-api-key": token + "x"}).status == 401
    clock.now += TOKEN_LIFETIME_S
    rejection = call("GET", "sessions", headers={"x-api-key": token})
    assert rejection.status == 401
    assert 'error="invalid_token"' in rejection.headers["www-authenticate"]


def test_tokens_need_their_flag(serve: ServerFactory) -> None:
    """Without the flag the exchange is 404, and a token is a wrong key."""
    call = serve(wire_version="0.38.0", api_key="tml-k")
    assert call.post("auth/token", {}, headers={"x-api-key": "tml-k"}).status == 404
    assert call("GET", "sessions", headers={"x-api-key": "eyJ.eyJ."}).status == 401


def test_each_token_is_new(serve: ServerFactory) -> None:
    """This also holds for a repeated idempotency key, because a repeated token may have expired."""
    call = serve(wire_version="0.38.0", client_config=FLAGS)
    tokens = {call.post("auth/token", {}, key="k").body["jwt"] for _ in range(2)}
    assert len(tokens) == 2
