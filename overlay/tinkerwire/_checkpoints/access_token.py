"""Validation of weights access tokens."""

from __future__ import annotations

from tinkerwire_base.validators import require_optional

from .._credentials.secret import is_sendable


def validate_access_token(token: str | None) -> None:
    """Raise an error, which does not show the token, for a value that cannot be a weights access token.

    Raises:
        ValueError: the token cannot be sent in a header.
        TypeError: the token is neither a str nor None.
    """
    require_optional("weights_access_token", token, str)
    if token and not is_sendable(token):
        raise ValueError("weights_access_token: must be printable ASCII without blanks; copy it again")
