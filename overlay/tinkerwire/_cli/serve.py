"""The command ``tinkerwire serve``."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._extras import require_packages
from ..version import DEFAULT_WIRE

EXIT_FAILED = 1


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
    parser.add_argument(
        "--folder",
        default="tinkerwire-data",
        help="folder for runs, checkpoints and the state that the next server on the folder resumes",
    )
    parser.add_argument("--wire", default=DEFAULT_WIRE, help="wire version to speak")
    parser.add_argument("--long-poll", type=float, default=30.0, help="seconds to hold a poll for a result")
    parser.add_argument("--seed", type=int, help="make samples, adapters and injected faults the same in every run")
    parser.add_argument("--api-key", help="the only API key to accept; by default the server accepts any")
    parser.add_argument("--strict-sequence", action="store_true", help="reject gaps in a model's seq_ids")
    parser.add_argument(
        "--gap-wait", type=float, default=10.0, help="seconds to hold operations behind a gap in seq_ids"
    )
    parser.add_argument(
        "--flag",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set a flag of client/config, such as proto_compress_fwdbwd=true; repeatable",
    )
    parser.add_argument(
        "--alias",
        action="append",
        default=[],
        metavar="NAME=MODEL",
        help="serve a model under a second name, such as Qwen/Qwen3.5-9B-Base=tinkerwire/byte-small; repeatable",
    )
    parser.add_argument(
        "--inject-faults",
        metavar="LIST",
        help="inject faults: delay_s, p_408, p_429, p_5xx, p_reset, p_lost_reply and only, such as "
        "p_429=0.1,p_5xx=0.05,only=asample+forward",
    )
    parser.add_argument(
        "--quirks",
        metavar="LIST",
        help="emulate quirks of other servers, such as failure=500,short_paths,metrics=null,missing=optional; the "
        "quirks are the fields of tinkerwire.local.Quirks, and docs/known-bugs.md describes them",
    )
    parser.set_defaults(run=_serve, error=parser.error)


def _parse_port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"must be from 0 to 65535, got {port}")
    return port


def _serve(options: argparse.Namespace) -> int:
    require_packages("tinkerwire serve", "server", "aiohttp")
    # Commands that do not serve load neither numpy nor aiohttp.
    from .._server.aiohttp_app import serve  # noqa: PLC0415
    from .._server.http.allowed_hosts import AllowedHosts  # noqa: PLC0415
    from .._server.http.openapi import load_contract  # noqa: PLC0415
    from .._server.options import require_seconds  # noqa: PLC0415
    from .._server.sessions.catalogue import Catalogue, parse_alias  # noqa: PLC0415
    from .._server.sessions.client_config import ClientConfig, parse_flag  # noqa: PLC0415
    from ..local import EmbeddedServer, FaultInjection, Quirks  # noqa: PLC0415

    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    with _name_in_errors(options, "--wire"):
        contract = load_contract(options.wire)
    with _name_in_errors(options, "--long-poll"):
        require_seconds("long_poll", options.long_poll)
    with _name_in_errors(options, "--gap-wait"):
        require_seconds("gap_wait", options.gap_wait)
    with _name_in_errors(options, "--flag"):
        flags = dict(map(parse_flag, options.flag))
        ClientConfig(contract, flags)
    with _name_in_errors(options, "--alias"):
        aliases = dict(map(parse_alias, options.alias))
        Catalogue(aliases)
    with _name_in_errors(options, "--allow-host"):
        AllowedHosts(options.allow_host)
    with _name_in_errors(options, "--inject-faults"):
        spec = options.inject_faults
        fault_injection = FaultInjection.parse(spec, options.seed or 0) if spec else None
    with _name_in_errors(options, "--quirks"):
        quirks = Quirks.parse(options.quirks or "")
    try:
        server = EmbeddedServer(
            folder=options.folder,
            wire_version=options.wire,
            long_poll_s=options.long_poll,
            strict_sequence=options.strict_sequence,
            gap_wait_s=options.gap_wait,
            aliases=aliases,
            client_config=flags,
            api_key=options.api_key,
            seed=options.seed,
            fault_injection=fault_injection,
            quirks=quirks,
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


@contextmanager
def _name_in_errors(options: argparse.Namespace, flag: str) -> Iterator[None]:
    """End the command with a usage error that names the flag, if the block raises ValueError."""
    try:
        yield
    except ValueError as error:
        options.error(f"argument {flag}: {error}")


def _print_failure(reason: str) -> int:
    sys.stderr.write(f"tinkerwire: {reason}\n")
    return EXIT_FAILED
