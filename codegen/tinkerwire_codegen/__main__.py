"""``python -m tinkerwire_codegen``: the commands around the contract."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from subprocess import SubprocessError

from .generate import drifted, generate

HERE = Path(__file__).parent


def default_schema() -> Path:
    """The contract of this checkout, or the copy that an installed package carries."""
    beside = HERE.parents[1] / "schema"
    return beside if (beside / "openapi.yaml").exists() else HERE / "schema"


def default_out(schema: Path) -> Path:
    """The folder ``generated`` beside a contract; for the copy of an installed package, in the current folder."""
    return (Path() if schema.parent == HERE else schema.parent) / "generated"


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 0 when all is well, 1 on drift, 2 on a contract that cannot be used."""
    parser = argparse.ArgumentParser(prog="python -m tinkerwire_codegen", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (
        ("generate", "write the package tinkerwire_generated into --out"),
        ("check", "say which files in --out differ from a fresh generation"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("--schema", type=Path, default=default_schema(), metavar="DIR", help="[%(default)s]")
        command.add_argument("--out", type=Path, metavar="DIR", help="[generated/ beside the contract]")
    given = parser.parse_args(arguments)
    out = given.out or default_out(given.schema)
    try:
        if given.command == "generate":
            generate(given.schema, out)
            return 0
        files = drifted(given.schema, out)
    except (ValueError, RuntimeError, OSError, SubprocessError) as fault:
        print(f"{given.schema}: {fault}", file=sys.stderr)  # noqa: T201
        return 2
    for line in files:
        print(line, file=sys.stderr)  # noqa: T201
    if files:
        print(f"{out} is not what {given.schema} says: run `make generate` and commit", file=sys.stderr)  # noqa: T201
    return 1 if files else 0


if __name__ == "__main__":
    sys.exit(main())
