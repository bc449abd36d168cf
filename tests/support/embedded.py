"""The embedded server as a separate process."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def embedded_http_server(*options: str) -> Iterator[str]:
    """Run ``tinkerwire serve`` for the block and yield its URL."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tinkerwire", "serve", "--port", "0", "--folder", folder, *options]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            line = process.stdout.readline() if process.stdout else ""
            found = re.search(r"http://\S+", line)
            if found is None:
                raise RuntimeError(f"the embedded server did not start: {line!r}")
            yield found[0]
        finally:
            process.terminate()
            process.wait(30)
            if process.stdout:
                process.stdout.close()
