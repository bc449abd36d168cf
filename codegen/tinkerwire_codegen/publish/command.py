"""``python -m tinkerwire_codegen publish``: documents, reference and changes of all wire versions in one folder."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from ..contract.output import write_output
from .renderer import VERSION, load_renderer
from .site import publish


def register(commands: Any, schema: Path) -> None:
    """Add the command to the subparsers; ``schema`` is the default contract."""
    command = commands.add_parser("publish", help="write a folder with the documents and pages of all wire versions")
    command.add_argument("--schema", type=Path, default=schema, metavar="DIR", help="contract [%(default)s]")
    command.add_argument(
        "--out", type=Path, default=Path("build/contract"), metavar="DIR", help="folder to write [%(default)s]"
    )
    command.add_argument("--wire", action="append", metavar="VERSION", help="one of the versions [all versions]")
    command.add_argument("--renderer", type=Path, metavar="FILE", help=f"redoc-{VERSION}.tgz [downloaded by npm]")
    command.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes [%(default)s]")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the folder, and print its size."""
    renderer = load_renderer(arguments.renderer)
    publish(arguments.schema, arguments.out, renderer, arguments.wire, arguments.jobs)
    size = sum(file.stat().st_size for file in arguments.out.rglob("*") if file.is_file())
    write_output(f"{arguments.out / 'index.html'}: {size / 1e6:.1f} MB")
    return 0
