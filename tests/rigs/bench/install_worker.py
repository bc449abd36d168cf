"""Size of an installation: `python install_worker.py REQUIREMENT` prints its MiB and its number of distributions.

Installs the requirement, with what it requires, into an empty folder that is removed afterwards.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path


def main() -> None:
    """Install the requirement of the command line and measure the files."""
    with tempfile.TemporaryDirectory() as folder:
        # uv is beside the Python of the bench; pip's own target option writes the same files more slowly.
        uv = Path(sys.executable).with_name("uv")
        command = [str(uv), "pip", "install", "--quiet", "--target", folder, sys.argv[1]]
        completed = subprocess.run(command, capture_output=True, text=True, check=False)
        if completed.returncode:
            raise SystemExit(f"{' '.join(command)}: exit code {completed.returncode}\n{completed.stderr[-3000:]}")
        files = [file for file in Path(folder).rglob("*") if file.is_file()]
        figures = {
            "mib": sum(file.stat().st_size for file in files) / 2**20,
            "distributions": len(list(Path(folder).glob("*.dist-info"))),
        }
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
