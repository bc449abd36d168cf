"""Atomic writes: a file exists completely or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import orjson

Array = npt.NDArray[Any]
UNFINISHED = ".writing-"
"""Prefix of the names of unfinished files."""


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file and replace any earlier one."""
    with _replace_file(path) as file:
        file.write(orjson.dumps(value, option=orjson.OPT_INDENT_2))


def read_json(path: Path) -> Any:
    """Return the value of a JSON file; raise ValueError if the content is not JSON."""
    return orjson.loads(path.read_bytes())


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write named arrays as .npz and replace any earlier file."""
    with _replace_file(path) as file:
        # With a prefix, because savez interprets some keys as its own parameters.
        np.savez(file, **{f"array:{name}": value for name, value in arrays.items()})  # type: ignore[arg-type]


def read_arrays(path: Path) -> dict[str, Array]:
    """Return the arrays of a file of :func:`write_arrays`.

    Raises:
        ValueError, OSError, zipfile.BadZipFile: the file is missing or damaged.
    """
    # Opened here, because numpy does not close a damaged file.
    with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
        return {name.removeprefix("array:"): file[name] for name in file.files}


@contextlib.contextmanager
def _replace_file(path: Path) -> Any:
    """Open a temporary file that replaces ``path`` once it is written and synced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=UNFINISHED, dir=path.parent)
    try:
        file: BinaryIO
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Sync the new name to disk, on systems that support it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
