"""The commands ``tinkerwire auth``: keys of the credentials file, and checks of the credential."""

from __future__ import annotations

import getpass
import os
import platform
import sys
from typing import TypeVar

import click

from tinkerwire_base import console_urls
from tinkerwire_base.call import Call
from tinkerwire_base.errors import TinkerError
from tinkerwire_generated.api.auth import delete_own_api_key, get_own_api_key
from tinkerwire_generated.availability import NEWEST

from .._credentials.credentials_file import credentials_path
from .._credentials.secret import Secret
from .._credentials.stored_keys import StoredKey, add_key, find_key, list_keys, remove_key, use_key
from .._extras import require_packages
from .._transport.address import DEFAULT_BASE_URL, is_embedded, resolve_base_url
from .client import open_rest_client
from .errors import CommandFailed
from .framework import SharedOptions, group, pass_options
from .output import Table, format_flag, print_result, properties

T = TypeVar("T")

LOGIN_TIMEOUT_S = 30.0
"""Time limit of a request about a key."""
OVERRIDING_VARIABLES = ("TINKER_API_KEY", "TINKER_CREDENTIAL_CMD")
"""Variables that the client reads before the credentials file."""


@group("auth", hide_values=True)
def cli() -> None:
    """Sign in and out, and check the credential."""


@cli.command("login")
@click.option("--stdin", "from_stdin", is_flag=True, help="Read the key from standard input instead of a prompt.")
# The command accepts these arguments, because the error of the parser would show a value that may be a key.
@click.argument("positional_key", nargs=-1, metavar="")
@click.option("--key", "--api-key", "option_key", hidden=True)
@pass_options
def _login(options: SharedOptions, from_stdin: bool, positional_key: tuple[str, ...], option_key: str | None) -> None:
    """Ask for an API key, test it, and store it as the default."""
    if positional_key or option_key is not None:
        raise ValueError("the API key must not be an argument, which other users can see; use the prompt or --stdin")
    url = resolve_base_url(options.base_url)
    if is_embedded(url):
        raise ValueError(f"base_url={url!r}, the embedded server, needs no key")
    _require_lock_package()
    secret = _read_key(with_prompt=not from_stdin, url=url)
    previous = next((key for key in list_keys() if key.is_default), None)
    try:
        metadata = _send(url, secret, get_own_api_key())
    except TinkerError as error:
        raise TinkerError(f"the key was tested and not stored: {error}") from error
    stored = add_key(secret, metadata)
    lines = [f"Signed in as {stored.email} ({stored.organization}). The default key is now {_label(stored)}."]
    if previous is not None and previous.id != stored.id:
        lines.append(f"The previous default was {_label(previous)}; `tinkerwire auth use {previous.id}` restores it.")
    _print_change(options, stored, [*lines, *_list_overrides()])


@cli.command("logout")
@click.argument("key", required=False)
@pass_options
def _logout(options: SharedOptions, key: str | None) -> None:
    """Remove a key from the credentials file.

    KEY is the id or name of the key; by default the default key.
    """
    _require_lock_package()
    stored = find_key(key)
    error = None
    if stored.type == "generated":
        # The file holds the only copy of a generated key, so the server need not keep it.
        try:
            _send(resolve_base_url(options.base_url), stored.secret, delete_own_api_key())
        except TinkerError as deletion_error:
            error = deletion_error
    remove_key(stored.id)
    lines = [f"Removed the key {_label(stored)} from {credentials_path()}."]
    if error is None and stored.type != "generated":
        lines.append(f"The key stays valid on the server; delete it in the console ({console_urls.KEYS}).")
    if error is None and stored.is_default and list_keys():
        lines.append("No default key is set; choose one with `tinkerwire auth use KEY`.")
    _print_change(options, stored, lines)
    if error is not None:
        raise CommandFailed(f"the server still has the key; delete it in the console ({console_urls.KEYS}): {error}")


@cli.command("list")
@pass_options
def _list_stored(options: SharedOptions) -> None:
    """List the keys of the credentials file without their values."""
    keys = [_describe(key) for key in list_keys()]
    if not keys:
        text = f"{credentials_path()} has no keys; `tinkerwire auth login` adds one."
        print_result(options, {"keys": []}, text)
        return
    columns = ("", "ID", "Name", "Type", "Organization", "User", "Fingerprint")
    rows = []
    for key in keys:
        mark = "*" if key["is_default"] else " "
        rows.append([mark, *(str(key[column.lower()] or "") for column in columns[1:])])
    print_result(options, {"keys": keys}, Table(columns, rows))
    _print_lines(options, _list_overrides())


@cli.command("use")
@click.argument("key")
@pass_options
def _use(options: SharedOptions, key: str) -> None:
    """Make a key the default.

    KEY is the id or name of the key.
    """
    _require_lock_package()
    stored = use_key(key)
    _print_change(options, stored, [f"The default key is now {_label(stored)}.", *_list_overrides()])


@cli.command("status")
@pass_options
def _status(options: SharedOptions) -> None:
    """Check that there is a credential, and that the server accepts it."""
    from ..auth import tinker_has_credentials  # noqa: PLC0415

    url = resolve_base_url(options.base_url)
    has_credential = tinker_has_credentials()
    problem: str | None = None
    try:
        with open_rest_client(options) as rest:
            rest.get_server_capabilities().result()
    except (TinkerError, OSError, ValueError) as error:
        problem = str(error)
    data = {"base_url": url, "has_credential": has_credential, "is_accessible": problem is None}
    pairs = {
        "Server": url,
        "Credential": format_flag(has_credential),
        "Accessible": format_flag(problem is None),
    }
    print_result(options, data, properties(pairs))
    if problem is not None:
        raise CommandFailed(f"{problem}; `tinkerwire doctor` checks the connection")


@cli.command("whoami")
@pass_options
def _whoami(options: SharedOptions) -> None:
    """Show the user and the organization of the credential."""
    with open_rest_client(options) as rest:
        identity = rest.whoami().result()
    pairs = {"Email": identity.email or "-", "User": identity.user_urn, "Organization": identity.org_urn or "-"}
    print_result(options, identity.model_dump(mode="json"), properties(pairs))


def _require_lock_package() -> None:
    require_packages("a change of the credentials file", "cli", "filelock")


def _read_key(*, with_prompt: bool, url: str) -> Secret:
    if sys.stdin is None:
        raise ValueError("standard input is closed; open it, because the command reads the key from it")
    if with_prompt and not sys.stdin.isatty():
        raise ValueError("the prompt needs a terminal; `tinkerwire auth login --stdin` reads the key from a pipe")
    if with_prompt and url == DEFAULT_BASE_URL:
        click.echo(f"Create an API key: {console_urls.new_key_page(f'tinkerwire-{platform.node()}')}", err=True)
    try:
        # getpass does not echo the key.
        secret = Secret((getpass.getpass("API key: ") if with_prompt else sys.stdin.readline()).strip())
    except EOFError:
        secret = Secret("")
    if not secret.reveal():
        raise ValueError("the API key must not be empty")
    return secret


def _send(url: str, secret: Secret, call: Call[T]) -> T:
    # Only commands that send a request load the transport.
    from .._connection.retry import RetryConfig  # noqa: PLC0415
    from .._lifecycle.connecting import open_connection  # noqa: PLC0415
    from .._lifecycle.lifetime import Lifetime  # noqa: PLC0415
    from .._transport.backpressure import Traffic  # noqa: PLC0415

    # An explicit version skips discovery, and the request carries the key itself.
    retry = RetryConfig(progress_timeout=LOGIN_TIMEOUT_S)
    connection = open_connection(url, secret.reveal(), wire_version=NEWEST, retry=retry)
    lifetime = Lifetime(connection)
    try:
        return connection.start(lambda: connection.call(call, Traffic.REST), call.operation.name).result()
    finally:
        lifetime.close().result()


def _label(key: StoredKey) -> str:
    return f"{key.name!r} ({key.id}, fingerprint {key.secret.fingerprint})"


def _describe(key: StoredKey) -> dict[str, object]:
    return {
        "id": key.id,
        "name": key.name,
        "type": key.type,
        "organization": key.organization,
        "user": key.email,
        "fingerprint": key.secret.fingerprint if key.secret.reveal() else None,
        "is_default": key.is_default,
    }


def _list_overrides() -> list[str]:
    return [f"{name} is set and overrides the default key." for name in OVERRIDING_VARIABLES if os.environ.get(name)]


def _print_change(options: SharedOptions, key: StoredKey, lines: list[str]) -> None:
    if options.as_json:
        print_result(options, {"key": _describe(key), "messages": lines}, "")
    else:
        _print_lines(options, lines)


def _print_lines(options: SharedOptions, lines: list[str]) -> None:
    for line in lines if not options.as_json else []:
        print_result(options, None, line)
