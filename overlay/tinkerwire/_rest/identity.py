"""Who the user of a client is, as the token says by which the server knows it."""

from __future__ import annotations

from tinkerwire_base.errors import TinkerError
from tinkerwire_generated.models import WhoamiResponse

from .._connection.connection import Connection

ORGANIZATION = "tml:organization:"


class UnknownIdentityError(TinkerError, RuntimeError):
    """The server does not say who the user is."""


async def read_identity(connection: Connection) -> WhoamiResponse:
    """The user and the organization, without asking the server for more than a token.

    Raises:
        UnknownIdentityError: the server knows the user by an API key, which says nothing.
        TinkerError: what obtaining a token met, or a token without a user.
    """
    token = await connection.token()
    if token is None:
        raise UnknownIdentityError(
            "whoami: this server is asked with an API key, or with none, and only a token says whose it is; the server "
            "gives tokens where its client/config has pjwt_auth_enabled"
        )
    user, organization = token.claim("sub"), token.claim("org_id")
    if not user or not organization:
        raise TinkerError("whoami: the token of this server does not say whose it is (no sub, or no org_id)")
    return WhoamiResponse(user_urn=user, org_urn=ORGANIZATION + organization, email=token.claim("email") or None)
