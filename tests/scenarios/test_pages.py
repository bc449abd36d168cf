"""Tests of pages below docs/ with programs: the programs run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def run_block(page: str, number: int = 0) -> str:
    """Run a program of a page and return its output."""
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    command = [sys.executable, "-c", blocks[number]]
    run = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_program_with_regularizers_runs_unchanged() -> None:
    """The penalty is 0 at first, and rises when the model leaves its start."""
    output = run_block("losses.md")
    divergences = [float(value) for value in re.findall(r"'kl_reverse_k3:sum': ([\d.]+)", output)]
    assert len(divergences) == 3
    assert divergences[0] < 1e-3 < divergences[2]


def test_program_that_compares_logprobs_runs_unchanged() -> None:
    """The embedded server samples and trains with the same program."""
    assert re.fullmatch(r"\d+ tokens, k3 \d\.\de-\d+, largest ratio 1\.000\d\n", run_block("losses.md", 1))


def test_program_with_recovery_runs_unchanged() -> None:
    """Without a loss, nothing is reported."""
    assert run_block("reliability.md") == ""
