"""The source of the API key, and the check that a server may get the key."""

from __future__ import annotations

from tinkerwire_base.errors import TinkerError

from .._credentials.command import read_credential_command
from .._credentials.credentials_file import read_default_key
from .._credentials.official_key import read_environment_key
from .._credentials.sources import resolve_credential
from .._transport.address import is_loopback, parse_http_url
from .finding import Finding


def find_key_source(url: str) -> str | None:
    """Return the source of the key for a server; None without a key, and for a server that needs none.

    Raises:
        TinkerError: the credentials file or the command is unusable.
    """
    if parse_http_url(url) is None:
        return None
    if read_environment_key():
        return "TINKER_API_KEY"
    if read_credential_command() is not None:
        return "TINKER_CREDENTIAL_CMD"
    if not is_loopback(url) and read_default_key() is not None:
        return "credentials file"
    return None


def check_key(url: str) -> Finding:
    """Check that there is a key for a server, and that it may be sent there; send nothing."""
    try:
        source = find_key_source(url)
        if source is not None:
            resolve_credential(None, url)
    except (TinkerError, OSError, ValueError) as error:
        return Finding("key", "failed", str(error), "correct the setting; `tinkerwire config` lists all")
    if source is not None:
        return Finding("key", "ok", f"from {source}")
    if parse_http_url(url) is None:
        return Finding("key", "ok", "none; the embedded server and recordings need none")
    if is_loopback(url):
        return Finding("key", "ok", "none; a server on this machine needs none by default")
    return Finding("key", "failed", "missing", "set TINKER_API_KEY, or run `tinkerwire auth login`")
