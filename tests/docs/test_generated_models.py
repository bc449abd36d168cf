"""Test of the page about the generated package."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from support.embedded import embedded_http_server

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "generated-models.md"


def test_program_runs_unchanged() -> None:
    """The program samples from a real server with nothing but httpx."""
    program = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[0]
    with embedded_http_server() as url:
        program = program.replace("http://127.0.0.1:8080", url)
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("SampleResponse(")
