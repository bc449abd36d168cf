"""The check of the number of tokens that clients expect of their images."""

from __future__ import annotations

import math

from tinkerwire._server import images
from tinkerwire._server.http.responses import NO_RETRY, HttpError
from tinkerwire._server.state import State
from tinkerwire_generated.models import ImageChunk, ModelInput


def check_expected_tokens(state: State, where: str, model_input: ModelInput) -> None:
    """Reject an input with an image of another number of tokens, or of another size, than its chunk states.

    An image that cannot be read fails later, as the result of the request.

    Args:
        state: state of the server.
        where: name of the input in errors.
        model_input: the input.

    Raises:
        HttpError: 400 for another number or size, 501 if the server cannot read images.
    """
    for index, chunk in enumerate(model_input.chunks):
        if not isinstance(chunk, ImageChunk):
            continue
        try:
            width, height = images.measure_image(chunk)
            count = math.prod(images.count_squares(width, height))
        except images.PillowMissingError as error:
            raise HttpError(501, f"{where}: chunks[{index}]: {error}", NO_RETRY) from None
        except images.ImageError:
            continue
        # Before 0.6.0 a chunk states its number of tokens and its size.
        is_old = chunk.tokens is not None
        expected = chunk.tokens if is_old else chunk.expected_tokens
        _check_count(state.settings.quirks.expected_tokens, f"{where}: chunks[{index}]", chunk, expected, count)
        if is_old and (chunk.width, chunk.height) != (width, height):
            raise HttpError(
                400,
                f"{where}: chunks[{index}]: width and height must be those of the image, {width} x {height} pixels, "
                f"got {chunk.width} x {chunk.height}",
            )


def _check_count(mode: str, where: str, chunk: ImageChunk, expected: int | None, count: int) -> None:
    if expected in (None, count) or mode == "ignored":
        return
    if mode == "terse":
        raise HttpError(400, f"Expected {expected} tokens, got {count} from image")
    name = "tokens" if chunk.tokens is not None else "expected_tokens"
    raise HttpError(
        400, f"{where}: {name} must be {count}, the number of tokens of this image on this server, got {expected}"
    )
