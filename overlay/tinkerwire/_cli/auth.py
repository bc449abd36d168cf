"""The commands ``tinkerwire auth login``, ``logout``, ``list`` and ``use``: the API keys of the credentials file."""

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
from .._transport.address import DEFAULT_BASE_URL, is_embedded, resolve_base_url

T = TypeVar("T")

PATIENCE_S = 30.0
"""How long the server is asked whose a key is."""
GO_BEFORE = ("TINKER_API_KEY", "TINKER_CREDENTIAL_CMD")
INTERRUPTED = 130


def register(commands: Any) -> None:
    """Add the commands to a parser's commands."""
    parser = commands.add_parser("auth", is_discreet=True, help="the API keys that are kept in the home folder")
    deeds = parser.add_subparsers(required=True, metavar="COMMAND")

    login = deeds.add_parser("login", is_discreet=True, help="ask for an API key, try it, and keep it as the default")
    login.add_argument("--stdin", action="store_true", help="read the key from standard input rather than a prompt")
    _add_base_url(login)
    # Taken so that the parser does not show in its error what may be a key.
    login.add_argument("given", nargs="*", help=argparse.SUPPRESS)
    login.add_argument("--key", "--api-key", dest="named", help=argparse.SUPPRESS)
    login.set_defaults(run=lambda options: _run(_login, options))

    logout = deeds.add_parser("logout", is_discreet=True, help="take a key out of the file")
    logout.add_argument("key", nargs="?", help="its id or name; without, the default")
    _add_base_url(logout)
    logout.set_defaults(run=lambda options: _run(_logout, options))

    keys = deeds.add_parser("list", is_discreet=True, help="say which keys there are; none is shown")
    keys.set_defaults(run=lambda options: _run(_list, options))

    use = deeds.add_parser("use", is_discreet=True, help="make a key the default")
    use.add_argument("key", help="its id or name")
    use.set_defaults(run=lambda options: _run(_use, options))


def _add_base_url(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--base-url", help="the server; default TINKER_BASE_URL, then the Tinker service")


def _run(command: Any, options: argparse.Namespace) -> int:
    try:
        command(options)
    except (TinkerError, ValueError) as error:
        sys.stderr.write(f"tinkerwire auth: {_plain(str(error))}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        return INTERRUPTED
    return 0


def _login(options: argparse.Namespace) -> None:
    if options.given or options.named is not None:
        raise ValueError("on the command line a key can be read by others; leave it away and give it to the prompt")
    url = resolve_base_url(options.base_url)
    if is_embedded(url):
        raise ValueError(f"base_url={url!r}, the embedded server, needs no key")
    secret = _typed(with_prompt=not options.stdin, url=url)
    before = next((each for each in list_keys() if each.is_default), None)
    try:
        about = _ask(url, secret, get_own_api_key())
    except TinkerError as error:
        raise TinkerError(f"the key was tried and not kept: {error}") from error
    kept = add_key(secret, about)
    _say(f"Signed in as {kept.email} ({kept.organization}). The key {_named(kept)} is the default now.")
    if before is not None and before.id != kept.id:
        _say(f"Before, it was {_named(before)}; `tinkerwire auth use {before.id}` goes back.")
    _say_what_goes_before()


def _logout(options: argparse.Namespace) -> None:
    found = find_key(options.key)
    error = None
    if found.type == "generated":
        # Nobody else has it, so it is of no use once it is gone from here.
        try:
            _ask(resolve_base_url(options.base_url), found.secret, delete_own_api_key())
        except TinkerError as met:
            error = met
    remove_key(found.id)
    _say(f"Removed the key {_named(found)} from {credentials_path()}.")
    if error is not None:
        raise TinkerError(f"the server still has it, delete it in the console ({console_urls.KEYS}): {error}")
    if found.type != "generated":
        _say(f"On the server it is as it was; the console ({console_urls.KEYS}) deletes keys of the Tinker service.")
    if found.is_default and list_keys():
        _say("None of the others is the default; `tinkerwire auth use KEY` makes one it.")


def _list(_: argparse.Namespace) -> None:
    keys = list_keys()
    if not keys:
        _say(f"{credentials_path()} has no keys; `tinkerwire auth login` adds one.")
        return
    rows = [("", "ID", "NAME", "TYPE", "ORGANIZATION", "USER", "FINGERPRINT")]
    for each in keys:
        mark = "*" if each.is_default else ""
        shown = each.secret.fingerprint if each.secret.reveal() else ""
        rows.append((mark, each.id, each.name, each.type, each.organization, each.email, shown))
    rows = [tuple(_plain(cell) or "-" * bool(place) for place, cell in enumerate(row)) for row in rows]  # type: ignore[misc]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        _say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    _say_what_goes_before()


def _use(options: argparse.Namespace) -> None:
    _say(f"The key {_named(use_key(options.key))} is the default now.")
    _say_what_goes_before()


def _typed(*, with_prompt: bool, url: str) -> Secret:
    if sys.stdin is None:
        raise ValueError("standard input is closed, from which the key is to be read")
    if with_prompt and not sys.stdin.isatty():
        raise ValueError("no terminal to ask for the key on; `tinkerwire auth login --stdin` reads it from a pipe")
    if with_prompt and url == DEFAULT_BASE_URL:
        _say(f"Make an API key: {console_urls.new_key_page(f'tinkerwire-{platform.node()}')}")
    try:
        # The prompt does not show what is typed.
        secret = Secret((getpass.getpass("API key: ") if with_prompt else sys.stdin.readline()).strip())
    except EOFError:
        secret = Secret("")
    if not secret.reveal():
        raise ValueError("no API key was given")
    return secret


def _ask(url: str, secret: Secret, call: Call[T]) -> T:
    # What sends is loaded only where something is sent.
    from .._connection.retry import RetryConfig  # noqa: PLC0415
    from .._lifecycle.connecting import open_connection  # noqa: PLC0415
    from .._lifecycle.lifetime import Lifetime  # noqa: PLC0415
    from .._transport.backpressure import Traffic  # noqa: PLC0415

    # With the version given, the key itself is sent, and nothing is asked for beforehand.
    retry = RetryConfig(progress_timeout=PATIENCE_S)
    connection = open_connection(url, secret.reveal(), wire_version=NEWEST, retry=retry)
    lifetime = Lifetime(connection)
    try:
        return connection.start(lambda: connection.call(call, Traffic.REST), call.operation.name).result()
    finally:
        lifetime.close().result()


def _named(key: StoredKey) -> str:
    return f"{key.name!r} ({key.id}, fingerprint {key.secret.fingerprint})"


def _say_what_goes_before() -> None:
    for name in GO_BEFORE:
        if os.environ.get(name):
            _say(f"{name} is set, and goes before it.")


def _say(text: str) -> None:
    sys.stdout.write(f"{_plain(text)}\n")


def _plain(text: str) -> str:
    """What a terminal shows and does not obey: names come from servers."""
    return "".join(each if each.isprintable() else "?" for each in text)
