"""Tests of images in inputs: their tokens, their patches, and their bounds."""

from __future__ import annotations

import struct
import sys
import zlib
from base64 import b64encode
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from support.pictures import BLUE, RED, draw_image
from support.server_fixtures import NANO, Caller, ServerFactory
from tinkerwire._server.images import (
    MAX_SQUARES,
    MIN_SQUARES,
    ImageError,
    count_squares,
    measure_image,
    read_patches,
)
from tinkerwire.local import Quirks
from tinkerwire_generated.models import ImageChunk

TOKENS = 70
"""Number of tokens of an image of 300 x 200 pixels."""
OLD = {"width": 300, "height": 200, "tokens": TOKENS}


def create_image(colour: tuple[int, int, int] = RED, file_format: str = "png", **changes: Any) -> dict[str, Any]:
    """Create an image chunk of 300 x 200 pixels."""
    data = b64encode(draw_image(300, 200, colour, file_format)).decode()
    return {"type": "image", "data": data, "format": file_format, **changes}


def create_prompt(*chunks: Any) -> dict[str, Any]:
    """Create an input of text, which a list of tokens is, and images."""
    return {"chunks": [{"tokens": chunk} if isinstance(chunk, list) else chunk for chunk in chunks]}


def create_sample(prompt: Any, **changes: Any) -> dict[str, Any]:
    """Create a request for a sample of the base model."""
    return {"prompt": prompt, "sampling_params": {"max_tokens": 3, "seed": 1}, "base_model": NANO, **changes}


def create_training_input(colour: tuple[int, int, int], answer: int, **changes: Any) -> dict[str, Any]:
    """Create a datum of two tokens of text around an image, whose last target is the answer."""
    targets = [0] * (TOKENS + 1) + [answer]
    weights = [0.0] * (TOKENS + 1) + [1.0]
    return {
        "model_input": create_prompt([1], create_image(colour, **changes), [2]),
        "loss_fn_inputs": {
            "target_tokens": {"data": targets, "dtype": "int64"},
            "weights": {"data": weights, "dtype": "float32"},
        },
    }


@pytest.mark.parametrize(
    ("size", "squares"),
    [
        # As the image processor of Qwen3-VL counts them, with sides rounded half to even.
        ((300, 200), (10, 7)),
        ((256, 256), (8, 8)),
        ((640, 480), (20, 15)),
        ((272, 336), (8, 10)),
        ((1, 1), (8, 8)),
        ((1, 200), (1, 114)),
        ((4096, 4096), (128, 128)),
        ((8000, 8000), (128, 128)),
    ],
)
def test_number_of_tokens_is_that_of_the_documented_rule(size: tuple[int, int], squares: tuple[int, int]) -> None:
    """Columns and rows follow from width and height."""
    assert count_squares(*size) == squares


@given(st.integers(1, 6000), st.integers(1, 6000))
def test_number_of_tokens_is_bounded(width: int, height: int) -> None:
    """Every image has from 64 to 16,384 tokens, or is refused for its shape."""
    try:
        columns, rows = count_squares(width, height)
    except ImageError:
        assert max(width, height) > 200 * min(width, height)
    else:
        assert MIN_SQUARES <= columns * rows <= MAX_SQUARES


@pytest.mark.parametrize("file_format", ["png", "jpeg"])
def test_patches_are_the_mean_colours_of_blocks(file_format: Any) -> None:
    """The first half of the squares of a picture that is red on its left side is red."""
    picture = Image.new("RGB", (256, 256), BLUE)
    picture.paste(RED, (0, 0, 128, 256))
    file = BytesIO()
    picture.save(file, file_format, quality=100, subsampling=0)
    patches = read_patches(ImageChunk(data=file.getvalue(), format=file_format)).reshape(8, 8, 16, 3)
    np.testing.assert_allclose(patches[:, :4], np.broadcast_to([1.0, -1.0, -1.0], (8, 4, 16, 3)), atol=0.02)
    np.testing.assert_allclose(patches[:, 4:], np.broadcast_to([-1.0, -1.0, 1.0], (8, 4, 16, 3)), atol=0.02)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "I;16"])
def test_every_kind_of_png_is_read(mode: str) -> None:
    """Grey, transparent, indexed and deep pictures have the patches of colours."""
    file = BytesIO()
    Image.new(mode, (64, 64)).save(file, "png")
    assert read_patches(ImageChunk(data=file.getvalue(), format="png")).shape == (64, 48)


def test_deep_grey_is_scaled() -> None:
    """Half of the range of 16 bits is grey, not white."""
    file = BytesIO()
    Image.fromarray(np.full((64, 64), 0x8000, dtype=np.uint16)).save(file, "png")
    np.testing.assert_allclose(read_patches(ImageChunk(data=file.getvalue(), format="png")), 0.0, atol=0.01)


def make_png_head(width: int, height: int) -> bytes:
    """Return a PNG file of a size whose pixels are missing."""
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head)) + b"\0\0\0\0IDAT"


@pytest.mark.parametrize(
    ("data", "file_format", "reason"),
    [
        (b"", "png", "must be the bytes of a png file, got 0 bytes"),
        (b"GIF89a" + bytes(50), "png", "must be the bytes of a png file"),
        (draw_image(64, 64), "jpeg", "must be the bytes of a jpeg file"),
        (draw_image(64, 64)[:60], "png", "must be the bytes of a png file, got 60 bytes"),
        (draw_image(64, 64, file_format="jpeg")[:400], "jpeg", "must be the bytes of a jpeg file"),
        (make_png_head(2, 1000), "png", "one side must be at most 200 times the other, got 2 x 1000 pixels"),
        (make_png_head(9000, 9000), "png", "must have at most 67108864 pixels, got 9000 x 9000; scale it down"),
        (make_png_head(2**30, 2**30), "png", "must be the bytes of a png file"),
    ],
)
def test_unreadable_image_is_an_error_that_names_the_reason(data: bytes, file_format: Any, reason: str) -> None:
    """Files that are damaged, of another format or too large are refused, whatever their head promises."""
    with pytest.raises(ImageError, match=reason):
        read_patches(ImageChunk(data=data, format=file_format))


@given(st.binary(max_size=60), st.integers(8, 90))
def test_damaged_image_raises_no_other_error(noise: bytes, position: int) -> None:
    """Bytes that overwrite a part of a file give an image or an error, and no other exception."""
    data = bytearray(draw_image(64, 64))
    data[position : position + len(noise)] = noise
    chunk = ImageChunk(data=bytes(data), format="png")
    for read in (measure_image, read_patches):
        try:
            read(chunk)
        except ImageError as error:
            assert str(error)


@pytest.mark.parametrize(
    ("version", "further"),
    [("0.3.0", OLD), ("0.6.0", {}), ("0.18.2", {"expected_tokens": TOKENS}), ("0.38.0", {"expected_tokens": TOKENS})],
)
def test_logprobs_of_a_prompt_count_the_tokens_of_images(serve: ServerFactory, version: str, further: Any) -> None:
    """The text behind an image is as many positions further as the image has tokens, which have no logprobs."""
    call = serve(wire_version=version)
    prompt = create_prompt([1, 2, 3], create_image(**further), [4, 5])
    request = create_sample(prompt, prompt_logprobs=True, topk_prompt_logprobs=2)
    result = call.poll(call.submit("asample", request)).body
    assert len(result["sequences"][0]["tokens"]) == 3
    for values in (result["prompt_logprobs"], result["topk_prompt_logprobs"]):
        assert len(values) == 3 + TOKENS + 2
        assert [index for index, value in enumerate(values) if value is not None] == [1, 2, TOKENS + 3, TOKENS + 4]


def test_samples_depend_on_the_image_and_not_on_its_surroundings(call: Caller) -> None:
    """Equal images give equal results, alone and among others; other colours and formats give other logprobs."""

    def last_logprob(*chunks: Any) -> float:
        result = call.run("asample", create_sample(create_prompt(*chunks), prompt_logprobs=True))
        value: float = result["prompt_logprobs"][-1]
        return value

    red, blue = create_image(RED), create_image(BLUE)
    assert last_logprob([1], red, [2]) == last_logprob([1], red, [2]) != last_logprob([1], blue, [2])
    assert last_logprob([1], red, blue, [2]) != last_logprob([1], blue, red, [2])
    assert last_logprob(red, [2]) == pytest.approx(last_logprob(create_image(RED, "jpeg"), [2]), abs=0.05)


@pytest.mark.parametrize(("version", "further"), [("0.3.0", OLD), ("0.18.2", {"expected_tokens": TOKENS})])
def test_training_learns_from_images(serve: ServerFactory, version: str, further: Any) -> None:
    """An adapter learns to name the colour of an image; the text alone does not determine it."""
    call = serve(wire_version=version)
    model_id = call.create_model()
    data = [create_training_input(RED, 114, **further), create_training_input(BLUE, 98, **further)]
    body = {"model_id": model_id, "forward_backward_input": {"data": data, "loss_fn": "cross_entropy"}}
    losses = []
    for _ in range(12):
        output = call.run("forward_backward", body)
        assert output["metrics"]["tokens:sum"] == 2 * (TOKENS + 2)
        assert output["loss_fn_outputs"][0]["logprobs"]["shape"] == [TOKENS + 2]
        losses.append(output["metrics"]["loss:sum"])
        call.run("optim_step", {"model_id": model_id, "adam_params": {"learning_rate": 0.01}})
    # Without the image, the two targets are as likely as each other, which is a loss of 2 ln 2.
    assert losses[-1] < 0.5 * 1.386 < losses[0]


def test_training_with_images_survives_a_restart(serve: ServerFactory, tmp_path: Path) -> None:
    """The next server on the folder has the same weights and gradients, from the recorded requests."""

    def read_loss(call: Caller) -> float:
        output = call.run("forward", {"model_id": model_id, "forward_input": training_input})
        loss: float = output["metrics"]["loss:sum"]
        return loss

    call = serve(folder=tmp_path / "data")
    model_id = call.create_model()
    training_input = {"data": [create_training_input(RED, 114)], "loss_fn": "cross_entropy"}
    body = {"model_id": model_id, "forward_backward_input": training_input}
    adam = {"model_id": model_id, "adam_params": {"learning_rate": 0.01}}
    call.run("forward_backward", body)
    call.run("optim_step", adam)
    before = read_loss(call)
    call.run("forward_backward", body)
    call.server.close(is_resumed=True)
    call = serve(folder=tmp_path / "data")
    assert read_loss(call) == before
    call.run("optim_step", adam)
    assert read_loss(call) < before


def test_datums_with_images_do_not_affect_each_other(call: Caller) -> None:
    """Each datum of a batch has the logprobs that it has alone."""
    model_id = call.create_model()
    call.train_step(model_id)
    data = [create_training_input(RED, 1), create_training_input(BLUE, 1), create_training_input(RED, 1)]
    data[1]["model_input"]["chunks"].reverse()

    def logprobs(*datums: Any) -> list[list[float]]:
        training_input = {"data": list(datums), "loss_fn": "cross_entropy"}
        output = call.run("forward", {"model_id": model_id, "forward_input": training_input})
        return [row["logprobs"]["data"] for row in output["loss_fn_outputs"]]

    together = logprobs(*data)
    for index, datum in enumerate(data):
        np.testing.assert_allclose(together[index], logprobs(datum)[0], rtol=1e-4)
    assert together[0] != together[1]


WRONG = {"expected_tokens": 63}


@pytest.mark.parametrize(
    ("version", "quirk", "change", "error"),
    [
        ("0.18.2", "explained", WRONG, "chunks[1]: expected_tokens must be 70, the number of tokens of this image"),
        ("0.18.2", "terse", WRONG, "Expected 63 tokens, got 70 from image"),
        ("0.18.2", "ignored", WRONG, None),
        ("0.3.0", "explained", {**OLD, "tokens": 63}, "chunks[1]: tokens must be 70"),
        ("0.3.0", "terse", {**OLD, "tokens": 63}, "Expected 63 tokens, got 70 from image"),
        ("0.3.0", "explained", {**OLD, "width": 30}, "width and height must be those of the image, 300 x 200 pixels"),
    ],
)
def test_wrong_number_of_tokens_is_rejected_at_once(
    serve: ServerFactory, version: str, quirk: str, change: Any, error: str | None
) -> None:
    """Samples and batches with another number of tokens than expected get status 400, or the quirk ignores it."""
    call = serve(wire_version=version, quirks=Quirks(expected_tokens=quirk))
    sample = create_sample(create_prompt([1], create_image(**change)))
    training_input = {"data": [create_training_input(RED, 1, **change)], "loss_fn": "cross_entropy"}
    batch = {"model_id": call.create_model(), "forward_backward_input": training_input, "seq_id": 2}
    for path, body in (("asample", sample), ("forward_backward", batch)):
        reply = call.post(path, body)
        if error is None:
            assert reply.status == 200
            continue
        assert (reply.status, error in reply.body["detail"]) == (400, True), reply
        assert reply.body["detail"] == error or quirk != "terse"


def test_long_image_is_refused_before_its_pixels_are_read(call: Caller) -> None:
    """The size in the head decides, so that no pixels of a too large image are decoded."""
    image = {"type": "image", "data": b64encode(make_png_head(4000, 4000)).decode(), "format": "png"}
    failed = call.run("asample", create_sample(create_prompt(image)))
    assert failed["category"] == "user"
    assert "prompt: tokens must have at most 2048 tokens for tinkerwire/byte-nano, got 15625" in failed["error"]


def test_pointers_to_images_are_refused(call: Caller) -> None:
    """The server does not fetch anything, and the error does not show an address, which may be a secret."""
    pointer = {"type": "image_asset_pointer", "location": "https://host/x?secret=1", "format": "png"}
    failed = call.run("asample", create_sample(create_prompt([1], pointer)))
    assert failed["category"] == "user"
    assert "chunks[1] must be text or an image for this server, which does not fetch the images" in failed["error"]
    assert "secret" not in failed["error"]


def test_negative_token_ids_are_not_patches(call: Caller) -> None:
    """Text cannot address the patches of an image."""
    failed = call.run("asample", create_sample(create_prompt([-1], create_image())))
    assert "tokens of chunks[0][0] must be a token id of tinkerwire/byte-nano from 0 to 256, got -1" in failed["error"]


def test_server_without_pillow_names_the_extra(call: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """An image is answered with 501, which clients do not retry; text goes on."""
    request = create_sample(create_prompt(create_image()))
    monkeypatch.setitem(sys.modules, "PIL", None)
    reply = call.post("asample", request)
    assert (reply.status, reply.headers["x-should-retry"]) == (501, "false")
    assert "pip install 'tinkerwire[images]'" in reply.body["detail"]
    assert call.run("asample", create_sample(create_prompt([1])))["sequences"]
