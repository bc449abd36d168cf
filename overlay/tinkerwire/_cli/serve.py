"""The command ``tinkerwire serve``."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ..version import DEFAULT_WIRE

if TYPE_CHECKING:
    from ..local import Quirks

EXIT_FAILED = 1
S = TypeVar("S")
T = TypeVar("T")


def register(subparsers: Any) -> None:
    """Add the command to the subparsers of a parser."""
    parser = subparsers.add_parser(
        "serve",
        help="serve the Tinker API on this machine, with small models that really train",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="HOST",
        help="accept requests for this name or address, in addition to loopback names, --host and the address at which "
        "a request arrives; repeatable",
    )
    parser.add_argument("--port", type=_parse_port, default=8080, help="port to listen on, 0 for any free port")
    parser.add_argument("--folder", default="tinkerwire-data", help="folder for runs and checkpoints")
    parser.add_argument("--wire", type=_parse_wire, default=DEFAULT_WIRE, help="wire version to speak")
    parser.add_argument("--long-poll", type=_parse_seconds, default=30.0, help="seconds to hold a poll for a result")
    parser.add_argument("--seed", type=int, help="make samples, adapters and injected faults the same in every run")
    parser.add_argument("--api-key", help="the only API key to accept; by default the server accepts any")
    parser.add_argument("--strict-sequence", action="store_true", help="reject gaps in a model's seq_ids")
    parser.add_argument(
        "--gap-wait", type=_parse_seconds, default=10.0, help="seconds to hold operations behind a gap in seq_ids"
    )
    parser.add_argument(
        "--flag",
        action="append",
        type=_parse_flag,
        default=[],
        metavar="NAME=VALUE",
        help="set a flag of client/config, such as proto_compress_fwdbwd=true; repeatable",
    )
    parser.add_argument(
        "--alias",
        action="append",
        type=_parse_alias,
        default=[],
        metavar="NAME=MODEL",
        help="serve a model under a second name, such as Qwen/Qwen3.5-9B-Base=tinkerwire/byte-small; repeatable",
    )
    parser.add_argument(
        "--inject-faults",
        type=_validate_fault_injection,
        metavar="LIST",
        help="inject faults: delay_s, p_408, p_429, p_5xx, p_reset, p_lost_reply and only, such as "
        "p_429=0.1,p_5xx=0.05,only=asample+forward",
    )
    parser.add_argument(
        "--quirks",
        type=_parse_quirks,
        metavar="LIST",
        help="emulate quirks of other servers, such as failure=500,short_paths,metrics=null,missing=optional; the "
        "quirks are the fields of tinkerwire.local.Quirks, and docs/known-bugs.md describes them",
    )
    parser.set_defaults(run=_serve, error=parser.error)


def _parse_port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"{port} is not between 0 and 65535")
    return port


def _parse_seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a time in seconds")
    return seconds


# argparse shows the flag and the text of an ArgumentTypeError; it hides the text of a ValueError.
def _parse_wire(text: str) -> str:
    from .._server.http.openapi import load_contract  # noqa: PLC0415

    _show_reason(load_contract, text)
    return text


def _parse_flag(text: str) -> tuple[str, Any]:
    from .._server.sessions.client_config import parse_flag  # noqa: PLC0415

    return _show_reason(parse_flag, text)


def _parse_alias(text: str) -> tuple[str, str]:
    from .._server.sessions.catalogue import Catalogue, parse_alias  # noqa: PLC0415

    alias = _show_reason(parse_alias, text)
    _show_reason(Catalogue, dict([alias]))
    return alias


def _validate_fault_injection(text: str) -> str:
    from ..local import FaultInjection  # noqa: PLC0415

    _show_reason(lambda text: FaultInjection.parse(text, 0), text)
    return text


def _parse_quirks(text: str) -> Quirks:
    from ..local import Quirks  # noqa: PLC0415

    return _show_reason(Quirks.parse, text)


def _show_reason(parse: Callable[[S], T], value: S) -> T:
    """Call a parser, and raise its ValueError as an error that argparse shows."""
    try:
        return parse(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _serve(options: argparse.Namespace) -> int:
    # Commands that do not serve load neither numpy nor aiohttp.
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
    except (ValueError, OSError) as error:
        return _print_failure(str(error))

    def print_address(address: str) -> None:
        models = ", ".join(server.base_models)
        sys.stdout.write(f"tinkerwire serves the Tinker API at {address} (models: {models})\n")
        sys.stdout.flush()

    try:
        asyncio.run(serve(server, options.host, options.port, allowed_hosts=options.allow_host, ready=print_address))
    except OSError as error:
        return _print_failure(f"cannot listen on {options.host} port {options.port}: {error}")
    if not server.is_idle:
        # A running step cannot be stopped, and numpy would wait for its end at exit.
        sys.stderr.flush()
        os._exit(0)
    return 0


def _print_failure(reason: str) -> int:
    sys.stderr.write(f"tinkerwire: {reason}\n")
    return EXIT_FAILED
