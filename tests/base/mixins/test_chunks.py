"""Chunks of images: length and data."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import numpy as np
import pytest

from tinkerwire_base.conversion.converter import Converter
from tinkerwire_generated.models import (
    ImageAssetPointerChunk,
    ImageChunk,
    ModelInput,
)

CONVERTER = Converter()
TEXT = ModelInput.from_ints([1, 2, 3])


def make_image(**changes: Any) -> ImageChunk:
    return ImageChunk(**{"data": b"\x89PNG", "format": "png", **changes})


def test_image_length_is_the_expected_tokens() -> None:
    """An image counts expected_tokens, or the tokens of older wires; without both its length is an error."""
    assert TEXT.append(make_image(expected_tokens=7)).length == 10
    assert make_image(tokens=5).length == 5
    assert ImageAssetPointerChunk(location="x", format="png", expected_tokens=0).length == 0
    with pytest.raises(ValueError, match=r"ImageChunk: the length in tokens is unknown; set expected_tokens"):
        _ = make_image().length


@pytest.mark.parametrize("form", [bytes, bytearray, memoryview, lambda content: b64encode(content).decode()])
def test_image_data_is_bytes_or_base64(form: Any) -> None:
    """Bytes in any form, and base64 text, make equal chunks; requests carry base64."""
    chunk = make_image(data=form(b"\x89PNG"))
    assert chunk.data == b"\x89PNG"
    assert CONVERTER.unstructure(chunk)["data"] == "iVBORw=="
    assert CONVERTER.decode(CONVERTER.encode(chunk), ImageChunk) == chunk


@pytest.mark.parametrize("text", ["not base64!", "abc", "ümlaut"])
def test_invalid_base64_raises_value_error(text: str) -> None:
    """Invalid base64 raises an error that names the field."""
    with pytest.raises(ValueError, match=r"ImageChunk.data: text is not base64"):
        make_image(data=text)


def test_image_of_other_types_raises_type_error() -> None:
    """An array is not an image file."""
    with pytest.raises(TypeError, match=r"ImageChunk.data: expected the bytes of an image file.* got ndarray"):
        make_image(data=np.zeros(3))
    with pytest.raises(ValueError, match=r"ImageChunk.format: must be one of 'png', 'jpeg', got 'gif'"):
        make_image(format="gif")
