"""Scenario: the example of a loop that survives, with kills of its server and of itself."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from support.clients import KEY
from support.embedded import ServerProcess

pytestmark = pytest.mark.timeout(110)
LOOP = Path(__file__).parents[2] / "docs" / "examples" / "resilient_loop.py"
STEPS = 60


def run_loop(folder: Path, kills: int, rng: random.Random) -> float:
    """Run the loop to its end, with kills of the loop and of its server in turn; return the loss that it prints."""
    server = ServerProcess(folder / "data")
    server.start()
    command = [sys.executable, str(LOOP), server.url, str(folder / "progress.json"), str(STEPS)]
    environment = {**os.environ, "TINKER_API_KEY": KEY}
    try:
        for number in range(kills + 1):
            loop = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
            try:
                return float(loop.communicate(timeout=rng.uniform(0.8, 1.6) if number < kills else 100)[0])
            except subprocess.TimeoutExpired:
                if number % 2:
                    server.kill()
                    server.start()
            finally:
                loop.kill()
                loop.communicate()
        raise AssertionError("the loop did not end")
    finally:
        server.stop()


def test_loop_ends_with_the_loss_of_an_undisturbed_run(tmp_path: Path) -> None:
    rng = random.Random(3)
    for name in ("undisturbed", "killed"):
        (tmp_path / name).mkdir()
    undisturbed = run_loop(tmp_path / "undisturbed", 0, rng)
    assert run_loop(tmp_path / "killed", 4, rng) == undisturbed
