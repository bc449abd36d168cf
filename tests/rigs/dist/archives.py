"""The files of the wheel and the sdist, compared with the repository."""

from __future__ import annotations

import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tests.rigs.official.venv import ROOT

SOURCES = {
    "codegen/": "",
    "generated/": "",
    "overlay/": "",
    "schema/": "tinkerwire_codegen/schema/",
}
"""Folders of the repository, and where the wheel has their content."""
TYPED = ("tinkerwire", "tinkerwire_base", "tinkerwire_codegen", "tinkerwire_generated", "tinkerwire_pytest")


def find_faults(wheel: Path, sdist: Path) -> Iterator[str]:
    """Yield what is missing from an archive, or in it without being in the repository."""
    tracked = set(_list_tracked())
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    expected = {
        target + name.removeprefix(folder)
        for name in tracked
        for folder, target in SOURCES.items()
        if name.startswith(folder)
    }
    yield from _compare(wheel.name, packed, expected)
    yield from (f"{wheel.name}: {name}/py.typed is missing" for name in TYPED if f"{name}/py.typed" not in packed)
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    yield from _compare(sdist.name, packed, tracked | {"PKG-INFO"})


def find_differences(first: Path, second: Path) -> list[str]:
    """Return the names of the files that differ between two wheels."""
    contents = []
    for wheel in (first, second):
        with zipfile.ZipFile(wheel) as archive:
            contents.append({name: archive.read(name) for name in archive.namelist()})
    names = contents[0].keys() | contents[1].keys()
    return sorted(name for name in names if contents[0].get(name) != contents[1].get(name))


def _list_tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.splitlines() if (ROOT / name).exists()]


def _compare(archive: str, packed: set[str], expected: set[str]) -> Iterator[str]:
    yield from (f"{archive}: {name} is missing" for name in sorted(expected - packed))
    yield from (f"{archive}: {name} is not in the repository" for name in sorted(packed - expected))
