"""Memory of a process, read from /proc."""

from __future__ import annotations

import re
from pathlib import Path

GROWTH_MIB = 8.0
"""Memory that a process may gain from the first third of a run to its end."""


def read_memory_mib(pid: int | str = "self", field: str = "VmRSS") -> float:
    """Return the resident memory of a process; ``VmHWM`` is its maximum."""
    match = re.search(rf"^{field}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert match is not None, pid
    return int(match[1]) / 1024


def check_level(name: str, memory_mib: list[float], retained_mib: float = 0.0) -> list[str]:
    """Return the problem if memory grew by more than the bound after the first third.

    Args:
        name: name of the process.
        memory_mib: memory in the course of the run.
        retained_mib: memory that the process may retain on purpose.
    """
    if len(memory_mib) < 3:
        return []
    early, end = memory_mib[len(memory_mib) // 3], memory_mib[-1]
    if end - early <= GROWTH_MIB + retained_mib:
        return []
    return [f"the memory of the {name} grew from {early:.0f} to {end:.0f} MiB"]
