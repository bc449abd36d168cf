"""What clients ask before they begin: their settings, and a token in place of their key."""

from __future__ import annotations

from collections.abc import Mapping

from tinkerwire.local.answers import Answer, Refusal
from tinkerwire.local.handlers.handler import Handler
from tinkerwire.local.requests import Request
from tinkerwire.local.state import State
from tinkerwire_generated.models import AuthTokenResponse


def client_config(state: State, request: Request) -> Answer:
    """Say what holds for the life of a client."""
    return Answer(body=state.settings.config.fixed())


def client_dynamic_config(state: State, request: Request) -> Answer:
    """Say what may change while a client lives."""
    return Answer(body=state.settings.config.dynamic())


def auth_token(state: State, request: Request) -> Answer:
    """Give a token for the key, which was looked at already."""
    if not state.settings.config.wants_tokens:
        raise Refusal(404, "this server gives no tokens; send the API key itself, or set flag pjwt_auth_enabled")
    return Answer(body=AuthTokenResponse(jwt=state.tokens.issue()))


HANDLERS: Mapping[str, Handler] = {
    "client_config": client_config,
    "client_dynamic_config": client_dynamic_config,
    "auth_token": auth_token,
}
