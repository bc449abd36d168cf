"""Identity of the user, read from the token that authenticates the client."""

from __future__ import annotations

from tinkerwire_base.errors import TinkerError
from tinkerwire_generated import models

from .._connection.connection import Connection

ORGANIZATION = "tml:organization:"


class UnknownIdentityError(TinkerError, RuntimeError):
    """The client has no token, which alone identifies the user."""


async def read_identity(connection: Connection) -> models.WhoamiResponse:
    """Return the user and the organization that the token names.

    Raises:
        UnknownIdentityError: the client authenticates with an API key, which does not identify the user.
        TinkerError: the client cannot get a token, or the token does not name a user.
    """
    token = await connection.token()
    if token is None:
        raise UnknownIdentityError(
            "whoami: this server uses an API key or no credential, and only a token identifies its user; the server "
            "issues tokens if its client/config has pjwt_auth_enabled"
        )
    user, organization = token.claim("sub"), token.claim("org_id")
    if not user or not organization:
        raise TinkerError("whoami: the token of this server does not identify its user (sub or org_id is missing)")
    return models.WhoamiResponse(user_urn=user, org_urn=ORGANIZATION + organization, email=token.claim("email") or None)
