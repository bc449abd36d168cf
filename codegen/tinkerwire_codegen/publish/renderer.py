"""Renderer of the reference: Redoc, from npm at an exact version, without its request for a logo."""

from __future__ import annotations

import hashlib
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

VERSION = "2.5.4"
SHA256 = "44922df4d0eb45c1b066c09ec251e6bd9bd7ded16bc69e87613337b9d911a56e"
SCRIPT = "package/bundles/redoc.standalone.js"
LICENSES = ("package/LICENSE", "package/bundles/redoc.standalone.js.LICENSE.txt")
LOGO = "https://cdn.redoc.ly/redoc/logo-mini.svg"
EMPTY_IMAGE = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg'/%3E"


@dataclass(frozen=True)
class Renderer:
    """Script of the renderer, and the licenses of what the script contains."""

    script: str
    licenses: str


def load_renderer(archive: Path | None) -> Renderer:
    """Load the renderer from its npm archive, or download the archive with npm.

    Raises:
        ValueError: the archive is another file.
        RuntimeError: npm is not installed.
        SubprocessError: npm fails.
    """
    if archive:
        return _read_archive(archive)
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", f"redoc@{VERSION}", "--silent", "--pack-destination", folder]
        try:
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=300)
        except FileNotFoundError:
            raise RuntimeError(
                f"npm is not installed; install npm, or give redoc-{VERSION}.tgz by --renderer"
            ) from None
        return _read_archive(Path(folder) / f"redoc-{VERSION}.tgz")


def _read_archive(archive: Path) -> Renderer:
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != SHA256:
        raise ValueError(f"{archive}: must be redoc {VERSION} with SHA-256 {SHA256}, got {found}; download it again")
    with tarfile.open(archive) as files:
        script = _read_member(files, SCRIPT)
        licenses = "\n\n".join(_read_member(files, name) for name in LICENSES)
    if script.count(LOGO) != 1:
        raise ValueError(f"{archive}: must request {LOGO} once; correct LOGO")
    return Renderer(script.replace(LOGO, EMPTY_IMAGE), licenses)


def _read_member(files: tarfile.TarFile, name: str) -> str:
    file = files.extractfile(name)
    if file is None:
        raise ValueError(f"redoc {VERSION}: {name} must be a file of the archive")
    return file.read().decode()
