"""ModelInput: construction and chunks."""

from __future__ import annotations

from typing import Any

import pytest

from tinkerwire_generated.models import (
    Datum,
    EncodedTextChunk,
    ImageChunk,
    ModelInput,
)

TEXT = ModelInput.from_ints([1, 2, 3])


def make_image(**changes: Any) -> ImageChunk:
    return ImageChunk(**{"data": b"\x89PNG", "format": "png", **changes})


def test_append_returns_a_new_input() -> None:
    """The methods append and append_int return new inputs and do not change the old one."""
    longer = TEXT.append(EncodedTextChunk(tokens=[4])).append_int(5)
    assert (longer.to_ints(), longer.length) == ([1, 2, 3, 4, 5], 5)
    assert (TEXT.to_ints(), ModelInput.empty().length) == ([1, 2, 3], 0)


def test_images_have_no_token_ids() -> None:
    """The error of to_ints names the chunk that is not text."""
    with pytest.raises(ValueError, match=r"chunks\[1\]: ImageChunk has no token ids"):
        TEXT.append(make_image()).to_ints()


@pytest.mark.parametrize("chunk", [[1, 2], 5, None, {"tokens": [1]}, TEXT])
def test_other_objects_are_rejected_as_chunks(chunk: Any) -> None:
    """A value that is not a chunk raises TypeError with its position."""
    with pytest.raises(TypeError, match=r"ModelInput.chunks\[1\]: expected EncodedTextChunk or Image"):
        TEXT.append(chunk)


class Prompt(ModelInput):
    """An input class of a user."""


class Example(Datum):
    """A datum class of a user."""


def test_subclasses_of_users_find_the_classes_of_the_contract() -> None:
    """A class of a user's module builds chunks and tensors like the class that it extends."""
    prompt = Prompt.from_ints([1, 2])
    assert (type(prompt), prompt.append_int(3).to_ints()) == (Prompt, [1, 2, 3])
    example = Example(model_input=prompt, loss_fn_inputs={"weights": [0.5, 1.0]})
    assert example.loss_fn_inputs["weights"].data == [0.5, 1.0]
