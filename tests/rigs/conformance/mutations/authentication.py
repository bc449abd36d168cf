"""Mutations of the check of keys and tokens."""

from __future__ import annotations

import json
from typing import Any

import attrs

from tinkerwire._server.app import EmbeddedServer
from tinkerwire_base.call import WireRequest, WireResponse

from . import patches
from .mutation import Group
from .patches import KEY

GROUP = Group("Authentication")
TOKENS = {"pjwt_auth_enabled": True}
EXPIRED = "eyJhbGciOiJub25lIn0.eyJleHAiOjEwMCwiaWF0IjoxfQ."


def _key(request: WireRequest) -> str:
    return request.headers.get("x-api-key") or ""


def _authorized(request: WireRequest) -> WireRequest:
    return attrs.evolve(request, headers={**request.headers, "x-api-key": KEY})


@GROUP.mutation("AUT-001")
def missing_key_accepted() -> None:
    """A request without a key is accepted."""
    patches.change_request(".*", lambda request: request if _key(request) else _authorized(request))


@GROUP.mutation("AUT-002")
def wrong_key_accepted() -> None:
    """A request with any key is accepted."""
    patches.change_request(".*", lambda request: _authorized(request) if _key(request) else request)


@GROUP.mutation("AUT-003")
def rejection_without_detail() -> None:
    """A wrong key is answered with 403 and an empty object."""
    patches.respond(".*", 403, b"{}", when=lambda _, response: response.status == 401)


@GROUP.mutation("AUT-004")
def key_repeated() -> None:
    """The rejection of a key repeats the key."""

    def changed(request: WireRequest, response: WireResponse) -> WireResponse:
        if response.status != 401:
            return response
        return attrs.evolve(response, content=json.dumps({"detail": f"wrong key {_key(request)}"}).encode())

    patches.change_response(".*", changed)


@GROUP.mutation("AUT-005")
def get_info_without_check() -> None:
    """get_info accepts any key."""
    patches.change_request("get_info", lambda request: _authorized(request) if _key(request) else request)


@GROUP.mutation("AUT-006")
def part_of_key_accepted() -> None:
    """A key that begins with the right one, without its last character, is accepted."""
    patches.change_request(
        ".*", lambda request: _authorized(request) if _key(request).startswith(KEY[:-1]) else request
    )


@GROUP.mutation("AUT-007")
def health_needs_key() -> None:
    """Healthz needs a key."""
    patches.respond("healthz", 401, when=lambda request, _: _key(request) != KEY)


@GROUP.mutation("AUT-008")
def header_has_a_case() -> None:
    """The header X-API-Key is not read in capitals."""
    original = EmbeddedServer.handle

    async def handle(self: EmbeddedServer, request: WireRequest) -> WireResponse:
        headers = {name: value for name, value in request.headers.items() if name != "X-API-Key"}
        return await original(self, attrs.evolve(request, headers=headers))

    EmbeddedServer.handle = handle  # type: ignore[method-assign]


@GROUP.mutation("AUT-009", "PRO-002", "SES-001", "SES-010", "SRV-002", "SRV-006", "SRV-011", client_config=TOKENS)
def token_is_old() -> None:
    """auth/token issues tokens that have expired."""
    patches.set_field("auth/token", jwt=EXPIRED)


@GROUP.mutation("AUT-010", client_config=TOKENS)
def tokens_unchecked() -> None:
    """Any token is accepted, whatever its signature and its time."""
    patches.change_request(".*", lambda request: _authorized(request) if _key(request).startswith("eyJ") else request)


@GROUP.mutation("AUT-011", client_config=TOKENS)
def no_www_authenticate() -> None:
    """The rejection of an expired token has no WWW-Authenticate."""
    patches.change_header("www-authenticate", None)


@GROUP.mutation("AUT-012")
def own_key_repeated() -> None:
    """The description of the client's own key contains the key."""
    note: dict[str, Any] = {"note": KEY}
    patches.set_field("auth/apikey/me", **note)
