"""Tests that need torch, with the official SDK 0.38.0 as oracle of custom losses.

python -m tests.rigs.official.torch_run
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.rigs.official.venv import ROOT, ensure_venv

TESTS = (
    "tests/base/test_torch.py",
    "tests/client/losses",
    "tests/client/training/test_client_loss.py",
    "tests/client/training/test_loss_handles.py",
    "tests/server/custom_loss/test_graph.py",
    "tests/server/custom_loss/test_evaluation.py",
)
ORACLE_SUITE = "tests/rigs/official/losses_suite.py"
SOURCE_FOLDERS = ("codegen", "generated", "overlay")


def main() -> int:
    """Run the tests and return the higher of pytest's exit codes."""
    # By pip, which takes a CPU build of torch where pip is set up for one.
    lock = Path(__file__).with_name("requirements-torch.txt")
    python = ensure_venv("torch", lock, installer="pip")
    path = os.pathsep.join([*(str(ROOT / folder) for folder in SOURCE_FOLDERS), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path, "TINKER_TELEMETRY": "0"}
    # The official SDK leaves sockets open, which would fail tests of ours.
    runs = (TESTS, ("-W", "default", ORACLE_SUITE))
    return max(
        subprocess.run(
            [str(python), "-m", "pytest", "-n", "2", *run], cwd=ROOT, env=environment, check=False
        ).returncode
        for run in runs
    )


if __name__ == "__main__":
    sys.exit(main())
