"""Test of the example in docs/images.md."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "images.md"


def test_example_runs_unchanged() -> None:
    """The example prints the number of tokens of its prompt and of its sample."""
    (program,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False)
    assert (run.returncode, run.stdout.strip()) == (0, "78 4"), run.stderr
