"""Command line of the contract: generate, check, export, diff, upstream and facts."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from subprocess import SubprocessError

from tinkerwire_base.conversion.versioning import project

try:
    from .compare.command import register as register_diff
    from .contract.bundle import load
    from .contract.export import FORMATS, export
    from .generate.package import drifted, generate
    from .official.drift.command import register as register_upstream
    from .official.facts import compare
    from .official.known_differences import unexplained
except ModuleNotFoundError as error:
    sys.exit(f"python -m tinkerwire_codegen: {error}; install the extra: pip install 'tinkerwire[codegen]'")

HERE = Path(__file__).parent


def default_schema() -> Path:
    """The contract of this checkout, or the copy that an installed package carries."""
    beside = HERE.parents[1] / "schema"
    return beside if (beside / "openapi.yaml").exists() else HERE / "schema"


def default_out(schema: Path) -> Path:
    """The folder ``generated`` beside a contract; for the copy of an installed package, in the current folder."""
    return (Path() if schema.parent == HERE else schema.parent) / "generated"


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 0 when all is well, 1 on drift, 2 on a contract or a file that cannot be used."""
    given = build_parser().parse_args(arguments)
    if "run" in given:
        return int(given.run(given))
    try:
        return COMMANDS[given.command](given)
    except (ValueError, RuntimeError, OSError, KeyError, SubprocessError) as error:
        print(f"{given.schema}: {error}", file=sys.stderr)  # noqa: T201
        return 2


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = argparse.ArgumentParser(prog="python -m tinkerwire_codegen", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (
        ("generate", "write the package tinkerwire_generated into --out"),
        ("check", "say which files in --out differ from a fresh generation"),
        ("facts", "say where the contract differs from the facts of a released version"),
        ("export", "write the plain document of one wire version"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("--schema", type=Path, default=default_schema(), metavar="DIR", help="[%(default)s]")
        if name in ("generate", "check"):
            command.add_argument("--out", type=Path, metavar="DIR", help="[generated/ beside the contract]")
        elif name == "facts":
            command.add_argument("file", type=Path, metavar="FILE", help="facts as JSON, with their version")
        else:
            command.add_argument("--wire", required=True, metavar="VERSION")
            command.add_argument("--format", required=True, choices=list(FORMATS))
            command.add_argument("--out", type=Path, metavar="FILE", help="[standard output]")
    register_upstream(commands, default_schema())
    register_diff(commands, default_schema())
    return parser


def _generate(given: argparse.Namespace) -> int:
    generate(given.schema, given.out or default_out(given.schema))
    return 0


def _check(given: argparse.Namespace) -> int:
    out = given.out or default_out(given.schema)
    files = drifted(given.schema, out)
    for line in files:
        print(line, file=sys.stderr)  # noqa: T201
    if files:
        print(f"{out} is not what {given.schema} says: run `make generate` and commit", file=sys.stderr)  # noqa: T201
    return 1 if files else 0


def _facts(given: argparse.Namespace) -> int:
    facts = json.loads(given.file.read_text(encoding="utf-8"))
    found = unexplained(compare(project(load(given.schema), facts["version"]), facts))
    for difference in found:
        print(difference)  # noqa: T201
    return 1 if found else 0


def _export(given: argparse.Namespace) -> int:
    text = export(given.schema, given.wire, given.format)
    if given.out:
        given.out.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0


COMMANDS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "generate": _generate,
    "check": _check,
    "facts": _facts,
    "export": _export,
}


if __name__ == "__main__":
    sys.exit(main())
