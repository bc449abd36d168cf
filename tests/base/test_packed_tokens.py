"""Tests that long lists of token ids, which are stored as arrays, are checked and read like all other lists."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinkerwire_base.call import default_converter
from tinkerwire_base.list_array import DualValue
from tinkerwire_base.packed_list import MIN_PACKED_ITEMS, pack_ints
from tinkerwire_base.pickling import restore
from tinkerwire_generated import models as m

INT32 = st.integers(-(2**31), 2**31 - 1)
OTHERS = st.sampled_from([2**31, -(2**31) - 1, True, None, 1.0, "i", b"iiii", (105,), np.int32(5), 1j, ...])
LONG = list(range(150_000, 150_000 + MIN_PACKED_ITEMS))


@given(st.lists(INT32, min_size=MIN_PACKED_ITEMS, max_size=MIN_PACKED_ITEMS + 9))
def test_ints_of_32_bits_are_packed(tokens: list[int]) -> None:
    """The array has the same numbers."""
    packed = pack_ints(tokens)
    assert packed is not None
    assert packed.to_list() == tokens
    assert packed.to_array().dtype == np.int32
    assert packed.to_array().tolist() == packed.to_list() == tokens


@given(st.lists(INT32 | OTHERS, min_size=MIN_PACKED_ITEMS, max_size=MIN_PACKED_ITEMS + 9), OTHERS)
def test_other_values_are_not_packed(tokens: list[Any], other: Any) -> None:
    """No value of another type or size is taken for a token id, wherever it is."""
    assert pack_ints([*tokens, other]) is None
    assert pack_ints([other, *tokens]) is None


@pytest.mark.parametrize("other", [True, 1.5, None, "1", 2**63])
def test_invalid_token_of_long_list_is_named(other: Any) -> None:
    """The error is the one of a short list."""
    with pytest.raises((TypeError, ValueError), match=r"EncodedTextChunk.tokens\[64\]"):
        m.EncodedTextChunk(tokens=[*LONG, other])


def test_tokens_read_as_list() -> None:
    """The list has Python's ints, and neither the caller's list nor the result of to_ints is shared."""
    tokens = list(LONG)
    prompt = m.ModelInput.from_ints(tokens)
    tokens[0] = -1
    prompt.to_ints().append(-1)
    assert prompt.to_ints() == prompt.to_ints() == LONG
    (chunk,) = prompt.chunks
    assert isinstance(chunk, m.EncodedTextChunk)
    assert (type(chunk.tokens), chunk.tokens, type(chunk.tokens[0])) == (list, LONG, int)
    assert chunk.length == prompt.length == len(LONG)


def test_changed_list_is_sent() -> None:
    """The list that the attribute returns belongs to the chunk."""
    chunk = m.EncodedTextChunk(tokens=LONG)
    snapshot = chunk.packed()
    chunk.tokens.append(7)  # type: ignore[union-attr]
    assert (chunk.length, snapshot.length) == (len(LONG) + 1, len(LONG))
    assert m.ModelInput(chunks=[chunk]).to_ints() == chunk.packed().tokens == [*LONG, 7]


def test_earlier_pickles_load() -> None:
    """They hold the tokens of a long list as a DualValue."""
    array = np.array(LONG, np.int32)
    values = DualValue(array=array), "encoded_text"
    chunk = pickle.loads(pickle.dumps(_Pickled(restore, (m.EncodedTextChunk, "_tokens type", values))))
    assert chunk == m.EncodedTextChunk(tokens=LONG)
    assert (chunk.length, chunk.packed().tokens, type(chunk.tokens)) == (len(LONG), LONG, list)


class _Pickled:
    """An object whose pickle is a call of a function."""

    def __init__(self, *call: Any) -> None:
        self._call = call

    def __reduce__(self) -> Any:
        return self._call


def test_packed_chunks_compare_and_copy_like_lists() -> None:
    """Equality, pickles, copies and dumps do not depend on the form, and show lists."""
    chunk, read = m.EncodedTextChunk(tokens=LONG), m.EncodedTextChunk(tokens=LONG)
    assert read.tokens == LONG
    for other in (pickle.loads(pickle.dumps(chunk)), copy.deepcopy(chunk), attrs.evolve(chunk), read):
        assert other == m.EncodedTextChunk(tokens=LONG)
        assert repr(other) == repr(read)
    assert m.EncodedTextChunk(tokens=LONG).model_dump() == {"tokens": LONG, "type": "encoded_text"}
    assert m.EncodedTextChunk.model_validate_json(chunk.model_dump_json()) == read
    assert default_converter().decode(default_converter().encode(chunk), m.EncodedTextChunk) == read
