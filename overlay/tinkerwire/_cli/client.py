"""Clients of the commands."""

from __future__ import annotations

import logging
import signal
import threading
from typing import TYPE_CHECKING

from .framework import SharedOptions

if TYPE_CHECKING:
    from .._rest.client import RestClient
    from .._service import ServiceClient


def open_rest_client(options: SharedOptions) -> RestClient:
    """Return a RestClient of the chosen server; close it, or use it in a ``with`` block."""
    from .._rest.client import RestClient  # noqa: PLC0415

    silence_interrupts()
    return RestClient(base_url=options.base_url)


def open_service_client(options: SharedOptions, purpose: str) -> ServiceClient:
    """Return a ServiceClient of the chosen server, whose session names the command."""
    from .._service import ServiceClient  # noqa: PLC0415

    silence_interrupts()
    return ServiceClient(base_url=options.base_url, user_metadata={"created_by": f"tinkerwire {purpose}"})


def silence_interrupts() -> None:
    """Drop the client's log lines about the operations that Ctrl-C interrupts: the user knows."""
    if threading.current_thread() is not threading.main_thread():
        return

    def interrupt(*_: object) -> None:
        logging.getLogger("tinkerwire").addFilter(lambda _: False)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
