"""The version of a release, in all places that state it.

python -m tests.rigs.dist.release VERSION     edits the package, the contract and the changelog, and generates the code
"""

from __future__ import annotations

import datetime
import re
import sys
from pathlib import Path

from tests.rigs.official.venv import ROOT

from tinkerwire_base.conversion.versioning import parse_version
from tinkerwire_codegen.generate.package import generate

VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")
OPEN_SECTION = re.compile(r"^## (?:Unreleased|[0-9.]+ \(unreleased\))$", re.MULTILINE)
RELEASED_SECTION = re.compile(r"^## ([0-9.]+) \(\d{4}-\d\d-\d\d\)$", re.MULTILINE)
PLACES = {
    "overlay/tinkerwire/version.py": re.compile(r'^(__version__ = ")([^"]+)(")$', re.MULTILINE),
    "schema/openapi.yaml": re.compile(r"^(  x-contract-version: )(\S+)()$", re.MULTILINE),
}
"""Files of the repository that state the version, and the lines."""


def main(arguments: list[str]) -> int:
    """Set the version; return 2 for a wrong one, with nothing changed."""
    try:
        set_version(ROOT, arguments[0] if arguments else "", datetime.date.today())
    except ValueError as error:
        print(f"release: {error}", file=sys.stderr)  # noqa: T201
        return 2
    generate(ROOT / "schema", ROOT / "generated")
    return 0


def set_version(root: Path, version: str, date: datetime.date) -> None:
    """Write a version to the package, the contract and the heading of the changelog's open section.

    Raises:
        ValueError: the version has another form or is not above the last release, the changelog has no open section, or
            a file does not state its version.
    """
    if not VERSION.fullmatch(version):
        raise ValueError(f"VERSION must be three numbers such as 0.2.0, got {version!r}")
    changelog = (root / "CHANGELOG.md").read_text()
    released = RELEASED_SECTION.findall(changelog)
    if released and parse_version(version) <= parse_version(released[0]):
        raise ValueError(f"VERSION must be above the last release {released[0]}, got {version}")
    if not OPEN_SECTION.search(changelog):
        raise ValueError("CHANGELOG.md has nothing to release; write the changes under the heading `## Unreleased`")
    texts = {name: (root / name).read_text() for name in PLACES}
    silent = [name for name, line in PLACES.items() if not line.search(texts[name])]
    if silent:
        raise ValueError(f"{silent[0]} does not state its version; restore the line")
    for name, line in PLACES.items():
        (root / name).write_text(line.sub(rf"\g<1>{version}\g<3>", texts[name], count=1))
    (root / "CHANGELOG.md").write_text(OPEN_SECTION.sub(f"## {version} ({date})", changelog, count=1))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
