"""``python -m tinkerwire_codegen evidence``: the evidence of the contract, collected or counted."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from ..contract.bundle import load
from ..contract.evidence import ANY, ASSUMED, FILE, count_evidence, write_evidence
from ..contract.export import build_openapi
from .evidence import collect_evidence
from .release.archive import open_release

KINDS = ("release", "capture", "observed", ANY, ASSUMED)


def register(commands: Any, schema: Path) -> None:
    """Add the command to the subparsers; ``schema`` is the default contract."""
    command = commands.add_parser("evidence", help="count the evidence of the contract, or collect it")
    command.add_argument("--write", action="store_true", help=f"write {FILE} from all releases of x-versions")
    command.add_argument("--releases", type=Path, metavar="DIR", help="folder of their wheels [the package index]")
    command.add_argument("--captures", type=Path, metavar="FILE", help="requests of the SDK, such as captures.json")
    command.add_argument("--observed", type=Path, metavar="FILE", help="responses of servers, such as compatibility.md")
    command.add_argument("--schema", type=Path, default=schema, metavar="DIR", help="contract [%(default)s]")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the evidence if requested, and print the table that counts it.

    Raises:
        ValueError: a release cannot be read, or captures or observations are missing.
    """
    document = load(arguments.schema)
    versions: list[str] = document["info"]["x-versions"]
    if arguments.write:
        if not arguments.captures or not arguments.observed:
            raise ValueError("--write: needs the captures and the responses of servers; give --captures and --observed")
        releases = ((version, open_release(_find_release(arguments.releases, version))) for version in versions)
        captures = json.loads(arguments.captures.read_text(encoding="utf-8"))
        observations = arguments.observed.read_text(encoding="utf-8")
        evidence = collect_evidence(document, releases, captures, observations)
        write_evidence(arguments.schema, evidence)
    print(render_counts(arguments.schema, versions))  # noqa: T201
    return 0


def render_counts(schema: Path, versions: list[str]) -> str:
    """Render a Markdown table of the kinds of evidence, one row per version and kind of part."""
    lines = [f"| wire | part | {' | '.join(KINDS)} |", "|---|---|---:|---:|---:|---:|---:|"]
    for version in versions:
        counts = count_evidence(build_openapi(schema, version))
        for part, kinds in counts.items():
            lines.append(_render_row(version, part, kinds))
    return "\n".join(lines)


def _render_row(version: str, part: str, kinds: Counter[str]) -> str:
    return f"| {version} | {part} | {' | '.join(str(kinds[kind]) for kind in KINDS)} |"


def _find_release(folder: Path | None, version: str) -> str:
    """Return the wheel of a version in a folder, or the version itself for the package index."""
    if folder is None:
        return version
    wheels = sorted(folder.glob(f"*-{version}-*.whl"))
    if not wheels:
        raise ValueError(f"--releases {folder}: has no wheel of {version}; download it, or omit --releases")
    return str(wheels[0])
