"""Checks of the scripts in CI workflows."""

from __future__ import annotations

import shutil
import subprocess


def check_shell_syntax(script: str) -> None:
    """Assert that the shell accepts the syntax of a script, without running it."""
    bash = shutil.which("bash")
    assert bash
    run = subprocess.run([bash, "-n"], input=script, text=True, capture_output=True, check=False)
    assert run.returncode == 0, run.stderr
