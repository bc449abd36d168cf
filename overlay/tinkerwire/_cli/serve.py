"""The command ``tinkerwire serve``."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from .._extras import require_packages
from ..version import DEFAULT_WIRE
from .errors import CommandFailed
from .framework import SharedOptions, command, pass_options
from .listening import listening_options, run_listener
from .output import print_line


@command("serve")
@listening_options(default_port=8080)
@click.option(
    "--folder",
    default="tinkerwire-data",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Folder for runs, checkpoints and the state that the next server on the folder resumes.",
)
@click.option("--wire", default=DEFAULT_WIRE, show_default=True, help="Wire version to speak.")
@click.option("--long-poll", type=float, default=30.0, show_default=True, help="Seconds to hold a poll for a result.")
@click.option("--seed", type=int, help="Make samples, adapters and injected faults the same in every run.")
@click.option("--api-key", help="The only API key to accept; by default the server accepts any.")
@click.option("--strict-sequence", is_flag=True, help="Reject gaps in a model's seq_ids.")
@click.option(
    "--gap-wait",
    type=float,
    default=10.0,
    show_default=True,
    help="Seconds to hold operations behind a gap in seq_ids.",
)
@click.option(
    "--flag",
    "flags",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a flag of client/config, such as proto_compress_fwdbwd=true; repeatable.",
)
@click.option(
    "--alias",
    "aliases",
    multiple=True,
    metavar="NAME=MODEL",
    help="Serve a model under a second name, such as Qwen/Qwen3.5-9B-Base=tinkerwire/byte-small; repeatable.",
)
@click.option(
    "--inject-faults",
    metavar="LIST",
    help="Inject faults: delay_s, p_408, p_429, p_5xx, p_reset, p_lost_reply and only, such as "
    "p_429=0.1,p_5xx=0.05,only=asample+forward.",
)
@click.option(
    "--quirks",
    metavar="LIST",
    default="",
    help="Emulate quirks of other servers, such as failure=500,short_paths,metrics=null,missing=optional; the fields "
    "of tinkerwire.local.Quirks describe them.",
)
@pass_options
def cli(
    options: SharedOptions,
    host: str,
    allowed_hosts: tuple[str, ...],
    port: int,
    folder: Path,
    wire: str,
    long_poll: float,
    seed: int | None,
    api_key: str | None,
    strict_sequence: bool,
    gap_wait: float,
    flags: tuple[str, ...],
    aliases: tuple[str, ...],
    inject_faults: str | None,
    quirks: str,
) -> None:
    """Serve the Tinker API on this machine, with small models that really train.

    The first line of the output has the address, with --json as an object. Ctrl-C and SIGTERM end the server with
    code 0.
    """
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
    with _name_in_errors("--wire"):
        contract = load_contract(wire)
    with _name_in_errors("--long-poll"):
        require_seconds("long_poll", long_poll)
    with _name_in_errors("--gap-wait"):
        require_seconds("gap_wait", gap_wait)
    with _name_in_errors("--flag"):
        client_config = dict(map(parse_flag, flags))
        ClientConfig(contract, client_config)
    with _name_in_errors("--alias"):
        models_by_alias = dict(map(parse_alias, aliases))
        Catalogue(models_by_alias)
    with _name_in_errors("--allow-host"):
        AllowedHosts(list(allowed_hosts))
    with _name_in_errors("--inject-faults"):
        fault_injection = FaultInjection.parse(inject_faults, seed or 0) if inject_faults else None
    with _name_in_errors("--quirks"):
        parsed_quirks = Quirks.parse(quirks)
    server = EmbeddedServer(
        folder=folder,
        wire_version=wire,
        long_poll_s=long_poll,
        strict_sequence=strict_sequence,
        gap_wait_s=gap_wait,
        aliases=models_by_alias,
        client_config=client_config,
        api_key=api_key,
        seed=seed,
        fault_injection=fault_injection,
        quirks=parsed_quirks,
    )

    def print_address(address: str) -> None:
        if options.as_json:
            # One line, so that a program can read the address while the server runs.
            click.echo(json.dumps({"address": address, "models": list(server.base_models), "wire": wire}))
        else:
            print_line(f"tinkerwire serves the Tinker API at {address} (models: {', '.join(server.base_models)})")
        sys.stdout.flush()

    try:
        run_listener(serve(server, host, port, allowed_hosts=list(allowed_hosts), ready=print_address))
    except OSError as error:
        raise CommandFailed(f"cannot listen on {host} port {port}: {error}") from error
    if not server.is_idle:
        # A running step cannot be stopped, and numpy would wait for its end at exit.
        sys.stderr.flush()
        os._exit(0)


@contextmanager
def _name_in_errors(flag: str) -> Iterator[None]:
    """End the command with a usage error that names the flag, if the block raises ValueError."""
    try:
        yield
    except ValueError as error:
        raise click.UsageError(f"argument {flag}: {error}", click.get_current_context()) from error
