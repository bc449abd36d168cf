"""Settings of the chaos rig, which environment variables shorten."""

from __future__ import annotations

import os

import attrs


def _setting(name: str, default: int) -> int:
    return attrs.field(factory=lambda: int(os.environ.get(f"CHAOS_{name}", default)))


@attrs.frozen
class Settings:
    """The amount of work of each scenario."""

    seed: int = _setting("SEED", 1)
    """Seed of the failures and of the moments of the kills."""
    steps: int = _setting("STEPS", 300)
    """Training steps of each run over one wire version."""
    samples: int = _setting("SAMPLES", 3000)
    """Samples of each run over one wire version."""
    kills: int = _setting("KILLS", 20)
    """Kills of the server in each run over one wire version."""
    workers: int = _setting("WORKERS", 6)
    """Runs at the same time."""
    moments: int = _setting("MOMENTS", 50)
    """Kills of the example's loop or of its server."""
    seconds: int = _setting("SECONDS", 600)
    """Time for which many clients train and sample."""
    processes: int = _setting("PROCESSES", 20)
    """Processes with clients."""
    clients: int = _setting("CLIENTS", 5)
    """Clients of each process."""
