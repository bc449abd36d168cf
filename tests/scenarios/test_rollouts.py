"""Tests of the examples of docs/rollouts.md that need no further package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.embedded import embedded_http_server

EXAMPLE = Path(__file__).parents[2] / "docs/examples/rollouts_processes.py"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_processes_sample_with_copies_of_one_client(method: str) -> None:
    """The example samples its share in every process, each sample once."""
    if method == "fork" and not hasattr(os, "fork"):
        pytest.skip("the system does not fork")
    with embedded_http_server() as url:
        run = subprocess.run(
            [sys.executable, str(EXAMPLE), url, method, "3", "30"],
            capture_output=True,
            text=True,
            env=os.environ | {"TINKER_API_KEY": "tml-example"},
            timeout=100,
            check=False,
        )
    assert (run.stdout, run.returncode) == ("240\n", 0), run.stderr
