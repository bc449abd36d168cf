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
