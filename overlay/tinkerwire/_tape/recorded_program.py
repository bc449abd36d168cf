"""Programs that run with a recording."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from .tape_file import RECORD_VARIABLE, TapeWriter, read_tape


def run_recorded(tape: Path, command: Sequence[str], *, overwrite: bool = False) -> int:
    """Run a program whose clients are recorded, and return its exit code; that of a signal is 128 plus its number.

    Args:
        tape: the file to write.
        command: the program and its arguments.
        overwrite: replace the file if it exists.

    Raises:
        FileExistsError: the file exists, and ``overwrite`` is False.
        ValueError: the file cannot be written.
        OSError: the program cannot be started.
    """
    tape = tape.absolute()
    if overwrite:
        tape.unlink(missing_ok=True)
    elif tape.exists():
        raise FileExistsError(f"{tape} exists; pass --overwrite to replace it, or another name")
    TapeWriter(tape).close()
    try:
        process = subprocess.Popen(command, env={**os.environ, RECORD_VARIABLE: str(tape)})
    except OSError as error:
        tape.unlink()
        raise OSError(f"{command[0]} cannot be started: {error.strerror or error}") from None

    def forward(number: int, _: FrameType | None) -> None:
        process.send_signal(number)

    # Ctrl-C reaches the program by itself: the terminal sends it to both.
    previous = {signal.SIGINT: signal.signal(signal.SIGINT, lambda *_: None)}
    previous[signal.SIGTERM] = signal.signal(signal.SIGTERM, forward)
    try:
        code = process.wait()
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    return 128 - code if code < 0 else code


def count_exchanges(tape: Path) -> int:
    """Return the number of exchanges on a tape."""
    return len(read_tape(tape).exchanges)
