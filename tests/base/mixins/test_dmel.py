"""The length of a piece of input that is a tensor in a container, from the head of the container."""

from __future__ import annotations

import base64

import pytest

from tinkerwire_generated.models import DmelChunk, ModelInput


@pytest.mark.parametrize(
    ("head", "length"),
    [
        ([0, 2, 5, 80], 5),
        ([7, 1, 0], 0),
        ([254, 3, 2, 5, 80], 5),
        ([1, 3, 0xAC, 0x02, 80, 1], 300),
    ],
)
def test_length_is_the_first_dimension(head: list[int], length: int) -> None:
    """The first dimension, also of a constant tensor and beyond one byte."""
    chunk = DmelChunk(dmel=bytes([*head, 1, 2, 3]))
    assert chunk.length == length
    assert ModelInput(chunks=[chunk, chunk]).length == 2 * length
    assert DmelChunk.model_validate(chunk.model_dump()) == chunk
    assert DmelChunk(dmel=base64.b64encode(chunk.dmel).decode()) == chunk  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("container", "pattern"),
    [
        (b"", "the 0 bytes end within the header"),
        (bytes([254]), "the 1 bytes end within the header"),
        (bytes([8, 1, 1]), "dtype must be from 0 to 7, got 8"),
        (bytes([0, 1]), "the 2 bytes end within the header"),
        (bytes([0, 0]), "the tensor has no dimensions"),
        (bytes([0, 1, *[0x80] * 12]), "takes more than 64 bits"),
    ],
)
def test_invalid_container_raises_value_error(container: bytes, pattern: str) -> None:
    """The error describes the invalid bytes."""
    with pytest.raises(ValueError, match=pattern):
        _ = DmelChunk(dmel=container).length


def test_other_values_are_rejected_as_bytes() -> None:
    """Text that is not base64, and other types."""
    with pytest.raises(ValueError, match=r"DmelChunk.dmel: text is not base64"):
        DmelChunk(dmel="ä")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"DmelChunk.dmel: expected the bytes of a tensor container"):
        DmelChunk(dmel=3)  # type: ignore[arg-type]
