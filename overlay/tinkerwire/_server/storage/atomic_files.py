"""JSON files and files of arrays, written atomically."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import orjson

from tinkerwire._files import replace_file

Array = npt.NDArray[Any]


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file and replace any earlier one."""
    with replace_file(path) as file:
        file.write(orjson.dumps(value, option=orjson.OPT_INDENT_2))


def read_json(path: Path) -> Any:
    """Return the value of a JSON file; raise ValueError if the content is not JSON."""
    return orjson.loads(path.read_bytes())


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write named arrays as .npz and replace any earlier file."""
    with replace_file(path) as file:
        _save_arrays(file, arrays)


def pack_arrays(arrays: Mapping[str, Array]) -> bytes:
    """Return named arrays as the bytes of an .npz file."""
    buffer = BytesIO()
    _save_arrays(buffer, arrays)
    return buffer.getvalue()


def unpack_arrays(content: bytes) -> dict[str, Array]:
    """Return the arrays of :func:`pack_arrays`."""
    return _load_arrays(BytesIO(content))


def read_arrays(path: Path) -> dict[str, Array]:
    """Return the arrays of a file of :func:`write_arrays`.

    Raises:
        ValueError, OSError, zipfile.BadZipFile: the file is missing or damaged.
    """
    # Opened here, because numpy does not close a damaged file.
    with path.open("rb") as opened:
        return _load_arrays(opened)


def _save_arrays(file: BinaryIO, arrays: Mapping[str, Array]) -> None:
    # With a prefix, because savez interprets some keys as its own parameters.
    np.savez(file, **{f"array:{name}": value for name, value in arrays.items()})  # type: ignore[arg-type]


def _load_arrays(opened: BinaryIO) -> dict[str, Array]:
    with np.load(opened, allow_pickle=False) as file:
        return {name.removeprefix("array:"): file[name] for name in file.files}
