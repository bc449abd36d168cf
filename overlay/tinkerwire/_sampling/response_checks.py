"""What a server gave for a sample, held against what it was asked for: servers pass over wishes without a word."""

from __future__ import annotations

import attrs

from tinkerwire_base.errors import APIResponseValidationError, ResponseInfo
from tinkerwire_base.list_array import stored_length
from tinkerwire_generated.models import SampleRequest, SampleResponse

from .._usage import exact_length


def fitted(request: SampleRequest, response: SampleResponse) -> SampleResponse:
    """The response with a prompt logprob, if only None, for every token: some servers leave out the first.

    Raises:
        APIResponseValidationError: it would pass for the answer to another question.
    """
    if request.prompt_alt_tokens_k and response.prompt_alt_tokens is None:
        raise _unfit(f"prompt_alt_tokens_k={request.prompt_alt_tokens_k}: the server drew none; it may not know this")
    _check_lengths(request, response)
    count, last_n = stored_length(response, "prompt_logprobs"), request.prompt_logprobs_last_n
    if last_n is not None and any(value is not None for value in (response.prompt_logprobs or ())[:-last_n]):
        raise _unfit(f"prompt_logprobs_last_n={last_n}: the server gave those of earlier tokens; it may not know this")
    if count is None or count + 1 != exact_length(request.prompt):
        return response
    return attrs.evolve(response, prompt_logprobs=[None, *(response.prompt_logprobs or ())])


def _check_lengths(request: SampleRequest, response: SampleResponse) -> None:
    """Compare every list whose length the request or the tokens fix; the error names the first that differs."""
    wanted, given = request.num_samples, len(response.sequences)
    # Whoever asks for the logprobs of a prompt draws one token only because servers draw at least one.
    is_beside = request.prompt_logprobs and request.sampling_params.max_tokens == 1 and not given
    if wanted is not None and given != wanted and not is_beside:
        raise _unfit(f"num_samples={wanted}: the server gave {given} sequences")
    for position, sequence in enumerate(response.sequences):
        tokens = stored_length(sequence, "tokens")
        for name in ("logprobs", "topk_logprobs"):
            found = stored_length(sequence, name)
            if found is not None and found != tokens:
                raise _unfit(f"sequences[{position}]: the server gave {found} {name} for {tokens} tokens")
    tokens = exact_length(request.prompt)
    if tokens is None:
        return
    # Some servers leave out the first token, which has no logprob; some give only the last ones that were asked for.
    allowed = {tokens, tokens - 1, request.prompt_logprobs_last_n}
    for name, is_asked in (
        ("prompt_logprobs", request.prompt_logprobs),
        ("topk_prompt_logprobs", request.topk_prompt_logprobs),
    ):
        found = stored_length(response, name)
        if is_asked and found is not None and found not in allowed:
            raise _unfit(f"the server gave {found} {name.replace('_', ' ')} for {tokens} tokens")
    targets = response.target_prompt_logprobs
    if request.target_prompt_logprobs is not None and targets is not None and targets.shape:
        expected = request.target_prompt_logprobs.shape
        if expected and (targets.shape[0] not in (tokens, tokens - 1) or targets.shape[1:] != expected[1:]):
            raise _unfit(
                f"target_prompt_logprobs: the server gave the shape {targets.shape} for targets of shape {expected}"
            )


def missing(request: SampleRequest, response: SampleResponse) -> list[str]:
    """Names of what was asked for and is not there, where that is plain to see from the response itself."""
    first = response.sequences[0] if response.sequences else None
    wishes = (
        ("prompt_logprobs", request.prompt_logprobs, stored_length(response, "prompt_logprobs")),
        ("topk_prompt_logprobs", request.topk_prompt_logprobs, stored_length(response, "topk_prompt_logprobs")),
        ("topk_logprobs", request.topk_sample_logprobs, 0 if first is None else stored_length(first, "topk_logprobs")),
        ("target_prompt_logprobs", request.target_prompt_logprobs, response.target_prompt_logprobs),
    )
    return [name for name, wish, found in wishes if wish and found is None]


def prompt_logprobs(request: SampleRequest, response: SampleResponse) -> list[float | None]:
    """One for each token of the prompt.

    Raises:
        APIResponseValidationError: there are none, or of another number of tokens.
    """
    found, tokens = response.prompt_logprobs, exact_length(request.prompt)
    if found is None or tokens not in (None, len(found)):
        raise _unfit(
            f"compute_logprobs: the server gave {'no' if found is None else len(found)} prompt logprobs for {tokens} "
            "tokens"
        )
    return list(found)


def _unfit(text: str) -> APIResponseValidationError:
    return APIResponseValidationError(ResponseInfo(status_code=200), message=text)
