"""Let a process see a wall clock that jumps: ``time.time`` adds the seconds in the file CHAOS_CLOCK.

Python imports this module at its start if its folder is in PYTHONPATH.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

_FILE = Path(os.environ["CHAOS_CLOCK"])
_time, _time_ns = time.time, time.time_ns


def _read_offset() -> float:
    return float(_FILE.read_text() or 0)


time.time = lambda: _time() + _read_offset()
time.time_ns = lambda: _time_ns() + int(_read_offset() * 1e9)
