"""Tests that threads can read a long list at once, in all of its forms."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

from tinkerwire_base.packed_list import MIN_PACKED_ITEMS
from tinkerwire_generated import models as m

FLOATS = [0.5 * i for i in range(MIN_PACKED_ITEMS)]
INTS = list(range(MIN_PACKED_ITEMS))


def _read_amid(read: Callable[[], Any], interrupt: Callable[[], Any], line: int) -> tuple[Any, bool]:
    """Read, and run another function before one line, as a thread may do; False if the read has fewer lines."""
    count, previous = 0, sys.gettrace()

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        if event == "line" and "tinkerwire_base" in frame.f_code.co_filename:
            count += 1
            if count == line:
                interrupt()
        return trace

    sys.settrace(trace)
    try:
        found = read()
    finally:
        sys.settrace(previous)
    return found, count >= line


def _make(kind: str) -> Any:
    if kind == "tokens":
        return m.EncodedTextChunk(tokens=INTS)
    return m.TensorData(data=INTS if kind == "int64" else FLOATS, dtype=kind)  # type: ignore[arg-type]


TENSOR_READS: dict[str, Callable[[Any], Any]] = {
    "data": lambda tensor: tensor.data,
    "raw": lambda tensor: tensor.raw,
    "length": len,
    "values": lambda tensor: tensor.values(),
    "array": np.array,
}
CHUNK_READS: dict[str, Callable[[Any], Any]] = {
    "tokens": lambda chunk: chunk.tokens,
    "raw": lambda chunk: chunk.raw,
    "length": lambda chunk: chunk.length,
    "ints": lambda chunk: m.ModelInput(chunks=[chunk]).to_ints(),
    "packed": lambda chunk: chunk.packed().tokens,
}


@pytest.mark.parametrize("kind", ["float32", "int64", "tokens"])
def test_reads_amid_other_reads(kind: str) -> None:
    """Each read returns the numbers, whatever another thread reads between any two of its lines."""
    reads = CHUNK_READS if kind == "tokens" else TENSOR_READS
    expected = FLOATS if kind == "float32" else INTS
    for name, read in reads.items():
        for other in reads.values():
            line, has_line = 1, True
            while has_line:
                model = _make(kind)
                found, has_line = _read_amid(lambda: read(model), lambda: other(model), line)  # noqa: B023
                assert found == len(expected) if name == "length" else list(found) == expected
                line += 1
            assert line > 2
