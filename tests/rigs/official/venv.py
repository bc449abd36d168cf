"""Virtual environments of third-party packages, each created from a lock file and reused until it changes."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
OFFICIAL_VERSION = "0.16.1"


def ensure_venv(name: str, lock: Path, *, installer: str = "uv", pip_options: Sequence[str] = ()) -> Path:
    """Return the Python of `.venv-NAME`; create the environment again if its lock file changed.

    `installer` is "uv" (fast; pip is used where uv is missing) or "pip", which is given the `pip_options`.
    """
    if sys.version_info < (3, 11):
        raise SystemExit(
            f"make {name}: the packages in {lock.name} are pinned for Python 3.11 or newer, this is "
            f"{sys.version.split()[0]}; run with a newer python"
        )
    folder = ROOT / f".venv-{name}"
    python = folder / "bin" / "python"
    stamp = folder / "lock.sha256"
    included = [lock.parent / name for name in re.findall(r"(?m)^-r (\S+)", lock.read_text())]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in (lock, *included))).hexdigest()
    if python.exists() and stamp.exists() and stamp.read_text() == digest:
        return python
    shutil.rmtree(folder, ignore_errors=True)
    uv = _find_uv() if installer == "uv" else None
    if uv:
        _run([uv, "venv", "--quiet", "--python", sys.executable, str(folder)])
        _run([uv, "pip", "install", "--quiet", "--python", str(python), "-r", str(lock)])
    else:
        _run([sys.executable, "-m", "venv", str(folder)])
        _run([str(python), "-m", "pip", "install", "--quiet", *pip_options, "-r", str(lock)])
    stamp.write_text(digest)
    return python


def ensure_official_python(version: str = OFFICIAL_VERSION) -> Path:
    """Return the python of the environment that holds a version of the official SDK."""
    lock = Path(__file__).with_name(f"requirements-{version}.txt")
    # With pip: where it has a CPU build of torch at hand it takes that; uv would take the CUDA one.
    installer = "pip" if re.search(r"(?m)^torch==", lock.read_text()) else "uv"
    return ensure_venv(f"official-{version}", lock, installer=installer)


def _find_uv() -> str | None:
    neighbour = Path(sys.executable).with_name("uv")
    return str(neighbour) if neighbour.exists() else shutil.which("uv")


def _run(command: list[str]) -> None:
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    if completed.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {completed.returncode}\n{completed.stderr[-3000:]}")
