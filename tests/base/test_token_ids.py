"""Token ids: accepted forms, and errors with the position."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tinkerwire_base.tensors import is_number_list, token_ids
from tinkerwire_generated.models import ModelInput


@pytest.mark.parametrize("tokens", [[0, 2**53 - 1], [2**53], [2**63 - 1, -(2**63)]])
def test_tokens_of_all_sizes_are_accepted(tokens: list[int]) -> None:
    """Those that are too large for the fast check are looked at one by one."""
    assert token_ids("tokens", tokens) == tokens


@pytest.mark.parametrize("tokens", [[1, 2], (1, 2), range(1, 3), np.array([1, 2], np.int32), [np.int64(1), 2]])
def test_tokens_are_accepted_in_every_form(tokens: Any) -> None:
    """Lists, tuples, ranges, integer arrays and numpy integers are token ids."""
    assert ModelInput.from_ints(tokens).to_ints() == [1, 2]
    assert isinstance(token_ids("x", tokens), list | tuple | np.ndarray)


def test_token_arrays_are_not_copied() -> None:
    """An array of tokens stays the same memory."""
    tokens = np.array([1, 2])
    assert np.shares_memory(ModelInput.from_ints(tokens).chunks[0].tokens, tokens)


@pytest.mark.parametrize(
    ("tokens", "kind", "pattern"),
    [
        ([1, 2.0], TypeError, r"\[1\]: expected an int, got 2.0 \(float\)"),
        ([True], TypeError, r"\[0\]: expected an int, got True \(bool\)"),
        ([1, None], TypeError, r"\[1\]: expected an int, got None"),
        ([[1]], TypeError, r"\[0\]: expected an int, got \[1\]"),
        ([2**63 - 1, 2**63], OverflowError, rf"\[1\]: {2**63} does not fit into 64 bits"),
        ([-(2**63) - 1], OverflowError, r"\[0\]: -9223372036854775809 does not fit"),
        ("abc", TypeError, "expected a list of token ids, got str"),
        (b"abc", TypeError, "expected a list of token ids, got bytes"),
        (5, TypeError, "expected a list of token ids, got int"),
        ((i for i in [1]), TypeError, "expected a list of token ids, got generator"),
        (np.array([[1]]), TypeError, "expected a 1-D array of integers, got 2-D int64; flatten it"),
        (np.array([1.0]), TypeError, "got 1-D float64; flatten it or cast it"),
        (np.array([2**63], np.uint64), OverflowError, rf"\[0\]: {2**63} does not fit into int64"),
    ],
)
def test_invalid_tokens_raise_errors_with_position(tokens: Any, kind: type[Exception], pattern: str) -> None:
    """An invalid token id raises an error with its position and value."""
    with pytest.raises(kind, match=r"EncodedTextChunk.tokens.*" + pattern):
        ModelInput.from_ints(tokens)


def test_list_of_small_ints_is_a_number_list() -> None:
    """Ints of 53 bits that are not below 0 need no closer look; all other values do."""
    for values in ([], [1, 22, 333], [2**53 - 1]):
        assert is_number_list(values, "int64")
    for other in ([-1], [1.5], ["1"], [None], [[1]], [2**53], [{"1": 1}]):
        assert not is_number_list(other, "int64")
