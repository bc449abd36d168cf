"""Tests of the checks of a sample response against its request."""

from __future__ import annotations

import numpy as np
import pytest

import tinkerwire as tw
from tinkerwire._sampling.response_checks import align_prompt_logprobs
from tinkerwire_generated.models import PromptAltTokens, SampledSequence, SampleRequest, SampleResponse

PROMPT = tw.ModelInput.from_ints([1, 2, 3])
PARAMS = tw.SamplingParams(max_tokens=2)
SEQUENCE = SampledSequence(stop_reason="length", tokens=[5, 6], logprobs=[-1.0, -1.0])


def make_alternatives(rows: int, k: int) -> PromptAltTokens:
    """Return alternative tokens of that shape."""
    return PromptAltTokens(
        tokens=tw.TensorData.from_numpy(np.zeros((rows, k), np.int64)),
        logprobs=tw.TensorData.from_numpy(np.zeros((rows, k), np.float32)),
    )


@pytest.mark.parametrize("count", [0, 1, 3])
def test_wrong_number_of_sequences_is_an_error(count: int) -> None:
    """Fewer or more sequences than requested raise an error with both numbers."""
    request = SampleRequest(prompt=PROMPT, sampling_params=PARAMS, num_samples=2)
    with pytest.raises(tw.APIResponseValidationError, match=f"sequences: expected num_samples=2, got {count}"):
        align_prompt_logprobs(request, SampleResponse(sequences=[SEQUENCE] * count))


def test_wrong_number_of_logprobs_names_the_sequence() -> None:
    """Fewer logprobs than tokens raise an error that names the sequence."""
    short_sequence = SampledSequence(stop_reason="length", tokens=[5, 6], logprobs=[-1.0])
    request = SampleRequest(prompt=PROMPT, sampling_params=PARAMS, num_samples=2)
    with pytest.raises(tw.APIResponseValidationError, match=r"sequences\[1\]\.logprobs: expected .* \(2\), got 1"):
        align_prompt_logprobs(request, SampleResponse(sequences=[SEQUENCE, short_sequence]))


def test_wrong_number_of_topk_logprobs_names_the_sequence() -> None:
    """Fewer lists of top-k logprobs than tokens raise an error that names the sequence."""
    short_sequence = SampledSequence(stop_reason="length", tokens=[5, 6], topk_logprobs=[[(5, -1.0)]])
    request = SampleRequest(prompt=PROMPT, sampling_params=PARAMS, topk_sample_logprobs=1)
    with pytest.raises(tw.APIResponseValidationError, match=r"sequences\[0\]\.topk_logprobs: expected .* \(2\), got 1"):
        align_prompt_logprobs(request, SampleResponse(sequences=[short_sequence]))


@pytest.mark.parametrize(("rows", "k"), [(1, 2), (2, 3), (4, 2)])
def test_alternative_tokens_of_a_wrong_shape_are_an_error(rows: int, k: int) -> None:
    """Alternative tokens need one row per prompt token but the first, and k columns."""
    request = SampleRequest(prompt=PROMPT, sampling_params=PARAMS, prompt_alt_tokens_k=2)
    response = SampleResponse(sequences=[SEQUENCE], prompt_alt_tokens=make_alternatives(rows, k))
    with pytest.raises(
        tw.APIResponseValidationError, match=rf"prompt_alt_tokens\.tokens: .* got shape \({rows}, {k}\)"
    ):
        align_prompt_logprobs(request, response)


@pytest.mark.parametrize("rows", [2, 3])
def test_alternative_tokens_of_the_requested_shape_are_accepted(rows: int) -> None:
    """A row for the first token is allowed."""
    request = SampleRequest(prompt=PROMPT, sampling_params=PARAMS, prompt_alt_tokens_k=2)
    response = SampleResponse(sequences=[SEQUENCE], prompt_alt_tokens=make_alternatives(rows, 2))
    assert align_prompt_logprobs(request, response) is response
