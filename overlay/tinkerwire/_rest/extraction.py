"""Extraction of downloaded archives: no path leaves the target folder, and sizes are bounded."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from collections.abc import Callable, Generator
from contextlib import closing
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from tinkerwire_base.errors import TinkerError

MAX_FILES = 10_000
"""Maximum number of members of an archive."""
MAX_NAME_LENGTH = 500
DRIVE_OR_SEPARATOR = ("\\", ":", "\0")
"""Characters that lead out of the folder on some systems."""


def extract_archive(archive: Path, folder: Path, *, max_bytes: int) -> list[Path]:
    """Extract the regular files of a tar or zip archive into a new folder, and return their relative paths.

    Args:
        archive: the archive; tar may be compressed.
        folder: the folder, which is created.
        max_bytes: maximum size of all files together.

    Raises:
        TinkerError: the archive cannot be read; it has a path outside the folder, a link, a device, the same name
            twice or too many members; or its files are too large.
        OSError: a file cannot be written.
    """
    folder.mkdir(parents=True)
    extracted: dict[Path, None] = {}
    remaining = max_bytes
    try:
        with closing(_list_members(archive)) as members:
            for number, (name, size, open_member) in enumerate(members):
                path = check_relative_path(name)
                if number >= MAX_FILES:
                    raise TinkerError(f"the archive has more than {MAX_FILES} members; it is not extracted")
                if open_member is None:
                    continue
                if path in extracted:
                    raise TinkerError(f"the archive has the file {name!r:.200} twice; it is not extracted")
                if size > remaining:
                    raise TinkerError(f"the files of the archive have more than {max_bytes} bytes; raise max_bytes")
                target = folder / path
                target.parent.mkdir(parents=True, exist_ok=True)
                with open_member() as stream, target.open("xb") as file:
                    shutil.copyfileobj(_Limited(stream, size), file)
                    if file.tell() != size:
                        raise TinkerError(f"the file {name!r:.200} of the archive ends early; repeat the download")
                remaining -= size
                extracted[path] = None
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, NotImplementedError) as error:
        raise TinkerError(f"the archive cannot be read: {error}; repeat the download") from None
    return list(extracted)


def check_relative_path(name: str) -> Path:
    """Return the path of a file below its folder.

    Raises:
        TinkerError: the name is absolute, leaves the folder, or is not a valid name on every system.
    """
    path = PurePosixPath(name)
    if not path.parts:
        return Path()
    is_unsafe = path.is_absolute() or ".." in path.parts or any(character in name for character in DRIVE_OR_SEPARATOR)
    if is_unsafe or len(name) > MAX_NAME_LENGTH:
        raise TinkerError(f"the checkpoint has the unsafe file name {name!r:.200}; it is not written")
    return Path(*path.parts)


class _Limited:
    """Reads a file up to the size that the archive states for it."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        self._stream = stream
        self._missing = size

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        piece = self._stream.read(self._missing if size < 0 else min(size, self._missing))
        self._missing -= len(piece)
        return piece


def _list_members(archive: Path) -> Generator[tuple[str, int, Callable[[], IO[bytes]] | None], None, None]:
    """Yield name, size and the function that opens every member; None for a folder."""
    # A tar comes first: a tar whose last file is a zip looks like a zip, too.
    if tarfile.is_tarfile(archive):
        with tarfile.open(archive) as tar:
            for member in tar:
                if not member.isfile() and not member.isdir():
                    raise TinkerError(f"the archive has a link or device, {member.name!r:.200}; it is not extracted")
                yield member.name, member.size, partial(_open_tar_member, tar, member) if member.isfile() else None
        return
    with zipfile.ZipFile(archive) as file:
        for info in file.infolist():
            # The upper bits are the mode of Unix: links and devices have another type than a regular file.
            if info.external_attr >> 28 not in (0, 0o4, 0o10):
                raise TinkerError(f"the archive has a link or device, {info.filename!r:.200}; it is not extracted")
            yield info.filename, info.file_size, None if info.is_dir() else partial(file.open, info)


def _open_tar_member(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    stream = tar.extractfile(member)
    assert stream is not None, "only links and devices have no content"
    return stream
