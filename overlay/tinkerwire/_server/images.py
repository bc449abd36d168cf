"""Images in inputs: their number of tokens, and the numbers that the models of this server read from them.

The number of tokens follows the rule of Qwen3-VL: both sides are rounded to multiples of 32 pixels, so that the image
has 64 to 16,384 squares of that size, and each square is a token. A token holds the colours of the square, averaged
over blocks of 8 x 8 pixels, from -1 to 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tinkerwire_generated.models import ImageChunk

if TYPE_CHECKING:
    from PIL.Image import Image

SQUARE = 32
"""Width and height of the square of a token, in pixels."""
BLOCK = 8
"""Width and height of the block of pixels of which the average counts."""
MIN_SQUARES = 64
MAX_SQUARES = 16384
MAX_ASPECT = 200
MAX_PIXELS = 2**26
"""Maximum size of an image whose pixels are read; a few bytes can describe any size."""


class ImageError(Exception):
    """An image cannot be read."""


class PillowMissingError(ImageError):
    """The package that reads images is not installed."""


def count_squares(width: int, height: int) -> tuple[int, int]:
    """Return the columns and rows of squares of an image; their product is its number of tokens.

    Raises:
        ImageError: the image is empty, too large, or much longer in one direction than in the other.
    """
    if min(width, height) < 1 or max(width, height) > MAX_ASPECT * min(width, height):
        raise ImageError(f"one side must be at most {MAX_ASPECT} times the other, got {width} x {height} pixels")
    if width * height > MAX_PIXELS:
        raise ImageError(f"must have at most {MAX_PIXELS} pixels, got {width} x {height}; scale it down")
    # round() and not floor(): the rule is that of the processor of Qwen3-VL, to the last case.
    columns, rows = round(width / SQUARE), round(height / SQUARE)
    if columns * rows > MAX_SQUARES:
        shrink = math.sqrt(width * height / (MAX_SQUARES * SQUARE * SQUARE))
        columns, rows = (max(1, math.floor(side / shrink / SQUARE)) for side in (width, height))
    elif columns * rows < MIN_SQUARES:
        grow = math.sqrt(MIN_SQUARES * SQUARE * SQUARE / (width * height))
        columns, rows = (math.ceil(side * grow / SQUARE) for side in (width, height))
    return columns, rows


def measure_image(chunk: ImageChunk) -> tuple[int, int]:
    """Return width and height of an image in pixels, from its head.

    Raises:
        ImageError: the bytes are not an image of the format.
    """
    with _open(chunk) as image:
        width, height = image.size
        return width, height


def read_patches(chunk: ImageChunk) -> npt.NDArray[np.float32]:
    """Return the colours of the squares of an image, row by row, (tokens, blocks * 3).

    Raises:
        ImageError: the image cannot be read.
    """
    with _open(chunk) as image:
        columns, rows = count_squares(*image.size)
        blocks = SQUARE // BLOCK
        pixels = _to_rgb(image).resize((columns * blocks, rows * blocks), _pillow().Resampling.BOX)
    colours = np.asarray(pixels, dtype=np.float32) / np.float32(127.5) - np.float32(1)
    squares = colours.reshape(rows, blocks, columns, blocks, 3).swapaxes(1, 2)
    patches: npt.NDArray[np.float32] = squares.reshape(rows * columns, -1)
    return patches


def _to_rgb(image: Image) -> Image:
    if image.mode.startswith("I"):
        # Pillow would cut 16 bits of grey to 8 instead of scaling them.
        return image.convert("I").point(lambda grey: grey * (1 / 256)).convert("L").convert("RGB")
    # Pillow warns of the transparency of a palette that is converted in one step.
    return (image.convert("RGBA") if image.mode == "P" else image).convert("RGB")


@contextmanager
def _open(chunk: ImageChunk) -> Iterator[Image]:
    pillow = _pillow()
    from PIL import UnidentifiedImageError  # noqa: PLC0415

    try:
        # The format limits Pillow to the decoder that the request names.
        with pillow.open(BytesIO(chunk.data), formats=[chunk.format]) as image:
            yield image
    except ImageError:
        raise
    # Pillow raises errors of many classes for damaged files, warnings as errors included.
    except Exception as error:
        text = "cannot identify it" if isinstance(error, UnidentifiedImageError) else " ".join(str(error).split())[:200]
        raise ImageError(f"must be the bytes of a {chunk.format} file, got {len(chunk.data)} bytes: {text}") from None


def _pillow() -> Any:
    try:
        from PIL import Image  # noqa: PLC0415
    except ImportError:
        raise PillowMissingError(
            "this server reads images with the package pillow, which is not installed; install the extra in the "
            "server's environment: pip install 'tinkerwire[images]'"
        ) from None
    return Image
