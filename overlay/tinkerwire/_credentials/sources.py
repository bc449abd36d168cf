"""Sources of the credential: argument, environment, command and credentials file, in this order."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Protocol

from tinkerwire_base.errors import TinkerError

from .._transport.address import EMBEDDED, is_embedded, is_loopback, is_replay, refuse_plain_http
from .command import read_credential_command, run_command
from .credentials_file import FILE, read_default_key
from .refreshing import RefreshingCredential
from .secret import Secret, is_sendable

HEADERS_VARIABLE = "TINKERWIRE_HEADERS"


class Credential(Protocol):
    """Credential of a client; used on the loop thread."""

    async def get(self) -> Secret:
        """Return the current credential; raise TinkerError without one."""
        ...

    async def replace(self, rejected: Secret) -> Secret | None:
        """Return the replacement of a rejected credential; None without another one."""
        ...

    async def close(self) -> None:
        """Stop background work."""
        ...


class StaticCredential:
    """Key or token that is never refreshed."""

    def __init__(self, secret: Secret) -> None:
        self.secret = secret

    async def get(self) -> Secret:
        """Return the secret; raise TinkerError after its expiry."""
        if self.secret.expires_in_s() == 0:
            raise TinkerError("the API key is a JWT that has expired; get a new one")
        return self.secret

    async def replace(self, rejected: Secret) -> Secret | None:
        """Return None, because a static credential has no replacement."""
        return None

    async def close(self) -> None:
        """Do nothing."""


def resolve_credential(
    api_key: str | None, base_url: str, plain_http_hosts: Collection[str] | None = None
) -> Credential | None:
    """Return the credential from the argument, TINKER_API_KEY, TINKER_CREDENTIAL_CMD or the credentials file.

    The embedded server and recordings get none. Loopback servers need none, and never get the key of the file, which
    is for the Tinker service. The command runs at the first request that needs a credential.

    Raises:
        TinkerError: the credential is missing, malformed, or would be sent over plain HTTP to another machine.
    """
    if is_embedded(base_url) or is_replay(base_url):
        return None
    secret = read_api_key(api_key)
    credential: Credential | None = create_command_credential() if secret is None else StaticCredential(secret)
    if credential is None and not is_loopback(base_url):
        refuse_plain_http(base_url, plain_http_hosts)
        stored = read_default_key()
        if stored is None:
            raise TinkerError(
                f"no API key: give api_key=, set TINKER_API_KEY or TINKER_CREDENTIAL_CMD, run `tinkerwire auth login` "
                f"to store one in ~/{FILE}, or use the embedded server with base_url={EMBEDDED!r} (or "
                f"TINKER_BASE_URL={EMBEDDED})"
            )
        credential = StaticCredential(stored)
    if credential is not None:
        refuse_plain_http(base_url, plain_http_hosts)
    return credential


def read_api_key(api_key: str | None) -> Secret | None:
    """Return the key of the argument, then of TINKER_API_KEY; empty keys are ignored; TinkerError if malformed."""
    secret = Secret(api_key or os.environ.get("TINKER_API_KEY") or "")
    if not secret.reveal():
        return None
    if not is_sendable(secret.reveal()):
        raise TinkerError("the API key must be printable ASCII without blanks; copy it again")
    return secret


def create_command_credential() -> RefreshingCredential | None:
    """Return the credential of TINKER_CREDENTIAL_CMD, which runs again before a token expires or after a rejection."""
    command = read_credential_command()
    if command is None:
        return None
    hidden = Secret(command)

    async def run() -> Secret:
        return await run_command(hidden.reveal())

    return RefreshingCredential(run, "the credential of TINKER_CREDENTIAL_CMD")


def read_cloudflare_headers() -> dict[str, str]:
    """Return the headers for Cloudflare Access from the environment."""
    names = {
        "cf-access-client-id": "CLOUDFLARE_ACCESS_CLIENT_ID",
        "cf-access-client-secret": "CLOUDFLARE_ACCESS_CLIENT_SECRET",
    }
    headers = {header: os.environ.get(variable, "") for header, variable in names.items()}
    return {header: value for header, value in headers.items() if value}


def read_environment_headers() -> dict[str, str]:
    """Return the headers of TINKERWIRE_HEADERS, one ``Name: value`` a line, over those of Cloudflare Access.

    Raises:
        ValueError: a malformed line; the error does not show it, because it may hold a credential.
    """
    headers = read_cloudflare_headers()
    for number, line in enumerate(os.environ.get(HEADERS_VARIABLE, "").splitlines(), 1):
        if line.strip():
            name, colon, value = line.partition(":")
            if not (colon and name.strip()):
                raise ValueError(f"{HEADERS_VARIABLE}: line {number} must have the form 'Name: value'")
            headers[name.strip().lower()] = value.strip()
    return headers
