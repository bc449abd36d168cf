"""The command ``tinkerwire version``."""

from __future__ import annotations

import platform

from ..version import DEFAULT_WIRE, __version__
from .framework import SharedOptions, command, pass_options
from .output import print_result


@command("version")
@pass_options
def cli(options: SharedOptions) -> None:
    """Show the version of this package."""
    from tinkerwire_generated.availability import NEWEST  # noqa: PLC0415

    data = {
        "version": __version__,
        "newest_wire": NEWEST,
        "served_wire": DEFAULT_WIRE,
        "python": platform.python_version(),
    }
    print_result(options, data, f"tinkerwire {__version__}")
