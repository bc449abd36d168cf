"""Where the credential comes from: argument, environment, command or credentials file, in this order."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Protocol

from tinkerwire_base.errors import TinkerError

from .._transport.address import EMBEDDED, is_embedded, is_loopback, refuse_plain_http
from .command import read_credential_command, run_command
from .credentials_file import FILE, read_default_key
from .refreshing import RefreshingCredential
from .secret import Secret, is_sendable

HEADERS_VARIABLE = "TINKERWIRE_HEADERS"


class Credential(Protocol):
    """What a server lets a client in by; used on the loop thread."""

    async def get(self) -> Secret:
        """What to send now; raises TinkerError when there is nothing."""
        ...

    async def replace(self, rejected: Secret) -> Secret | None:
        """What to send in place of something that the server refused; None when there is no other."""
        ...

    async def close(self) -> None:
        """Stop what goes on in the background."""
        ...


class StaticCredential:
    """A key, or a token that nobody renews."""

    def __init__(self, secret: Secret) -> None:
        self.secret = secret

    async def get(self) -> Secret:
        """See :class:`Credential`."""
        if self.secret.expires_in_s() == 0:
            raise TinkerError("the API key is a token, and its time is over; get a new one")
        return self.secret

    async def replace(self, rejected: Secret) -> Secret | None:
        """See :class:`Credential`."""
        return None

    async def close(self) -> None:
        """See :class:`Credential`."""


def resolve_credential(
    api_key: str | None, base_url: str, plain_http_hosts: Collection[str] | None = None
) -> Credential | None:
    """The argument, then TINKER_API_KEY, TINKER_CREDENTIAL_CMD, the credentials file; None where none is needed.

    The embedded server is sent none. Loopback servers do without one, and are not sent that of the file, which is
    for the Tinker service. A command does not run before a request needs it.

    Raises:
        TinkerError: there is none, it cannot be one, or it would go over plain http to another machine.
    """
    if is_embedded(base_url):
        return None
    secret = read_api_key(api_key)
    credential: Credential | None = create_command_credential() if secret is None else StaticCredential(secret)
    if credential is None and not is_loopback(base_url):
        refuse_plain_http(base_url, plain_http_hosts)
        stored = read_default_key()
        if stored is None:
            raise TinkerError(
                f"no API key: give api_key=, set TINKER_API_KEY or TINKER_CREDENTIAL_CMD, say `tinkerwire auth login` "
                f"so that ~/{FILE} has one, or use the embedded server with base_url={EMBEDDED!r} (or "
                f"TINKER_BASE_URL={EMBEDDED})"
            )
        credential = StaticCredential(stored)
    if credential is not None:
        refuse_plain_http(base_url, plain_http_hosts)
    return credential


def read_api_key(api_key: str | None) -> Secret | None:
    """The key of the argument, then of TINKER_API_KEY; empty ones count as none. TinkerError when it cannot be one."""
    secret = Secret(api_key or os.environ.get("TINKER_API_KEY") or "")
    if not secret.reveal():
        return None
    if not is_sendable(secret.reveal()):
        raise TinkerError("the API key holds blanks or characters beyond printable ASCII; check how it was copied")
    return secret


def create_command_credential() -> RefreshingCredential | None:
    """The credential that TINKER_CREDENTIAL_CMD prints: run again before a token is over, or when it is refused."""
    command = read_credential_command()
    if command is None:
        return None
    hidden = Secret(command)

    async def run() -> Secret:
        return await run_command(hidden.reveal())

    return RefreshingCredential(run, "the credential of TINKER_CREDENTIAL_CMD")


def read_cloudflare_headers() -> dict[str, str]:
    """The headers that Cloudflare Access asks for, from the environment."""
    names = {
        "cf-access-client-id": "CLOUDFLARE_ACCESS_CLIENT_ID",
        "cf-access-client-secret": "CLOUDFLARE_ACCESS_CLIENT_SECRET",
    }
    found = {header: os.environ.get(variable, "") for header, variable in names.items()}
    return {header: value for header, value in found.items() if value}


def read_environment_headers() -> dict[str, str]:
    """The headers of TINKERWIRE_HEADERS, one ``Name: value`` a line, over those of Cloudflare Access.

    Raises:
        ValueError: a line of another form; it is not shown, as it may hold a credential.
    """
    found = read_cloudflare_headers()
    for number, line in enumerate(os.environ.get(HEADERS_VARIABLE, "").splitlines(), 1):
        if line.strip():
            name, colon, value = line.partition(":")
            if not (colon and name.strip()):
                raise ValueError(f"{HEADERS_VARIABLE}: line {number} is not of the form 'Name: value'")
            found[name.strip().lower()] = value.strip()
    return found
