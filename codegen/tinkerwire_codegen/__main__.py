"""``python -m tinkerwire_codegen``: the commands around the contract."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .diff.command import register as register_diff
from .generate import drifted, generate
from .upstream.command import register as register_upstream

HERE = Path(__file__).parent


def default_schema() -> Path:
    """The contract of this checkout, or the copy that an installed package carries."""
    beside = HERE.parents[1] / "schema"
    return beside if (beside / "openapi.yaml").exists() else HERE / "schema"


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = argparse.ArgumentParser(prog="python -m tinkerwire_codegen", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (
        ("generate", "write the package tinkerwire_generated into --out"),
        ("check", "say which files in --out differ from a fresh generation"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("--schema", type=Path, default=default_schema(), metavar="DIR")
        command.add_argument("--out", type=Path, default=HERE.parents[1] / "generated", metavar="DIR")
    register_upstream(commands, default_schema())
    register_diff(commands, default_schema())
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 0 when all is well, 1 on drift, 2 on a contract that cannot be used."""
    given = build_parser().parse_args(arguments)
    if "run" in given:
        return int(given.run(given))
    try:
        if given.command == "generate":
            generate(given.schema, given.out)
            return 0
        files = drifted(given.schema, given.out)
    except (ValueError, RuntimeError, OSError) as fault:
        print(f"{given.schema}: {fault}", file=sys.stderr)  # noqa: T201
        return 2
    for line in files:
        print(line, file=sys.stderr)  # noqa: T201
    if files:
        print("generated/ is not what schema/ says: run `make generate` and commit", file=sys.stderr)  # noqa: T201
    return 1 if files else 0


if __name__ == "__main__":
    sys.exit(main())
