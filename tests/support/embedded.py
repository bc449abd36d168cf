"""The embedded server as a separate process."""

from __future__ import annotations

import os
import random
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path


class ListeningProcess:
    """A process of a command of tinkerwire that listens on one port, which can be killed and started again.

    Args:
        arguments: the command and its options.
        variables: further environment variables.
        port: the port; by default a free one.
    """

    def __init__(self, *arguments: str, variables: Mapping[str, str] | None = None, port: int | None = None) -> None:
        self._command = [sys.executable, "-m", "tinkerwire", *arguments, "--port", str(port or _find_port())]
        self._environment = {**os.environ, **(variables or {})}
        self._process: subprocess.Popen[str] | None = None
        self.url = ""
        """The URL, once the process has started."""

    def start(self) -> None:
        """Start the process and wait until it accepts requests."""
        process = self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, text=True, env=self._environment
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        match = re.search(r"http://\S+", line)
        if match is None:
            self.stop()
            raise RuntimeError(f"{' '.join(self._command)} did not start: {line!r}")
        self.url = match[0]

    @property
    def pid(self) -> int:
        """Process id of the running process."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """End the process without notice."""
        self._end(lambda process: process.kill())

    def stop(self) -> None:
        """End the process as its user does."""
        self._end(lambda process: process.terminate())

    def _end(self, end: Callable[[subprocess.Popen[str]], None]) -> None:
        process, self._process = self._process, None
        if process is not None:
            end(process)
            process.wait(30)
            if process.stdout:
                process.stdout.close()


class ServerProcess(ListeningProcess):
    """A process of ``tinkerwire serve`` on one folder and one port, which can be killed and started again.

    Args:
        folder: folder of the server.
        options: further options of the command.
        variables: further environment variables.
    """

    def __init__(self, folder: str | Path, *options: str, variables: Mapping[str, str] | None = None) -> None:
        super().__init__("serve", "--folder", str(folder), *options, variables=variables)


def _find_port() -> int:
    """Return a free port below those that systems give to outgoing connections.

    A client that connects to a dead server could get such a port as its own, and keep the next server from it.
    """
    while True:
        port = random.randrange(20_000, 32_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


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
