"""``python -m tinkerwire_codegen facts`` and ``upstream``: the contract against a release of the official SDK."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tinkerwire_base.conversion.versioning import project

from ..contract.bundle import load
from ..generate.command import default_out
from .absorb.release import write_release
from .comparison import compare_facts
from .drift.behaviour import FILE as BEHAVIOUR_FILE
from .drift.behaviour import has_record
from .drift.detection import find_drift
from .drift.report import FORMATS, render_report
from .known_differences import exclude_known
from .release.archive import Release, open_release
from .release.read import read_facts


def register(commands: Any, schema: Path) -> None:
    """Add the commands to the subparsers; ``schema`` is the default contract."""
    facts = commands.add_parser("facts", help="compare the contract with the facts of a released version")
    facts.add_argument("file", type=Path, metavar="FILE", help="facts as JSON, with their version")
    facts.set_defaults(run=run_facts)
    upstream = commands.add_parser("upstream", help="compare the contract with a release of the official SDK")
    upstream.add_argument("release", metavar="X", help="a wheel, an unpacked folder, a version on the index, or latest")
    upstream.add_argument("--wire", metavar="V", help="wire version to compare with [the version of the release]")
    upstream.add_argument("--format", choices=FORMATS, default="text", help="format of the report [%(default)s]")
    upstream.add_argument("--write", action="store_true", help="record the differences in the contract, and generate")
    upstream.add_argument("--out", type=Path, metavar="DIR", help="with --write: generated code [generated/ beside it]")
    upstream.add_argument("--changelog", type=Path, metavar="FILE", help="with --write [CHANGELOG.md beside it]")
    upstream.set_defaults(run=run_upstream)
    for command in (facts, upstream):
        command.add_argument("--schema", type=Path, default=schema, metavar="DIR", help="contract [%(default)s]")


def run_facts(arguments: argparse.Namespace) -> int:
    """Print the differences between the contract and a fact file; return 1 if there are any.

    Raises:
        ValueError: the file does not hold facts.
    """
    try:
        facts = json.loads(arguments.file.read_text(encoding="utf-8"))
        differences = compare_facts(project(load(arguments.schema), facts["version"]), facts)
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(
            f"{arguments.file}: must be a fact file ({error!r}); give one such as tests/facts/*.json"
        ) from error
    differences = exclude_known(differences, arguments.schema)
    for difference in differences:
        print(difference)  # noqa: T201
    return 1 if differences else 0


def run_upstream(arguments: argparse.Namespace) -> int:
    """Print the drift of a release, and what of it is not understood.

    Returns:
        0 if contract and release are equal, 1 if they differ, 3 if a part of the release is not understood.

    Raises:
        ValueError: the release or the contract cannot be read, or no version is known.
    """
    release = open_release(arguments.release)
    version = arguments.wire or release.version
    if version is None:
        raise ValueError(
            f"release {arguments.release}: its files do not contain a version; give the wire version with --wire"
        )
    facts = read_facts(release)
    if arguments.write:
        return write_upstream(arguments, release, facts, version)
    if not has_record(arguments.schema):
        note = f"{arguments.schema / BEHAVIOUR_FILE} does not exist; headers, timeouts and the like are not compared"
        print(f"upstream: {note}", file=sys.stderr)  # noqa: T201
    drift = find_drift(arguments.schema, facts, version)
    print(render_report(drift, version, arguments.format, facts["not_understood"]))  # noqa: T201
    return 3 if facts["not_understood"] else 1 if drift else 0


def write_upstream(arguments: argparse.Namespace, release: Release, facts: dict[str, Any], version: str) -> int:
    """Record a release in the contract, and print what a person must decide.

    Returns:
        0 if the contract now equals the release, 1 if they still differ, 3 if a part of the release is not understood.
    """
    out = arguments.out or default_out(arguments.schema)
    changelog = arguments.changelog or arguments.schema.resolve().parent / "CHANGELOG.md"
    print(write_release(arguments.schema, out, changelog, release, facts, version))  # noqa: T201
    problems = facts["not_understood"]
    for problem in problems:
        print(f"not understood: {problem['file']}:{problem['line']}: {problem['text']}")  # noqa: T201
    return 3 if problems else 1 if find_drift(arguments.schema, facts, version) else 0
