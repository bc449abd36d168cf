"""Steps of a generator's proof: generate, compile, read the captured bodies, talk to a server."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

TIMEOUT_S = 300.0


class StepError(Exception):
    """Failure of a step, with the output of its program."""


@attrs.define
class Outcome:
    """Results of one generator on one wire version; a step that did not run is empty."""

    tool: str
    version: str
    generated: str = ""
    compiled: str = ""
    read: str = ""
    talked: str = ""
    failure: str = ""
    """Output of the step that failed."""

    @property
    def is_good(self) -> bool:
        """Return whether no step failed."""
        return not self.failure


@attrs.frozen
class Workplace:
    """Folders and programs of one run.

    Args:
        npm: folder with node_modules.
        python: Python of the environment that holds the Python generators.
        go: folder of the Go toolchain and of its libraries, if there is one.
        server_url: address of ``tinkerwire serve`` for the wire version.
        documents: folder with the documents of the wire version.
        version: the wire version.
    """

    npm: Path
    python: Path
    go: Path | None
    server_url: str
    documents: Path
    version: str

    def folder(self, tool: str) -> Path:
        """Create the empty folder of a tool below that of the documents; node finds node_modules from there."""
        folder = self.documents / tool
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def npm_program(self, name: str) -> str:
        """Return the path of a program of node_modules."""
        return str(self.npm / "node_modules" / ".bin" / name)


def run_program(
    command: Sequence[str], folder: Path, *, env: Mapping[str, str] | None = None, timeout_s: float = TIMEOUT_S
) -> str:
    """Run a program and return its output.

    Raises:
        StepError: the program fails or takes too long; the error has its output.
    """
    try:
        run = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
            env={**os.environ, **(env or {})},
        )
    except subprocess.TimeoutExpired:
        raise StepError(f"{command[0]}: took more than {timeout_s:.0f} s") from None
    if run.returncode:
        raise StepError(f"{' '.join(command)}: exit code {run.returncode}\n{run.stdout[-3000:]}{run.stderr[-3000:]}")
    return run.stdout
