"""Credentials and access: are there any, and do they open the service; under the names of the official SDK."""

from __future__ import annotations

import os

from tinkerwire_base.errors import TinkerError

from ._connection.retry import RetryConfig
from ._credentials.checks import environment_key, is_well_formed, well_formed_stored_key
from ._credentials.secret import JWT_PREFIX
from ._service import ServiceClient

__all__ = ["get_tinker_token", "raise_if_tinker_not_accessible", "tinker_has_credentials"]


def get_tinker_token() -> str | None:
    """Return the API key of TINKER_API_KEY, else that of the credentials file; None where neither has a valid one.

    The key is in plain text. TINKER_CREDENTIAL_CMD is not run. A key or a file of another form than the official SDK
    takes counts as none; the clients say what is wrong with it.
    """
    key = environment_key()
    if key:
        return key if is_well_formed(key) else None
    return well_formed_stored_key()


def tinker_has_credentials() -> bool:
    """Return whether there is a valid key, or a command that prints one; neither is tried."""
    key, command = environment_key(), os.environ.get("TINKER_CREDENTIAL_CMD")
    if key.startswith(JWT_PREFIX):
        return is_well_formed(key)
    return bool(command) or get_tinker_token() is not None


def raise_if_tinker_not_accessible() -> None:
    """Ask the server of TINKER_BASE_URL for its models once, to see whether it accepts the credential; it blocks.

    Raises:
        TinkerError: it does not, or cannot be reached.
    """
    try:
        with ServiceClient(retry=RetryConfig(enable_retry_logic=False)) as client:
            client.get_server_capabilities()
    except TinkerError:
        raise
    except Exception as error:
        raise TinkerError(f"the Tinker service cannot be used: {type(error).__name__}: {error}") from error
