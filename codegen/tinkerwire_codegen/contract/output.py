"""Output of commands."""

from __future__ import annotations

import os
import sys


def write_output(text: str) -> None:
    """Print a text, and ignore a reader that stops early, such as ``head``."""
    try:
        print(text, flush=True)  # noqa: T201
    except BrokenPipeError:
        # Python flushes the output again when it ends, which must not fail a second time.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
