"""The embedded server as a separate process."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


class ServerProcess:
    """A process of ``tinkerwire serve`` on one folder and one port, which can be killed and started again.

    Args:
        folder: folder of the server.
        options: further options of the command.
        port: port of the server; 0 selects a free one.
    """

    def __init__(self, folder: str | Path, *options: str, port: int = 0) -> None:
        self._command = [sys.executable, "-m", "tinkerwire", "serve", "--folder", str(folder), *options]
        self._port = port
        self._process: subprocess.Popen[str] | None = None
        self.url = ""
        """The URL, once the server has started."""

    def start(self) -> None:
        """Start the server and wait until it accepts requests."""
        command = [*self._command, "--port", str(self._port)]
        process = self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://\S+:(\d+)", line)
        if found is None:
            self.stop()
            raise RuntimeError(f"the embedded server did not start: {line!r}")
        self.url, self._port = found[0], int(found[1])

    def kill(self) -> None:
        """End the server without notice."""
        self._end(lambda process: process.kill())

    def stop(self) -> None:
        """End the server as its user does."""
        self._end(lambda process: process.terminate())

    def _end(self, end: Callable[[subprocess.Popen[str]], None]) -> None:
        process, self._process = self._process, None
        if process is not None:
            end(process)
            process.wait(30)
            if process.stdout:
                process.stdout.close()


@contextmanager
def embedded_http_server(*options: str) -> Iterator[str]:
    """Run ``tinkerwire serve`` for the block and yield its URL."""
    with tempfile.TemporaryDirectory() as folder:
        server = ServerProcess(folder, *options)
        server.start()
        try:
            yield server.url
        finally:
            server.stop()
