"""The command ``tinkerwire demo``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from tinkerwire_base.errors import TinkerError

from .._extras import require_packages


def register(subparsers: Any) -> None:
    """Add the command to the subparsers of a parser."""
    parser = subparsers.add_parser(
        "demo",
        help="train, sample and reinforce a small model on real text, offline",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--text", type=Path, help="file to train on; by default a text that CPython ships")
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder for the loss curve")
    parser.add_argument("--base-url", default="local", help="URL of the server; 'local' is the embedded server")
    parser.add_argument("--base-model", default="tinkerwire/byte-small", help="a model whose tokens are bytes")
    parser.add_argument("--seed", type=int, default=0, help="seed that makes the run repeatable")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    require_packages("the demo", "demo", "matplotlib", "plotext", "rich")
    # Only this command needs the plotting libraries.
    from .._demo.run import DemoFailed, Plan, run_demo  # noqa: PLC0415

    try:
        plan = Plan(base_url=options.base_url, base_model=options.base_model, seed=options.seed)
        run_demo(options.text, options.out, plan)
    except (DemoFailed, TinkerError, ValueError, OSError) as error:
        sys.stderr.write(f"tinkerwire demo: {error}\n")
        return 1
    return 0
