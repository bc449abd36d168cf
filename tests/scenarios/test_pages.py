"""Tests of docs/losses.md: its programs run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

BLOCKS = re.findall(r"```python\n(.*?)```", (Path(__file__).parents[2] / "docs" / "losses.md").read_text(), re.DOTALL)


def run_block(number: int) -> str:
    """Run a program of the page and return its output."""
    command = [sys.executable, "-c", BLOCKS[number]]
    run = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_program_with_regularizers_runs_unchanged() -> None:
    """The penalty is 0 at first, and rises when the model leaves its start."""
    divergences = [float(value) for value in re.findall(r"'kl_reverse_k3:sum': ([\d.]+)", run_block(0))]
    assert len(divergences) == 3
    assert divergences[0] < 1e-3 < divergences[2]


def test_program_that_compares_logprobs_runs_unchanged() -> None:
    """The embedded server samples and trains with the same program."""
    assert re.fullmatch(r"\d+ tokens, k3 \d\.\de-\d+, largest ratio 1\.000\d\n", run_block(1))
