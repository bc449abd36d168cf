"""Server as a child process: started in its own process group, watched until ready, stopped as a whole."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType


class ServerProcess:
    """One server process and all its children, with its output in a log file.

    Args:
        command: program and arguments.
        log: file that takes stdout and stderr.
        env: environment of the server; ours by default.
        cwd: working folder of the server.
        grace_s: seconds between SIGTERM and SIGKILL when it is stopped.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        grace_s: float = 15.0,
    ) -> None:
        self.command = list(command)
        self.log = log
        self.grace_s = grace_s
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as sink:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                env=None if env is None else dict(env),
                cwd=cwd,
                start_new_session=True,
            )

    def wait_until(self, condition: str, is_met: Callable[[], bool], *, timeout_s: float) -> float:
        """Wait until `ready()` is true and return the seconds it took; a dead or late server is an error."""
        start = time.monotonic()
        while not is_met():
            if self._process.poll() is not None:
                raise RuntimeError(
                    f"start {self.command[0]}: exit code {self._process.returncode} before it was {condition}; "
                    f"its last words:\n{self.tail()}"
                )
            if time.monotonic() - start > timeout_s:
                raise TimeoutError(
                    f"start {self.command[0]}: not {condition} after {timeout_s:.0f} s; its last words:\n{self.tail()}"
                )
            time.sleep(0.1)
        return time.monotonic() - start

    def output(self) -> str:
        """Return the server's output so far."""
        return self.log.read_text(errors="replace")

    def tail(self, lines: int = 30) -> str:
        """Return the last lines of the server's output."""
        return "\n".join(self.output().splitlines()[-lines:])

    def stop(self) -> None:
        """Stop the process group: SIGTERM first, SIGKILL after the grace period."""
        group = self._process.pid
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGTERM)
            self._wait_for_end(group, self.grace_s)
            os.killpg(group, signal.SIGKILL)
        self._process.wait()

    def _wait_for_end(self, group: int, seconds: float) -> None:
        """Return when the group is empty (then signalling it raises) or the time is over."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._process.poll()
            os.killpg(group, 0)
            time.sleep(0.05)

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def find_free_port() -> int:
    """Return a free TCP port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
