"""Image files for tests."""

from __future__ import annotations

from io import BytesIO

from PIL import Image

RED = (255, 0, 0)
BLUE = (0, 0, 255)


def draw_image(width: int, height: int, colour: tuple[int, int, int] = RED, file_format: str = "png") -> bytes:
    """Return an image file of one colour."""
    file = BytesIO()
    Image.new("RGB", (width, height), colour).save(file, file_format)
    return file.getvalue()
