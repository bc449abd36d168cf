"""Extraction of downloaded archives: no path leaves the target folder, and sizes are bounded."""

from __future__ import annotations

import lzma
import shutil
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from typing_extensions import Self

from tinkerwire_base.errors import TinkerError

MAX_FILES = 10_000
"""Maximum number of members of an archive."""
MAX_NAME_LENGTH = 500
MAX_PART_BYTES = 255
"""Maximum length of the name of a file or folder on common file systems."""
MAX_PADDING = 16 * 2**20
"""Maximum number of bytes after the end of a tar, which writers fill up to their block size."""
EXTRACTED_AT_ONCE = 2**20
EXTENSION_TYPES = frozenset(
    {
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.SOLARIS_XHDTYPE,
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
    }
)
"""Types of tar members that extend the header of the next one."""
MAX_EXTENSION_BYTES = 2**20
READ_ERRORS = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    # gzip and bz2 raise OSError for damaged data, and zipfile raises these for encrypted and unknown content.
    OSError,
    RuntimeError,
)
DRIVE_OR_SEPARATOR = ("\\", ":", "\0")
"""Characters that lead out of the folder on some systems."""


def extract_archive(archive: Path, folder: Path, *, max_bytes: int) -> list[Path]:
    """Extract the regular files of a tar or zip archive into a new folder, and return their relative paths.

    Args:
        archive: the archive; tar may be compressed.
        folder: the folder, which is created.
        max_bytes: maximum size of all files together.

    Raises:
        TinkerError: the archive is damaged or incomplete; it has a path outside the folder, a link, a device, the
            same name twice or too many members; or its files are too large.
        OSError: a file cannot be written.
    """
    folder.mkdir(parents=True)
    extracted: list[Path] = []
    names = _Names()
    remaining = max_bytes
    with closing(_list_members(archive)) as members:
        for number, (name, size, open_member) in enumerate(members):
            path = check_relative_path(name)
            if number >= MAX_FILES:
                raise TinkerError(f"the archive has more than {MAX_FILES} members; it is not extracted")
            if open_member is None:
                continue
            names.add(name, path)
            if size > remaining:
                raise TinkerError(f"the files of the archive have more than {max_bytes} bytes; raise max_bytes")
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with _name_damage():
                stream = open_member()
            with stream, target.open("xb") as file:
                shutil.copyfileobj(_Limited(stream, size), file)
                if file.tell() != size:
                    raise TinkerError(f"the file {name!r:.200} of the archive ends early; repeat the download")
            remaining -= size
            extracted.append(path)
    return extracted


def check_relative_path(name: str) -> Path:
    """Return the path of a file below its folder.

    Raises:
        TinkerError: the name is absolute, leaves the folder, or is not a valid name on every system.
    """
    path = PurePosixPath(name)
    if not path.parts:
        return Path()
    leaves_folder = path.is_absolute() or ".." in path.parts
    has_unsafe_character = not name.isprintable() or any(character in name for character in DRIVE_OR_SEPARATOR)
    is_too_long = len(name) > MAX_NAME_LENGTH or any(
        len(part.encode("utf-8", "replace")) > MAX_PART_BYTES for part in path.parts
    )
    if leaves_folder or has_unsafe_character or is_too_long:
        raise TinkerError(f"the checkpoint has the unsafe file name {name!r:.200}; it is not written")
    return Path(*path.parts)


class _Names:
    """Names of extracted files, compared as file systems compare them that ignore case and Unicode normalization."""

    def __init__(self) -> None:
        self._files: set[PurePosixPath] = set()
        self._folders: set[PurePosixPath] = {PurePosixPath()}

    def add(self, name: str, path: Path) -> None:
        """Add a file; raise TinkerError if another file or folder has its place."""
        key = PurePosixPath(unicodedata.normalize("NFC", path.as_posix()).casefold())
        if key in self._files or key in self._folders or not self._files.isdisjoint(key.parents):
            raise TinkerError(f"the archive has the file {name!r:.200} twice; it is not extracted")
        self._files.add(key)
        self._folders.update(key.parents)


class _Limited:
    """Reads a file up to the size that the archive states for it."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        self._stream = stream
        self._missing = size

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        with _name_damage():
            piece = self._stream.read(self._missing if size < 0 else min(size, self._missing))
        self._missing -= len(piece)
        return piece


class _StrictTarInfo(tarfile.TarInfo):
    """Member of a tar. TarFile takes a damaged or missing header for the end of the tar; this class does not."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Return the member of a header."""
        try:
            member = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if buf and not any(buf):
                # Blocks of zeros are the regular end.
                raise
            raise tarfile.ReadError(str(error)) from None
        # TarFile reads the members that extend the next header into memory.
        if member.size < 0 or (member.type in EXTENSION_TYPES and member.size > MAX_EXTENSION_BYTES):
            raise tarfile.ReadError(f"a header has the size {member.size}")
        return member


@contextmanager
def _name_damage() -> Iterator[None]:
    """Raise TinkerError for errors of a damaged archive."""
    try:
        yield
    except READ_ERRORS as error:
        raise TinkerError(f"the archive cannot be read: {error}; repeat the download") from None


def _list_members(archive: Path) -> Generator[tuple[str, int, Callable[[], IO[bytes]] | None], None, None]:
    """Yield name, size and the function that opens every member; None for a folder."""
    # A tar comes first: a tar whose last file is a zip looks like a zip, too.
    with _name_damage():
        is_tar = tarfile.is_tarfile(archive)
    if is_tar:
        with _open_tar(archive) as tar:
            while True:
                with _name_damage():
                    member = tar.next()
                if member is None:
                    break
                if member.size < 0:
                    raise TinkerError(f"the file {member.name!r:.200} of the archive has the size {member.size}")
                if not member.isfile() and not member.isdir():
                    raise TinkerError(f"the archive has a link or device, {member.name!r:.200}; it is not extracted")
                yield member.name, member.size, partial(_open_tar_member, tar, member) if member.isfile() else None
            _read_to_end(tar)
        return
    with _name_damage():
        file = zipfile.ZipFile(archive)
    with file:
        for info in file.infolist():
            # The upper bits are the mode of Unix: links and devices have another type than a regular file.
            if info.external_attr >> 28 not in (0, 0o4, 0o10):
                raise TinkerError(f"the archive has a link or device, {info.filename!r:.200}; it is not extracted")
            yield info.filename, info.file_size, None if info.is_dir() else partial(file.open, info)


def _open_tar(archive: Path) -> tarfile.TarFile:
    with _name_damage():
        return tarfile.open(archive, tarinfo=_StrictTarInfo)


def _read_to_end(tar: tarfile.TarFile) -> None:
    """Read a tar to the end of its file, where a compressed file has its checksum."""
    stream = tar.fileobj
    assert stream is not None, "the tar is open"
    with _name_damage():
        for _ in range(MAX_PADDING // EXTRACTED_AT_ONCE):
            if not stream.read(EXTRACTED_AT_ONCE):
                return
    raise TinkerError(f"the archive has more than {MAX_PADDING} bytes after its end; it is not extracted")


def _open_tar_member(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    stream = tar.extractfile(member)
    assert stream is not None, "only links and devices have no content"
    return stream
