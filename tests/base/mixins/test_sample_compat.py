"""Results of sampling by all their official names; lists and arrays of the same numbers."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from tinkerwire_base.conversion.converter import Converter
from tinkerwire_base.list_array import ArrayCodec, TopkLogprobs
from tinkerwire_base.mixins.sample_compat import TOPK
from tinkerwire_generated import models

SampledSequence: Any = models.SampledSequence
SampleResponse: Any = models.SampleResponse
TOPK_LISTS = [None, [(5, -0.5)], [(6, -1.0), (0, -2.0)]]


def test_lists_and_arrays_are_converted_once() -> None:
    """The first read of a form converts the other; later reads return the same object."""
    from_list = SampledSequence(stop_reason="stop", tokens=[1, 2], logprobs=[-0.5, -1.0])
    assert from_list.tokens_np.dtype == np.int32 and from_list.tokens_np.tolist() == [1, 2]
    assert from_list.tokens_np is from_list.tokens_np and from_list.tokens is from_list.tokens
    array = np.array([-0.5, -1.0], np.float32)
    from_array = SampledSequence(stop_reason="stop", tokens=np.array([1, 2], np.int32), logprobs=array)
    assert from_array.logprobs == [-0.5, -1.0] and from_array.logprobs is from_array.logprobs
    assert from_array.logprobs_np is array
    assert from_array == from_list
    assert SampledSequence(stop_reason="stop", tokens=[]).logprobs_np is None


def test_constructors_accept_official_arguments() -> None:
    """By position and by private names; a list counts before an array, and either before the contract's name."""
    array = np.array([7], np.int32)
    assert SampledSequence("stop", "s-1", array).tokens_np is array
    private = SampledSequence(stop_reason="stop", sequence_id="s-1", _tokens_list=[7], _logprobs_list=[-1.0])
    assert (private.tokens, private.logprobs, private.sequence_id) == ([7], [-1.0], "s-1")
    sequence = SampledSequence("stop", "s-1", _tokens_list=[7], tokens_np=array, tokens=[8])
    assert sequence.tokens == [7] and sequence.tokens_np is array
    assert SampledSequence("stop", "s-1").tokens == []
    response = SampleResponse([private], _prompt_logprobs_list=[None, -1.0], prompt_cache_hit_tokens=3)
    assert (response.sequences, response.prompt_logprobs, response.prompt_cache_hit_tokens) == (
        [private],
        [None, -1.0],
        3,
    )
    target = models.TensorData(data=[1.0], dtype="float32")
    alternatives = models.PromptAltTokens(tokens=target, logprobs=target)
    response = SampleResponse([], None, None, target, 3, alternatives)
    assert response.target_prompt_logprobs is target and response.prompt_alt_tokens is alternatives
    assert response.extra_fields == {}


@pytest.mark.parametrize(
    ("args", "keywords", "pattern"),
    [
        ((), {"tokens": [], "tokenz": []}, "tokenz"),
        (("stop",), {"stop_reason": "stop"}, "SampledSequence: got two values for stop_reason"),
        (tuple("abcdefghi"), {}, "SampledSequence takes at most 8 positional arguments, got 9"),
        ((), {}, "stop_reason"),
    ],
)
def test_invalid_arguments_raise_type_error(args: tuple[Any, ...], keywords: dict[str, Any], pattern: str) -> None:
    """A TypeError names them."""
    with pytest.raises(TypeError, match=pattern):
        SampledSequence(*args, **keywords)


def test_none_in_lists_is_nan_in_arrays() -> None:
    """A missing logprob of a prompt converts between None and NaN; samples have no gaps."""
    array = SampleResponse(sequences=[], prompt_logprobs=[None, -0.5]).prompt_logprobs_np
    assert np.isnan(array[0]) and array[1] == -0.5 and array.dtype == np.float32
    assert SampleResponse([], array).prompt_logprobs == [None, -0.5]
    assert np.isnan(SampledSequence("stop", "s-1", None, array).logprobs[0])


def test_topk_converts_between_pairs_and_matrices() -> None:
    """Lists have tuples, or None for empty positions; matrices are padded, and lists omit the padding."""
    response = SampleResponse(sequences=[], topk_prompt_logprobs=TOPK_LISTS)
    matrices = response.topk_prompt_logprobs_np
    assert matrices.token_ids.tolist() == [[0, 0], [5, 0], [6, 0]]
    assert matrices.logprobs.tolist() == [[-99999.0] * 2, [-0.5, -99999.0], [-1.0, -2.0]]
    assert SampleResponse([], None, matrices).topk_prompt_logprobs == TOPK_LISTS
    assert SampledSequence("stop", "s-1", topk_logprobs_np=matrices).topk_logprobs == TOPK_LISTS
    from_lists = SampledSequence("stop", "s-1", _topk_logprobs_list=TOPK_LISTS)
    assert from_lists.topk_logprobs_np.token_ids.tolist() == matrices.token_ids.tolist()
    assert SampledSequence("stop", "s-1").topk_logprobs_np is None
    assert TOPK.to_list(TopkLogprobs(np.zeros((0, 2), np.int32), np.zeros((0, 2), np.float32))) == []
    filled = TopkLogprobs(np.array([[0, 5], [5, 0]], np.int32), np.array([[-99999, -1], [-1, -1]], np.float32))
    assert TOPK.to_list(filled) == [None, [(5, -1.0), (0, -1.0)]]
    decoded = Converter().decode(b'{"sequences":[],"topk_prompt_logprobs":[null,[[5,-0.5]]]}', models.SampleResponse)
    assert decoded.topk_prompt_logprobs == [None, [(5, -0.5)]]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda sequence: pickle.loads(pickle.dumps(sequence))])
def test_copies_keep_arrays(copied: Any) -> None:
    """A copy is equal and keeps arrays."""
    sequence = SampledSequence(stop_reason="stop", tokens=np.arange(3, dtype=np.int32))
    assert copied(sequence).tokens_np.tolist() == [0, 1, 2] and copied(sequence) == sequence
    tensor = models.TensorData.from_numpy(np.ones((2, 2), np.float32))
    assert isinstance(copied(tensor).raw, np.ndarray) and copied(tensor) == tensor


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    "data",
    [
        np.array([0.5, np.nan, -0.0], np.float32),
        np.array([2**62 + 1, -1]),
        np.array([], np.float32),
        np.array([0.1, 0.2]),
        np.arange(6, dtype=np.int32)[::2],
        [0.1, 2],
    ],
    ids=["float32", "int64", "empty", "float64", "int32", "list"],
)
def test_pickled_tensors_keep_data_and_dtype(data: Any, protocol: int) -> None:
    """Arrays of all dtypes and lists are the same after a pickle, and an array can be written to."""
    dtype: Any = "int64" if isinstance(data, np.ndarray) and data.dtype.kind == "i" else "float32"
    tensor = models.TensorData(data=data, dtype=dtype, shape=[len(data)])
    copied = pickle.loads(pickle.dumps(tensor, protocol))
    assert (type(copied.raw), copied.dtype, copied.shape) == (type(tensor.raw), dtype, [len(data)])
    assert repr(copied.data) == repr(tensor.data)
    if isinstance(data, np.ndarray):
        assert copied.raw.dtype == data.dtype and copied.raw.flags.writeable
        assert copied.raw.tobytes() == data.tobytes()


def test_pickled_sparse_tensor_keeps_its_indices() -> None:
    """All fields are in the pickle."""
    tensor = models.TensorData(
        data=np.array([7.0], np.float32),
        dtype="float32",
        shape=[2, 3],
        sparse_crow_indices=[0, 0, 1],
        sparse_col_indices=[2],
    )
    copied = pickle.loads(pickle.dumps(tensor))
    assert copied == tensor and copied.tolist() == [[0.0, 0.0, 0.0], [0.0, 0.0, 7.0]]


def test_protocol_5_passes_arrays_out_of_band() -> None:
    """The buffers of a pickle are the memory of its arrays, before and after."""
    array = np.arange(1000, dtype=np.float32)
    tensor = models.TensorData.from_numpy(array)
    buffers: list[pickle.PickleBuffer] = []
    content = pickle.dumps(tensor, 5, buffer_callback=buffers.append)
    assert len(content) < 500
    assert np.shares_memory(np.frombuffer(buffers[0], np.float32), array)
    assert np.shares_memory(pickle.loads(content, buffers=buffers).raw, array)


def test_shallow_copies_share_the_array() -> None:
    """A copy of a tensor takes no memory for its data."""
    tensor = models.TensorData.from_numpy(np.ones(4, np.float32))
    assert copy.copy(tensor).raw is tensor.raw
    assert not np.shares_memory(copy.deepcopy(tensor).raw, tensor.raw)


def test_models_load_from_pickles_of_earlier_versions() -> None:
    """Earlier versions pickled a dict of the fields, as attrs does."""
    tensor = models.TensorData.from_numpy(np.ones(4, np.float32))
    for model in (models.ModelInput.from_ints([1, 2]), tensor, models.AdamParams(learning_rate=0.5)):
        cls: Any = type(model)
        copied = cls.__new__(cls)
        copied.__setstate__(cls.__getstate__(model))
        assert copied == model


class _CountedTensor(models.TensorData):
    """A tensor with a state of its own."""

    count: int

    def __getstate__(self) -> Any:
        return {**models.TensorData.__getstate__(self), "count": self.count}  # type: ignore[attr-defined]

    def __setstate__(self, state: Any) -> None:
        object.__setattr__(self, "count", state.pop("count"))
        models.TensorData.__setstate__(self, state)  # type: ignore[attr-defined]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda tensor: pickle.loads(pickle.dumps(tensor))])
def test_derived_models_keep_their_own_state(copied: Any) -> None:
    """Classes of users decide on the state that their pickles and copies have."""
    tensor = _CountedTensor.from_numpy(np.ones(2, np.float32))
    object.__setattr__(tensor, "count", 3)
    assert type(copied(tensor)) is _CountedTensor and copied(tensor).count == 3
    assert copied(tensor) == tensor


def test_model_copy_keeps_arrays_without_conversion(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy with updates keeps arrays, too, and converts nothing to a list."""
    monkeypatch.setattr(ArrayCodec, "to_list", None)
    array = np.arange(3, dtype=np.int32)
    sequence = SampledSequence(stop_reason="stop", tokens=array)
    assert sequence.model_copy(update={"sequence_id": "s"}).tokens_np is array
    tensor = models.TensorData.from_numpy(np.ones(4, np.float32))
    assert tensor.model_copy(update={"shape": [2, 2]}).raw is tensor.raw
    with pytest.raises(ValueError, match="does not hold 4 values"):
        tensor.model_copy(update={"shape": [3]})


def test_tensor_data_reads_as_a_list() -> None:
    """The data reads as a list of plain numbers, converted once; requests carry the form that was passed."""
    array = np.array([0.5, 1.5], np.float32)
    tensor = models.TensorData.from_numpy(array)
    assert np.shares_memory(tensor.raw, array) and Converter().unstructure(tensor)["data"] is tensor.raw
    assert tensor.data == [0.5, 1.5] and tensor.data is tensor.data and type(tensor.data[0]) is float
    assert Converter().unstructure(tensor)["data"] is tensor.raw and isinstance(tensor.raw, np.ndarray)
    assert len({tensor, models.TensorData(data=[0.5, 1.5], dtype="float32", shape=[2])}) == 1


def test_models_copy_lists() -> None:
    """Code that fills one list again and again does not change what it made of it."""
    tokens, chunks, numbers = [1, 2], [models.EncodedTextChunk(tokens=[1])], [1.0]
    chunk, prompt = models.EncodedTextChunk(tokens=tokens), models.ModelInput(chunks=[*chunks])
    tensor = models.TensorData(data=numbers, dtype="float32")
    prompt = models.ModelInput(chunks=chunks)
    for values in (tokens, chunks, numbers):
        values.clear()
    assert (chunk.tokens, prompt.length, tensor.data) == ([1, 2], 1, [1.0])
