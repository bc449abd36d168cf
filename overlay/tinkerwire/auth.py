"""Checks of credentials and of access to the service, under the names of the official SDK."""

from __future__ import annotations

import os

from tinkerwire_base.errors import TinkerError

from ._connection.retry import SINGLE_ATTEMPT
from ._credentials.official_key import is_well_formed, read_environment_key, read_official_default_key
from ._credentials.secret import JWT_PREFIX
from ._service import ServiceClient

__all__ = ["get_tinker_token", "raise_if_tinker_not_accessible", "tinker_has_credentials"]


def get_tinker_token() -> str | None:
    """Return the API key of TINKER_API_KEY, else that of the credentials file; None if neither has a valid key.

    The key is in plain text. TINKER_CREDENTIAL_CMD is not run. A key or file in a form that the official SDK rejects
    is ignored; the clients raise an error that names the problem.
    """
    key = read_environment_key()
    if key:
        return key if is_well_formed(key) else None
    return read_official_default_key()


def tinker_has_credentials() -> bool:
    """Return True if there is a valid key, or a command that prints a key; do not try either."""
    key, command = read_environment_key(), os.environ.get("TINKER_CREDENTIAL_CMD")
    if key.startswith(JWT_PREFIX):
        return is_well_formed(key)
    return bool(command) or get_tinker_token() is not None


def raise_if_tinker_not_accessible() -> None:
    """Request the models of the server of TINKER_BASE_URL once, to check that it accepts the credential; blocks.

    Raises:
        TinkerError: the server rejects the credential, or cannot be reached.
    """
    try:
        with ServiceClient(retry=SINGLE_ATTEMPT) as client:
            client.get_server_capabilities()
    except TinkerError:
        raise
    except Exception as error:
        raise TinkerError(f"cannot access the Tinker service: {type(error).__name__}: {error}") from error
