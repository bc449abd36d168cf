"""Archives: checkpoints to download, as files or as tar, at paths that expire."""

from __future__ import annotations

import io
import tarfile
import uuid
from collections.abc import Callable
from pathlib import Path

import attrs

from tinkerwire._server.http.responses import HttpError

ARCHIVE_PREFIX = "/archives/"
ARCHIVE_LIFETIME_S = 900.0
COMPLETE = "checkpoint_complete"
"""Empty file at the end of a tar; the official SDK takes an archive without it for incomplete."""


@attrs.frozen
class _Archive:
    file: Path
    expires_at: float
    is_tar: bool


class Archives:
    """The paths of all archives.

    Args:
        clock: seconds since the epoch.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._archives: dict[str, _Archive] = {}

    def create_path(self, file: Path, *, is_tar: bool) -> tuple[str, float]:
        """Create a path for a file, or for a tar of it; return the path and its expiry in seconds since the epoch."""
        now = self._clock()
        self._archives = {name: archive for name, archive in self._archives.items() if archive.expires_at > now}
        name = f"{uuid.uuid4().hex}.{'tar' if is_tar else 'npz'}"
        self._archives[name] = _Archive(file, now + ARCHIVE_LIFETIME_S, is_tar)
        return ARCHIVE_PREFIX + name, now + ARCHIVE_LIFETIME_S

    def read(self, path: str) -> bytes:
        """Return the content at a path.

        Raises:
            HttpError: 404 for an unknown path, 410 for an expired path or a deleted file.
        """
        archive = self._archives.get(path.removeprefix(ARCHIVE_PREFIX))
        if archive is None:
            raise HttpError(404, f"unknown archive {path}; request a new URL")
        if archive.expires_at <= self._clock():
            raise HttpError(410, f"the URL of archive {path} is expired; request a new one")
        try:
            content = archive.file.read_bytes()
        except FileNotFoundError:
            raise HttpError(410, f"the checkpoint at {path} was deleted or replaced") from None
        return _make_tar(archive.file, content) if archive.is_tar else content


def _make_tar(file: Path, content: bytes) -> bytes:
    """Return a tar of a file; the same file always has the same tar, so that a download can resume."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in ((file.name, content), (COMPLETE, b"")):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()
