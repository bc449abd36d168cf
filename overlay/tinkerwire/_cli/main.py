"""The command line: ``tinkerwire serve``, ``tinkerwire demo`` and ``tinkerwire auth``."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ..version import DEFAULT_WIRE, __version__
from . import auth as auth
from . import demo as demo
from .redacting_parser import RedactingArgumentParser

if TYPE_CHECKING:
    from ..local import Quirks

EXIT_FAILED = 1
S = TypeVar("S")
T = TypeVar("T")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 done, 1 failed, 2 wrong usage."""
    options = _parser().parse_args(arguments)
    return int(options.run(options))


def _parser() -> argparse.ArgumentParser:
    parser = RedactingArgumentParser(prog="tinkerwire", description="A client and a small server of the Tinker API.")
    parser.add_argument("--version", action="version", version=f"tinkerwire {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    serve = commands.add_parser(
        "serve",
        help="serve the Tinker API on this machine, with small models that really train",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on")
    serve.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="HOST",
        help="answer requests for this name or address as well, beside loopback names, --host and the address at which "
        "a request arrives; may be given several times",
    )
    serve.add_argument("--port", type=_port, default=8080, help="port to listen on, 0 for any free one")
    serve.add_argument("--folder", default="tinkerwire-data", help="where runs and checkpoints are kept")
    serve.add_argument("--wire", type=_wire, default=DEFAULT_WIRE, help="wire version to speak")
    serve.add_argument("--long-poll", type=_seconds, default=30.0, help="seconds that a request for a result is held")
    serve.add_argument("--seed", type=int, help="make samples, adapters and injected faults the same in every run")
    serve.add_argument("--api-key", help="the only API key to let in; any is let in without")
    serve.add_argument("--strict-sequence", action="store_true", help="refuse gaps in a model's seq_ids")
    serve.add_argument(
        "--gap-wait", type=_seconds, default=10.0, help="seconds that operations behind a gap in seq_ids are held back"
    )
    serve.add_argument(
        "--flag",
        action="append",
        type=_flag,
        default=[],
        metavar="NAME=VALUE",
        help="tell clients this in client/config, as in proto_compress_fwdbwd=true; may be given several times",
    )
    serve.add_argument(
        "--alias",
        action="append",
        type=_alias,
        default=[],
        metavar="NAME=MODEL",
        help="offer a model under a further name, as in Qwen/Qwen3.5-9B-Base=tinkerwire/byte-small; may be given "
        "several times",
    )
    serve.add_argument(
        "--inject-faults",
        type=_fault_injection,
        metavar="LIST",
        help="fail on purpose: delay_s, p_408, p_429, p_5xx, p_reset, p_lost_reply and only, as in "
        "p_429=0.1,p_5xx=0.05,only=asample+forward",
    )
    serve.add_argument(
        "--quirks",
        type=_quirks,
        metavar="LIST",
        help="take on the ways of other servers, as in failure=500,short_paths,metrics=null,missing=optional; the "
        "switches are those of tinkerwire._server.Quirks, and docs/known-bugs.md tells of each",
    )
    serve.set_defaults(run=_serve, error=serve.error)
    demo.register(commands)
    auth.register(commands)
    return parser


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"{port} is not between 0 and 65535")
    return port


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a time in seconds")
    return seconds


# argparse shows the flag and the text of an ArgumentTypeError; it hides that of a ValueError.
def _wire(text: str) -> str:
    from .._server.http.openapi import load_contract  # noqa: PLC0415

    _checked(load_contract, text)
    return text


def _flag(text: str) -> tuple[str, Any]:
    from .._server.sessions.client_config import parse_flag  # noqa: PLC0415

    return _checked(parse_flag, text)


def _alias(text: str) -> tuple[str, str]:
    from .._server.sessions.catalogue import Catalogue, parse_alias  # noqa: PLC0415

    alias = _checked(parse_alias, text)
    _checked(Catalogue, dict([alias]))
    return alias


def _fault_injection(text: str) -> str:
    from ..local import FaultInjection  # noqa: PLC0415

    _checked(lambda given: FaultInjection.parse(given, 0), text)
    return text


def _quirks(text: str) -> Quirks:
    from ..local import Quirks  # noqa: PLC0415

    return _checked(Quirks.parse, text)


def _checked(read: Callable[[S], T], given: S) -> T:
    try:
        return read(given)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _serve(options: argparse.Namespace) -> int:
    # numpy and aiohttp are loaded by the commands that use them.
    from .._server.aiohttp_app import serve  # noqa: PLC0415
    from .._server.http.allowed_hosts import AllowedHosts  # noqa: PLC0415
    from .._server.http.openapi import load_contract  # noqa: PLC0415
    from .._server.sessions.client_config import ClientConfig  # noqa: PLC0415
    from ..local import EmbeddedServer, FaultInjection  # noqa: PLC0415

    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    try:
        ClientConfig(load_contract(options.wire), dict(options.flag))
    except ValueError as error:
        options.error(f"argument --flag: {error}")
    try:
        AllowedHosts(options.allow_host)
    except ValueError as error:
        options.error(f"argument --allow-host: {error}")
    spec = options.inject_faults
    injection = FaultInjection.parse(spec, options.seed or 0) if spec else None
    try:
        server = EmbeddedServer(
            folder=options.folder,
            wire_version=options.wire,
            long_poll_s=options.long_poll,
            strict_sequence=options.strict_sequence,
            gap_wait_s=options.gap_wait,
            aliases=dict(options.alias),
            client_config=dict(options.flag),
            api_key=options.api_key,
            seed=options.seed,
            fault_injection=injection,
            quirks=options.quirks or None,
        )
    except (ValueError, OSError) as fault:
        return _failed(str(fault))

    def say(address: str) -> None:
        models = ", ".join(server.base_models)
        sys.stdout.write(f"tinkerwire serves the Tinker API at {address} (models: {models})\n")
        sys.stdout.flush()

    try:
        asyncio.run(serve(server, options.host, options.port, allowed_hosts=options.allow_host, ready=say))
    except OSError as fault:
        return _failed(f"cannot listen on {options.host} port {options.port}: {fault}")
    if not server.is_idle:
        # A step that is running cannot be stopped, and numpy would wait for it at the exit.
        sys.stderr.flush()
        os._exit(0)
    return 0


def _failed(reason: str) -> int:
    sys.stderr.write(f"tinkerwire: {reason}\n")
    return EXIT_FAILED
