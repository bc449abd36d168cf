"""What a server gave for a sample, held against what it was asked for: servers pass over wishes without a word."""

from __future__ import annotations

import attrs

from tinkerwire_base.errors import APIResponseValidationError, ResponseInfo
from tinkerwire_generated.models import SampleRequest, SampleResponse

from .usage import length_of


def fitted(request: SampleRequest, response: SampleResponse) -> SampleResponse:
    """The response with a prompt logprob, if only None, for every token: some servers leave out the first.

    Raises:
        APIResponseValidationError: it would pass for the answer to another question.
    """
    if request.prompt_alt_tokens_k and response.prompt_alt_tokens is None:
        raise _unfit(f"prompt_alt_tokens_k={request.prompt_alt_tokens_k}: the server drew none; it may not know this")
    found = response.prompt_logprobs
    if found is None:
        return response
    length, last_n = length_of(request.prompt), request.prompt_logprobs_last_n
    if last_n is not None and any(value is not None for value in found[:-last_n]):
        raise _unfit(f"prompt_logprobs_last_n={last_n}: the server gave those of earlier tokens; it may not know this")
    return response if len(found) + 1 != length else attrs.evolve(response, prompt_logprobs=[None, *found])


def missing(request: SampleRequest, response: SampleResponse) -> list[str]:
    """Names of what was asked for and is not there, where that is plain to see from the response itself."""
    topk = response.sequences[0].topk_logprobs if response.sequences else ()
    wishes = (
        ("prompt_logprobs", request.prompt_logprobs, response.prompt_logprobs),
        ("topk_prompt_logprobs", request.topk_prompt_logprobs, response.topk_prompt_logprobs),
        ("topk_logprobs", request.topk_sample_logprobs, topk),
        ("target_prompt_logprobs", request.target_prompt_logprobs, response.target_prompt_logprobs),
    )
    return [name for name, wish, found in wishes if wish and found is None]


def prompt_logprobs(request: SampleRequest, response: SampleResponse) -> list[float | None]:
    """One for each token of the prompt.

    Raises:
        APIResponseValidationError: there are none, or of another number of tokens.
    """
    found, length = response.prompt_logprobs, length_of(request.prompt)
    if found is None or length not in (None, len(found)):
        raise _unfit(
            f"compute_logprobs: the server gave {'no' if found is None else len(found)} prompt logprobs for {length} "
            "tokens"
        )
    return list(found)


def _unfit(text: str) -> APIResponseValidationError:
    return APIResponseValidationError(text, response=ResponseInfo(status_code=200))
