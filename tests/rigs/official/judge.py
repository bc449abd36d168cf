"""An official SDK as judge: a process in an environment of its own that answers one line of JSON with another."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.rigs.official.venv import ensure_venv

HERE = Path(__file__).parent


class Judge:
    """One worker process, from the start of a block to its end.

    Args:
        version: release of the SDK; requirements-VERSION.txt says what its environment holds.
        worker: the script that it runs, beside this file.
    """

    def __init__(self, version: str, worker: str) -> None:
        python = ensure_venv(f"official-{version}", HERE / f"requirements-{version}.txt")
        self._process = subprocess.Popen(
            [str(python), "-I", str(HERE / worker)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, question: Any) -> Any:
        """What the worker says to a question; an error when it has died over it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(question), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        assert answer, "the worker ended over this question; stderr says why"
        return json.loads(answer)

    def __enter__(self) -> Judge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()
