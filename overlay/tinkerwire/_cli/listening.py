"""Options and the event loop of the commands that listen on a port."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
COLLECTION_THRESHOLDS = (20_000, 20, 50)
"""New objects before a collection of garbage, and collections of each generation before one of the next."""


def listening_options(default_port: int) -> Callable[[F], F]:
    """Return a decorator that adds --host, --allow-host and --port as ``host``, ``allowed_hosts`` and ``port``."""
    options = (
        click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on."),
        click.option(
            "--allow-host",
            "allowed_hosts",
            multiple=True,
            metavar="HOST",
            help="Accept requests for this name or address, in addition to loopback names, --host and the address at "
            "which a request arrives; repeatable.",
        ),
        click.option(
            "--port",
            type=click.IntRange(0, 65535),
            default=default_port,
            show_default=True,
            help="Port to listen on, 0 for any free port.",
        ),
    )

    def decorate(function: F) -> F:
        # The last decorator that is applied comes first in the help.
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def run_listener(main: Coroutine[Any, Any, None]) -> None:
    """Run a server on an event loop of its own until it ends.

    Collections of garbage take a tenth of a server's time with Python's thresholds, and find hardly any: they come less
    often, and skip the objects that exist already.
    """
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    try:
        asyncio.run(main)
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
