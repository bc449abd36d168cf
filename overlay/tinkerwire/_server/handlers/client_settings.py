"""What clients ask before they begin: their settings, whose their key is, and a token in its place."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from tinkerwire._server.handlers.handler import Handler
from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import HttpError, Response
from tinkerwire._server.sessions.tokens import OWNER
from tinkerwire._server.state import State
from tinkerwire_generated.models import (
    ApiKeyDetails,
    ApiKeyOrgDetails,
    ApiKeyUserDetails,
    AuthTokenResponse,
    SelfApiKeyResponse,
)


def client_config(state: State, request: Request) -> Response:
    """Say what holds for the life of a client."""
    return Response(body=state.settings.config.fixed())


def client_dynamic_config(state: State, request: Request) -> Response:
    """Say what may change while a client lives."""
    return Response(body=state.settings.config.dynamic())


def auth_token(state: State, request: Request) -> Response:
    """Give a token for the key, which was looked at already."""
    if not state.settings.config.wants_tokens:
        raise HttpError(404, "this server gives no tokens; send the API key itself, or set flag pjwt_auth_enabled")
    return Response(body=AuthTokenResponse(jwt=state.tokens.issue()))


def get_own_api_key(state: State, request: Request) -> Response:
    """Describe the key, which was looked at already: all are those of the one user, and told apart by a number."""
    key = request.headers.get("x-api-key")
    if not key:
        raise HttpError(401, "no API key was sent; send one in X-API-Key")
    number = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=6).digest(), "big")
    details = ApiKeyDetails(
        org_details=ApiKeyOrgDetails(name=OWNER), user_details=ApiKeyUserDetails(email=f"{OWNER}@localhost")
    )
    return Response(body=SelfApiKeyResponse(key_id=number, name=f"{OWNER}-{number}", note="", details=details))


HANDLERS: Mapping[str, Handler] = {
    "client_config": client_config,
    "client_dynamic_config": client_dynamic_config,
    "auth_token": auth_token,
    "get_own_api_key": get_own_api_key,
}
