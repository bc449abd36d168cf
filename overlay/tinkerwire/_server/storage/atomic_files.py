"""Files that are there whole or not at all, whatever happens while they are written."""

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
"""How the names of files begin that are being written."""


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file in place of any earlier one."""
    with _replacing(path) as file:
        file.write(orjson.dumps(value, option=orjson.OPT_INDENT_2))


def read_json(path: Path) -> Any:
    """The value of a JSON file; ValueError when it is not JSON."""
    return orjson.loads(path.read_bytes())


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write named arrays as .npz in place of any earlier file."""
    with _replacing(path) as file:
        # Keys may be anything; savez would take some of them for its own parameters.
        np.savez(file, **{f"array:{name}": value for name, value in arrays.items()})  # type: ignore[arg-type]


def read_arrays(path: Path) -> dict[str, Array]:
    """The arrays of a file of :func:`write_arrays`; ValueError, OSError or zipfile.BadZipFile when it is none."""
    # Opened here, because numpy leaves a damaged file open.
    with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
        return {name.removeprefix("array:"): file[name] for name in file.files}


@contextlib.contextmanager
def _replacing(path: Path) -> Any:
    """A file beside ``path`` that takes its place once it is written and on the disk."""
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
    """Make the new name last too; not every system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
