"""Whether there is a credential, and whether it opens the service; for scripts, and as the official SDK names it."""

from __future__ import annotations

from tinkerwire_base.errors import TinkerError

from .credentials.command import credential_command
from .credentials.sources import given_key
from .credentials.stored_keys import stored_key
from .service import ServiceClient

__all__ = ["get_tinker_token", "raise_if_tinker_not_accessible", "tinker_has_credentials"]


def get_tinker_token() -> str | None:
    """The API key of TINKER_API_KEY, or of the credentials file unless TINKER_CREDENTIAL_CMD is set; None for neither.

    It is the key in plain text. The command is not run.

    Raises:
        TinkerError: the key cannot be one, or the file cannot be used.
    """
    secret = given_key(None)
    if secret is None and credential_command() is None:
        secret = stored_key()
    return None if secret is None else secret.reveal()


def tinker_has_credentials() -> bool:
    """Whether there is a key, or a command that prints one; neither is tried. Errors: see :func:`get_tinker_token`."""
    return credential_command() is not None or get_tinker_token() is not None


def raise_if_tinker_not_accessible() -> None:
    """Ask the server of TINKER_BASE_URL for its models, to see whether it lets us in; it blocks.

    Raises:
        TinkerError: it does not, or cannot be reached.
    """
    try:
        with ServiceClient() as client:
            client.get_server_capabilities()
    except TinkerError:
        raise
    except Exception as fault:
        raise TinkerError(f"the Tinker service cannot be used: {type(fault).__name__}: {fault}") from fault
