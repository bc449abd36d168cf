"""Settings of clients, identity of their API key, and tokens in place of the key."""

from __future__ import annotations

import hashlib

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
    """Return the flags that are constant for the lifetime of a client."""
    return Response(body=state.settings.client_config.fixed_flags())


def client_dynamic_config(state: State, request: Request) -> Response:
    """Return the flags that may change during the lifetime of a client."""
    return Response(body=state.settings.client_config.dynamic_flags())


def auth_token(state: State, request: Request) -> Response:
    """Issue a token for the API key, which is authenticated already."""
    if not state.settings.client_config.uses_tokens:
        raise HttpError(404, "this server issues no tokens; send the API key itself, or set flag pjwt_auth_enabled")
    return Response(body=AuthTokenResponse(jwt=state.tokens.issue()))


def get_own_api_key(state: State, request: Request) -> Response:
    """Describe the API key, which is authenticated already. All keys belong to one user; a number identifies each."""
    key = request.headers.get("x-api-key")
    if not key:
        raise HttpError(401, "the API key is missing; send it in X-API-Key")
    number = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=6).digest(), "big")
    details = ApiKeyDetails(
        org_details=ApiKeyOrgDetails(name=OWNER), user_details=ApiKeyUserDetails(email=f"{OWNER}@localhost")
    )
    return Response(body=SelfApiKeyResponse(key_id=number, name=f"{OWNER}-{number}", note="", details=details))
