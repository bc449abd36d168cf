"""The commands ``tinkerwire auth login``, ``logout``, ``list`` and ``use`` for the keys of the credentials file."""

from __future__ import annotations

import argparse
import getpass
import os
import platform
import sys
from typing import Any, TypeVar

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

T = TypeVar("T")

LOGIN_TIMEOUT_S = 30.0
"""Time limit of a request about a key."""
OVERRIDING_VARIABLES = ("TINKER_API_KEY", "TINKER_CREDENTIAL_CMD")
"""Variables that the client reads before the credentials file."""
EXIT_INTERRUPTED = 130


def register(subparsers: Any) -> None:
    """Add the commands to the subparsers of a parser."""
    parser = subparsers.add_parser("auth", hide_values=True, help="manage the API keys of the credentials file")
    actions = parser.add_subparsers(required=True, metavar="COMMAND")

    login = actions.add_parser("login", hide_values=True, help="ask for an API key, test and store it")
    login.add_argument("--stdin", action="store_true", help="read the key from standard input instead of a prompt")
    _add_base_url(login)
    # The parser accepts these arguments, because its own error would show a value that may be a key.
    login.add_argument("positional_key", nargs="*", help=argparse.SUPPRESS)
    login.add_argument("--key", "--api-key", dest="option_key", help=argparse.SUPPRESS)
    login.set_defaults(run=lambda options: _run(_login, options))

    logout = actions.add_parser("logout", hide_values=True, help="remove a key from the file")
    logout.add_argument("key", nargs="?", help="id or name of the key; by default the default key")
    _add_base_url(logout)
    logout.set_defaults(run=lambda options: _run(_logout, options))

    keys = actions.add_parser("list", hide_values=True, help="list the keys without their values")
    keys.set_defaults(run=lambda options: _run(_list, options))

    use = actions.add_parser("use", hide_values=True, help="make a key the default")
    use.add_argument("key", help="id or name of the key")
    use.set_defaults(run=lambda options: _run(_use, options))


def _add_base_url(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--base-url", help="URL of the server; by default TINKER_BASE_URL, then the Tinker service")


def _run(command: Any, options: argparse.Namespace) -> int:
    try:
        command(options)
    except (TinkerError, ValueError) as error:
        sys.stderr.write(f"tinkerwire auth: {_escape(str(error))}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        return EXIT_INTERRUPTED
    return 0


def _require_lock_package() -> None:
    require_packages("a change of the credentials file", "cli", "filelock")


def _login(options: argparse.Namespace) -> None:
    if options.positional_key or options.option_key is not None:
        raise ValueError("the API key must not be an argument, which other users can see; use the prompt or --stdin")
    url = resolve_base_url(options.base_url)
    if is_embedded(url):
        raise ValueError(f"base_url={url!r}, the embedded server, needs no key")
    _require_lock_package()
    secret = _read_key(with_prompt=not options.stdin, url=url)
    previous = next((key for key in list_keys() if key.is_default), None)
    try:
        metadata = _send(url, secret, get_own_api_key())
    except TinkerError as error:
        raise TinkerError(f"the key was tested and not stored: {error}") from error
    stored = add_key(secret, metadata)
    _print(f"Signed in as {stored.email} ({stored.organization}). The default key is now {_label(stored)}.")
    if previous is not None and previous.id != stored.id:
        _print(f"The previous default was {_label(previous)}; `tinkerwire auth use {previous.id}` restores it.")
    _print_overrides()


def _logout(options: argparse.Namespace) -> None:
    _require_lock_package()
    key = find_key(options.key)
    error = None
    if key.type == "generated":
        # The file holds the only copy of a generated key, so the server need not keep it.
        try:
            _send(resolve_base_url(options.base_url), key.secret, delete_own_api_key())
        except TinkerError as deletion_error:
            error = deletion_error
    remove_key(key.id)
    _print(f"Removed the key {_label(key)} from {credentials_path()}.")
    if error is not None:
        raise TinkerError(f"the server still has the key; delete it in the console ({console_urls.KEYS}): {error}")
    if key.type != "generated":
        _print(f"The key stays valid on the server; delete it in the console ({console_urls.KEYS}).")
    if key.is_default and list_keys():
        _print("No default key is set; choose one with `tinkerwire auth use KEY`.")


def _list(_: argparse.Namespace) -> None:
    keys = list_keys()
    if not keys:
        _print(f"{credentials_path()} has no keys; `tinkerwire auth login` adds one.")
        return
    rows = [("", "ID", "NAME", "TYPE", "ORGANIZATION", "USER", "FINGERPRINT")]
    for key in keys:
        mark = "*" if key.is_default else ""
        fingerprint = key.secret.fingerprint if key.secret.reveal() else ""
        rows.append((mark, key.id, key.name, key.type, key.organization, key.email, fingerprint))
    rows = [tuple(_escape(cell) or "-" * bool(place) for place, cell in enumerate(row)) for row in rows]  # type: ignore[misc]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        _print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    _print_overrides()


def _use(options: argparse.Namespace) -> None:
    _require_lock_package()
    _print(f"The default key is now {_label(use_key(options.key))}.")
    _print_overrides()


def _read_key(*, with_prompt: bool, url: str) -> Secret:
    if sys.stdin is None:
        raise ValueError("standard input is closed; open it, because the command reads the key from it")
    if with_prompt and not sys.stdin.isatty():
        raise ValueError("the prompt needs a terminal; `tinkerwire auth login --stdin` reads the key from a pipe")
    if with_prompt and url == DEFAULT_BASE_URL:
        _print(f"Create an API key: {console_urls.new_key_page(f'tinkerwire-{platform.node()}')}")
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


def _print_overrides() -> None:
    for name in OVERRIDING_VARIABLES:
        if os.environ.get(name):
            _print(f"{name} is set and overrides the default key.")


def _print(text: str) -> None:
    sys.stdout.write(f"{_escape(text)}\n")


def _escape(text: str) -> str:
    """Replace control characters, which a terminal would obey: names come from servers."""
    return "".join(character if character.isprintable() else "?" for character in text)
