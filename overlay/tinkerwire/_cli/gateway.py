"""The command ``tinkerwire gateway``."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

import click

from .._extras import require_packages
from .errors import CommandFailed
from .framework import SharedOptions, command, pass_options
from .listening import listening_options, run_listener
from .output import print_line


@command("gateway")
@click.option("--to", required=True, metavar="URL", help="Server behind the gateway.")
@click.option(
    "--to-wire",
    metavar="VERSION",
    help="Wire version of that server; by default the gateway finds out what it supports.",
)
@listening_options(default_port=8090)
@click.option(
    "--share-port", is_flag=True, help="Let other gateways listen on the same port, to use several processes."
)
@click.option(
    "--api-key",
    envvar="TINKERWIRE_GATEWAY_API_KEY",
    help="Key for the server, in place of those of the clients, which must then present the client key; by default "
    "their keys are passed on. Or set TINKERWIRE_GATEWAY_API_KEY.",
)
@click.option(
    "--client-key",
    envvar="TINKERWIRE_GATEWAY_CLIENT_KEY",
    help="Key that clients must present; with --api-key and without this option, a new one is generated and printed. "
    "Or set TINKERWIRE_GATEWAY_CLIENT_KEY.",
)
@click.option("--speak", metavar="VERSION", help="Wire version of all clients; by default each is recognized.")
@click.option(
    "--state",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Keep what the gateway remembers for its successor.",
)
@click.option(
    "--record",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="TAPE",
    help="Record the requests to the server, and its responses, without keys.",
)
@click.option(
    "--trace",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a line of JSON for each request of a client.",
)
@click.option(
    "--inject-faults",
    metavar="LIST",
    help="Inject faults into the responses to clients, as `tinkerwire serve` does, such as p_429=0.1,p_5xx=0.05.",
)
@pass_options
def cli(
    options: SharedOptions,
    to: str,
    to_wire: str | None,
    host: str,
    allowed_hosts: tuple[str, ...],
    port: int,
    share_port: bool,
    api_key: str | None,
    client_key: str | None,
    speak: str | None,
    state: Path | None,
    record: Path | None,
    trace: Path | None,
    inject_faults: str | None,
) -> None:
    """Translate between clients and a server of different wire versions.

    Clients of any wire version use the gateway's address in place of the server's. The first line of the output has the
    address, with --json as an object. Ctrl-C and SIGTERM end the gateway with code 0, after the requests in progress.
    """
    require_packages("tinkerwire gateway", "server", "aiohttp")
    # Commands that do not serve load neither numpy nor aiohttp.
    from .._gateway.server import GatewaySettings, generate_key, serve_gateway  # noqa: PLC0415
    from ..local import FaultInjection  # noqa: PLC0415

    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    is_generated = api_key is not None and client_key is None
    if is_generated:
        client_key = generate_key()
    try:
        settings = GatewaySettings(
            to=to,
            to_wire=to_wire,
            host=host,
            port=port,
            allowed_hosts=allowed_hosts,
            api_key=api_key,
            client_key=client_key,
            speak=speak,
            state=state,
            record=record,
            trace=trace,
            fault_injection=FaultInjection.parse(inject_faults, 0) if inject_faults else None,
            shares_port=share_port,
        )
    except ValueError as error:
        raise click.UsageError(str(error), click.get_current_context()) from error

    def print_address(address: str) -> None:
        if options.as_json:
            # One line, so that a program can read the address while the gateway runs.
            click.echo(json.dumps({"address": address, "to": settings.to, "client_key": client_key}))
        else:
            print_line(f"tinkerwire gateway at {address} translates to {settings.to}")
            if is_generated:
                print_line(f"clients must present this API key: {client_key}")
        sys.stdout.flush()

    try:
        run_listener(serve_gateway(settings, print_address))
    except OSError as error:
        raise CommandFailed(f"cannot listen on {host} port {port}: {error}") from error
    except ValueError as error:
        raise click.UsageError(str(error), click.get_current_context()) from error
