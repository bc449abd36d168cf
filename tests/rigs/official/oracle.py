"""The official SDK as oracle: a process in its own environment that returns one line of JSON for each line."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.rigs.official.venv import ensure_venv

FOLDER = Path(__file__).parent


class Oracle:
    """Worker process that runs for a block.

    Args:
        version: release of the SDK; requirements-VERSION.txt lists its environment.
        worker: the script that it runs, beside this file.
    """

    def __init__(self, version: str, worker: str) -> None:
        python = ensure_venv(f"official-{version}", FOLDER / f"requirements-{version}.txt")
        self._process = subprocess.Popen(
            [str(python), "-I", str(FOLDER / worker)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def send(self, query: Any) -> Any:
        """Return the worker's response; raise an error if the worker has died."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(query), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        assert line, "the worker ended during this request; see stderr"
        return json.loads(line)

    def __enter__(self) -> Oracle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()
