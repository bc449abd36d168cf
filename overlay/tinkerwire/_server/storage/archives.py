"""Checkpoints as one file each, under addresses that stop working after a while."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import attrs

from tinkerwire._server.http.responses import HttpError

PREFIX = "/archives/"
LIFETIME_S = 900.0


@attrs.frozen
class _Archive:
    path: Path
    expires_at: float


class Archives:
    """The addresses that were given out.

    Args:
        clock: seconds since the epoch.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._archives: dict[str, _Archive] = {}

    def offer(self, path: Path) -> tuple[str, float]:
        """The path of a new address for a file, and when it stops working, in seconds since the epoch."""
        now = self._clock()
        self._archives = {name: each for name, each in self._archives.items() if each.expires_at > now}
        name = f"{uuid.uuid4().hex}.npz"
        self._archives[name] = _Archive(path, now + LIFETIME_S)
        return PREFIX + name, now + LIFETIME_S

    def read(self, path: str) -> bytes:
        """The file at an address; Refusal 404 when it was never given out, 410 when it is over."""
        archive = self._archives.get(path.removeprefix(PREFIX))
        if archive is None:
            raise HttpError(404, f"there is no archive at {path}; ask for the address again")
        if archive.expires_at <= self._clock():
            raise HttpError(410, f"the address {path} is over; ask for a new one")
        try:
            return archive.path.read_bytes()
        except FileNotFoundError:
            raise HttpError(410, f"the checkpoint at {path} was deleted or replaced") from None
