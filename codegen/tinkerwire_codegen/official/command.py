"""``python -m tinkerwire_codegen facts`` and ``upstream``: the contract against a release of the official SDK."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from tinkerwire_base.conversion.versioning import project

from ..contract.bundle import load
from .comparison import compare_facts
from .drift.detection import find_drift
from .drift.report import FORMATS, render_report
from .known_differences import exclude_known
from .release.archive import open_release
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
        differences = exclude_known(compare_facts(project(load(arguments.schema), facts["version"]), facts))
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(
            f"{arguments.file}: must be a fact file ({error!r}); give one such as tests/facts/*.json"
        ) from error
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
    drift = find_drift(arguments.schema, facts, version)
    print(render_report(drift, version, arguments.format, facts["not_understood"]))  # noqa: T201
    return 3 if facts["not_understood"] else 1 if drift else 0
