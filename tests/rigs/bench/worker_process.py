"""Fresh processes of one client, ours or an official SDK, that run a script of the bench."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.rigs.bench.cases import OUR_CLIENT
from tests.rigs.official.venv import ensure_official_python

FOLDER = Path(__file__).parent
TIMEOUT_S = 900


def run_worker(client: str, script: str, *arguments: str) -> dict[str, Any]:
    """Run a script with a client, and return the figures that it prints."""
    python = sys.executable if client == OUR_CLIENT else str(ensure_official_python(client))
    module = OUR_CLIENT if client == OUR_CLIENT else "tinker"
    command = [python, str(FOLDER / script), module, *arguments]
    completed = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        env={**os.environ, "TINKER_TELEMETRY": "0"},
    )
    # Releases of the official SDK may crash at their exit, after they have printed their figures.
    if not completed.stdout:
        raise SystemExit(f"bench: {' '.join(command)}: exit code {completed.returncode}\n{completed.stderr[-3000:]}")
    figures: dict[str, Any] = json.loads(completed.stdout.splitlines()[-1])
    return figures
