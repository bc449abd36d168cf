"""What a server gave for a sample, held against what it was asked for: servers pass over wishes without a word."""

from __future__ import annotations

import attrs

from tinkerwire_base.errors import APIResponseValidationError, ResponseInfo
from tinkerwire_base.twofold import length
from tinkerwire_generated.models import SampleRequest, SampleResponse

from ..usage import length_of


def fitted(request: SampleRequest, response: SampleResponse) -> SampleResponse:
    """The response with a prompt logprob, if only None, for every token: some servers leave out the first.

    Raises:
        APIResponseValidationError: it would pass for the answer to another question.
    """
    if request.prompt_alt_tokens_k and response.prompt_alt_tokens is None:
        raise _unfit(f"prompt_alt_tokens_k={request.prompt_alt_tokens_k}: the server drew none; it may not know this")
    count, last_n = length(response, "prompt_logprobs"), request.prompt_logprobs_last_n
    if last_n is not None and any(value is not None for value in (response.prompt_logprobs or ())[:-last_n]):
        raise _unfit(f"prompt_logprobs_last_n={last_n}: the server gave those of earlier tokens; it may not know this")
    if count is None or count + 1 != length_of(request.prompt):
        return response
    return attrs.evolve(response, prompt_logprobs=[None, *(response.prompt_logprobs or ())])


def missing(request: SampleRequest, response: SampleResponse) -> list[str]:
    """Names of what was asked for and is not there, where that is plain to see from the response itself."""
    first = response.sequences[0] if response.sequences else None
    wishes = (
        ("prompt_logprobs", request.prompt_logprobs, length(response, "prompt_logprobs")),
        ("topk_prompt_logprobs", request.topk_prompt_logprobs, length(response, "topk_prompt_logprobs")),
        ("topk_logprobs", request.topk_sample_logprobs, 0 if first is None else length(first, "topk_logprobs")),
        ("target_prompt_logprobs", request.target_prompt_logprobs, response.target_prompt_logprobs),
    )
    return [name for name, wish, found in wishes if wish and found is None]


def prompt_logprobs(request: SampleRequest, response: SampleResponse) -> list[float | None]:
    """One for each token of the prompt.

    Raises:
        APIResponseValidationError: there are none, or of another number of tokens.
    """
    found, tokens = response.prompt_logprobs, length_of(request.prompt)
    if found is None or tokens not in (None, len(found)):
        raise _unfit(
            f"compute_logprobs: the server gave {'no' if found is None else len(found)} prompt logprobs for {tokens} "
            "tokens"
        )
    return list(found)


def _unfit(text: str) -> APIResponseValidationError:
    return APIResponseValidationError(ResponseInfo(status_code=200), message=text)
