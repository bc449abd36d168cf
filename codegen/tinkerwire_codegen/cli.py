"""Command line of the contract: generate, check, export, diff, publish, facts and upstream."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from subprocess import SubprocessError

try:
    from .compare import command as compare_command
    from .contract import command as contract_command
    from .generate import command as generate_command
    from .official import command as official_command
    from .official import evidence_command
    from .publish import command as publish_command
except ModuleNotFoundError as error:
    sys.exit(f"python -m tinkerwire_codegen: {error}; install the extra: pip install 'tinkerwire[codegen]'")

PACKAGE_FOLDER = Path(__file__).parent


def main(arguments: list[str] | None = None) -> int:
    """Run one command.

    Returns:
        0 on success, 1 when files or contracts differ, 2 when an input cannot be used, 3 when `upstream` cannot read
        a part of a release.
    """
    parsed = build_parser().parse_args(arguments)
    try:
        return int(parsed.run(parsed))
    except (ValueError, RuntimeError, OSError, SubprocessError) as error:
        print(f"{parsed.command}: {error}", file=sys.stderr)  # noqa: T201
        return 2


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of all commands; each package registers its own commands."""
    parser = argparse.ArgumentParser(prog="python -m tinkerwire_codegen", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for package in (
        generate_command,
        contract_command,
        compare_command,
        publish_command,
        official_command,
        evidence_command,
    ):
        package.register(commands, default_schema())
    return parser


def default_schema() -> Path:
    """Return the contract of this checkout, or the copy inside an installed package."""
    checkout = PACKAGE_FOLDER.parents[1] / "schema"
    return checkout if (checkout / "openapi.yaml").exists() else PACKAGE_FOLDER / "schema"


if __name__ == "__main__":
    sys.exit(main())
