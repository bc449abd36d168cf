"""What models can do: tensors, inputs, images, datums, paths, categories."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import attrs
import numpy as np
import pytest

from tinkerwire_base.conversion.converter import Converter
from tinkerwire_generated.models import (
    Datum,
    EncodedTextChunk,
    ImageAssetPointerChunk,
    ImageChunk,
    ModelInput,
    ParsedCheckpointTinkerPath,
    RequestFailedResponse,
    TensorData,
)

CONVERTER = Converter()
TEXT = ModelInput.from_ints([1, 2, 3])


def flat(data: list[Any]) -> TensorData:
    return TensorData(data=data, dtype="float32")


def image(**more: Any) -> ImageChunk:
    return ImageChunk(**{"data": b"\x89PNG", "format": "png", **more})


def test_a_null_shape_reads_as_one_dimension() -> None:
    """Servers leave the shape away; data is one-dimensional then."""
    tensor = CONVERTER.structure({"data": [1, 2.5], "dtype": "float32", "shape": None}, TensorData)
    assert tensor.shape is None
    assert tensor.to_numpy().shape == (2,)
    assert tensor.tolist() == [1, 2.5]
    assert CONVERTER.unstructure(tensor) == {"data": [1, 2.5], "dtype": "float32"}


@pytest.mark.parametrize(
    ("dtype", "data"), [("float32", []), ("int64", []), ("float32", [1.5]), ("int64", [2**62 + 1])]
)
def test_lists_become_arrays_of_their_dtype(dtype: Any, data: list[Any]) -> None:
    """to_numpy gives the wire's dtype, exact, also when there is nothing in it."""
    array = TensorData(data=data, dtype=dtype).to_numpy()
    assert array.dtype == dtype and array.tolist() == data


def test_a_tensor_remembers_its_shape() -> None:
    """Any number of dimensions comes back, and nested lists of it."""
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    tensor = TensorData.from_numpy(array)
    assert (tensor.shape, tensor.dtype, len(tensor.data)) == ([2, 3, 4], "float32", 24)
    assert tensor.tolist() == array.tolist()


def test_null_in_float_data_reads_as_nan() -> None:
    """Some servers send null where a number is missing."""
    found = TensorData(data=[1.0, None], dtype="float32").to_numpy()  # type: ignore[list-item]
    assert found[0] == 1 and np.isnan(found[1])


@pytest.mark.parametrize("data", [[1, None], [1, 2.5], ["a"], [2**63]])
def test_data_that_is_not_of_its_dtype_is_named(data: list[Any]) -> None:
    """Null, fractions, text and overflow in int64 data raise ValueError instead of a guess."""
    with pytest.raises(ValueError, match=r"TensorData.data: cannot be read as int64"):
        TensorData(data=data, dtype="int64").to_numpy()


@pytest.mark.parametrize("shape", [[2, 2], [], [-1, -3], [4]])
def test_a_shape_must_hold_the_data(shape: list[int]) -> None:
    """A shape that does not fit is refused when the tensor is made, and names both."""
    with pytest.raises(ValueError, match=r"TensorData.shape: \[.*\] does not hold 3 values"):
        TensorData(data=[1, 2, 3], dtype="int64", shape=shape)


@pytest.mark.parametrize(
    ("data", "dtype", "words"),
    [
        (np.ones((2, 2), np.float32), "float32", "expected a 1-D array for float32, got 2-D float32; from_numpy"),
        (np.ones(2), "int64", "expected a 1-D array for int64, got 1-D float64"),
        (np.array(["a"]), "float32", "got 1-D <U1"),
        ("abc", "float32", "expected a flat list or array, got str"),
        (None, "float32", "got NoneType"),
    ],
)
def test_data_is_flat_and_of_numbers(data: Any, dtype: Any, words: str) -> None:
    """Arrays of more dimensions or another kind belong into from_numpy."""
    with pytest.raises(TypeError, match=f"TensorData.data: .*{words}"):
        TensorData(data=data, dtype=dtype)


def test_only_the_dtypes_of_the_wire() -> None:
    """float64 is no dtype of the wire."""
    with pytest.raises(ValueError, match=r"TensorData.dtype: 'float64' is not one of 'int64', 'float32'"):
        TensorData(data=[1.0], dtype="float64")  # type: ignore[arg-type]


def test_tensors_are_equal_by_value() -> None:
    """An array and a list of the same numbers are the same tensor; another shape is another one."""
    held = TensorData(data=np.array([1.0, 2.0], np.float32), dtype="float32")
    assert held == TensorData(data=[1.0, 2.0], dtype="float32")
    assert held != TensorData(data=[1.0, 2.5], dtype="float32")
    assert held != TensorData(data=[1.0, 2.0], dtype="float32", shape=[2])
    assert held != [1.0, 2.0]


def test_model_inputs_grow_by_copies() -> None:
    """The methods append and append_int return new inputs and do not change the old one."""
    longer = TEXT.append(EncodedTextChunk(tokens=[4])).append_int(5)
    assert (longer.to_ints(), longer.length) == ([1, 2, 3, 4, 5], 5)
    assert (TEXT.to_ints(), ModelInput.empty().length) == ([1, 2, 3], 0)


def test_images_have_the_length_that_is_expected() -> None:
    """An image counts expected_tokens, or the tokens of older wires; without either nobody knows."""
    assert TEXT.append(image(expected_tokens=7)).length == 10
    assert image(tokens=5).length == 5
    assert ImageAssetPointerChunk(location="x", format="png", expected_tokens=0).length == 0
    with pytest.raises(ValueError, match=r"ImageChunk: its length in tokens is unknown; give expected_tokens"):
        _ = image().length


def test_images_have_no_token_ids() -> None:
    """to_ints names the chunk that is no text."""
    with pytest.raises(ValueError, match=r"chunks\[1\]: ImageChunk has no token ids"):
        TEXT.append(image()).to_ints()


@pytest.mark.parametrize("chunk", [[1, 2], 5, None, {"tokens": [1]}, TEXT])
def test_only_chunks_are_chunks(chunk: Any) -> None:
    """What is no chunk is refused at once, with its position."""
    with pytest.raises(TypeError, match=r"ModelInput.chunks\[1\]: expected EncodedTextChunk or Image"):
        TEXT.append(chunk)


@pytest.mark.parametrize("form", [bytes, bytearray, memoryview, lambda data: b64encode(data).decode()])
def test_images_are_taken_as_bytes_or_base64(form: Any) -> None:
    """Bytes in any form, and base64 text, are the same chunk; base64 goes over the wire."""
    chunk = image(data=form(b"\x89PNG"))
    assert chunk.data == b"\x89PNG"
    assert CONVERTER.unstructure(chunk)["data"] == "iVBORw=="
    assert CONVERTER.decode(CONVERTER.encode(chunk), ImageChunk) == chunk


@pytest.mark.parametrize("text", ["not base64!", "abc", "ümlaut"])
def test_text_that_is_no_base64_is_refused(text: str) -> None:
    """Broken base64 raises an error that names the field."""
    with pytest.raises(ValueError, match=r"ImageChunk.data: text is not base64"):
        image(data=text)


def test_images_of_other_things_are_refused() -> None:
    """An array is no image file."""
    with pytest.raises(TypeError, match=r"ImageChunk.data: expected the bytes of an image file.* got ndarray"):
        image(data=np.zeros(3))
    with pytest.raises(ValueError, match=r"ImageChunk.format: 'gif' is not one of 'png', 'jpeg'"):
        image(format="gif")


def test_datums_make_tensors() -> None:
    """Arrays, lists and tensors under loss_fn_inputs are TensorData afterwards; TensorData stays what it was."""
    mine = TensorData(data=[0.5, 1], dtype="float32")
    datum = Datum(
        model_input=TEXT,
        loss_fn_inputs={"target_tokens": [2, 3], "weights": np.ones(2, np.float32), "advantages": mine},  # type: ignore[dict-item]
    )
    assert all(isinstance(tensor, TensorData) for tensor in datum.loss_fn_inputs.values())
    assert datum.loss_fn_inputs["advantages"] is mine
    assert datum.loss_fn_inputs["target_tokens"].tolist() == [2, 3]
    assert attrs.evolve(datum, model_input=ModelInput.empty()).loss_fn_inputs == datum.loss_fn_inputs


def test_datums_do_not_change_the_users_dict() -> None:
    """The dict that was given stays as it was."""
    given: dict[str, Any] = {"weights": [1.0]}
    Datum(model_input=TEXT, loss_fn_inputs=given)
    assert given == {"weights": [1.0]}


@pytest.mark.parametrize(
    ("inputs", "kind", "words"),
    [
        ([1], TypeError, "Datum.loss_fn_inputs: expected a dict of name to tensor, got list"),
        ({5: [1.0]}, TypeError, "loss_fn_inputs key: expected a str, got 5"),
        ({"weights": {"data": [1.0]}}, TypeError, "weights: dict is not an array"),
        (
            {"weights": TensorData(data=list[Any]([1.0, "x"]), dtype="float32")},
            TypeError,
            r"weights\[1\]: expected a number",
        ),
        (
            {"weights": TensorData(data=[True], dtype="float32")},
            TypeError,
            r"weights\[0\]: expected a number, got True",
        ),
        (
            {"weights": TensorData(data=list[Any]([1.0, None]), dtype="float32")},
            TypeError,
            r"weights\[1\]: expected a number",
        ),
        (
            {"weights": TensorData(data=[0.5, 1e39, -1e39], dtype="float32")},
            OverflowError,
            r"weights\[1\]: 1e\+39 does not fit into float32",
        ),
        (
            {"weights": TensorData(data=np.array([0.5, 1e39]), dtype="float32")},
            OverflowError,
            r"weights\[1\]: 1e\+39 does not fit into float32",
        ),
        (
            {"target_tokens": TensorData(data=np.array([1, 2**63], np.uint64), dtype="int64")},
            OverflowError,
            r"target_tokens\[1\]: 9223372036854775808 does not fit into int64",
        ),
        ({"target_tokens": TensorData(data=[1.5], dtype="int64")}, TypeError, r"target_tokens\[0\]: expected an int"),
        ({"target_tokens": TensorData(data=[2**63], dtype="int64")}, OverflowError, r"target_tokens\[0\]: .* 64 bits"),
    ],
)
def test_bad_loss_inputs_say_what_and_where(inputs: Any, kind: type[Exception], words: str) -> None:
    """What cannot be sent is refused when the datum is made, under the name of its key."""
    with pytest.raises(kind, match=words):
        Datum(model_input=TEXT, loss_fn_inputs=inputs)


def test_numpy_numbers_in_a_list_are_numbers() -> None:
    """A flat list of numpy scalars is as good as one of Python's."""
    tensor = flat([np.float32(0.5), np.int64(2)])
    datum = Datum(model_input=TEXT, loss_fn_inputs={"weights": tensor})
    assert b'"data":[0.5,2]' in CONVERTER.encode(datum)


def test_the_model_input_of_a_datum_is_one() -> None:
    """A list of tokens in place of a ModelInput is refused where the datum is made."""
    with pytest.raises(TypeError, match=r"Datum.model_input: expected ModelInput, got \[1, 2\] \(list\)"):
        Datum(model_input=[1, 2], loss_fn_inputs={})  # type: ignore[arg-type]


@pytest.mark.parametrize(("kind", "checkpoint_type"), [("weights", "training"), ("sampler_weights", "sampler")])
def test_tinker_paths_are_taken_apart(kind: str, checkpoint_type: str) -> None:
    """Run, type and id of a checkpoint are read off its path."""
    path = f"tinker://run:train:0/{kind}/step-1"
    found = ParsedCheckpointTinkerPath.from_tinker_path(path)
    assert (found.training_run_id, found.checkpoint_type, found.checkpoint_id, found.tinker_path) == (
        "run:train:0",
        checkpoint_type,
        f"{kind}/step-1",
        path,
    )


@pytest.mark.parametrize(
    "path",
    [
        *("", "run/weights/x", "tinker://run", "tinker://run/weights", "tinker://run/weights/", "tinker:///weights/x"),
        *("tinker://run/weights/a/b", "tinker://run/other/x", "https://run/weights/x", None, 5),
    ],
)
def test_what_is_no_tinker_path_is_refused(path: Any) -> None:
    """Anything else raises an error that shows it, and the forms that there are."""
    with pytest.raises(ValueError, match=r"is not a checkpoint path; expected tinker://RUN/weights/NAME or"):
        ParsedCheckpointTinkerPath.from_tinker_path(path)


@pytest.mark.parametrize(
    ("sent", "read"),
    [("user", "user"), ("User", "user"), ("SERVER", "server"), ("Unknown", "unknown"), ("billing", "billing")],
)
def test_categories_are_read_in_any_case(sent: str, read: str) -> None:
    """Categories that are known are lower case; one to come stays as it was sent."""
    found = CONVERTER.structure({"error": "boom", "category": sent}, RequestFailedResponse)
    assert found.category == read
