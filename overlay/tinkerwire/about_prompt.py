"""What a sample asks about its prompt: whether it can be asked, and whether it was answered."""

from __future__ import annotations

from tinkerwire_base.errors import APIResponseValidationError, ResponseInfo
from tinkerwire_generated.models import SampleRequest, SampleResponse


def check(request: SampleRequest) -> None:
    """ValueError for a question that no server can answer."""
    for name in ("topk_prompt_logprobs", "topk_sample_logprobs", "prompt_alt_tokens_k"):
        if getattr(request, name) < 0:
            raise ValueError(f"{name}: {getattr(request, name)} is below 0")
    length = _length(request)
    last_n = request.prompt_logprobs_last_n
    if last_n is not None:
        if last_n < 1:
            raise ValueError(f"prompt_logprobs_last_n: {last_n} is below 1")
        if not request.prompt_logprobs:
            raise ValueError("prompt_logprobs_last_n: it is about prompt logprobs; set include_prompt_logprobs")
        if length is not None and last_n >= length:
            raise ValueError(
                f"prompt_logprobs_last_n: {last_n} of a prompt of {length} tokens; the first has none, so give at "
                f"most {length - 1}, or leave it away"
            )
    targets = request.target_prompt_logprobs
    if targets is None:
        return
    shape = targets.shape or ()
    if targets.dtype != "int64" or len(shape) != 2:
        raise ValueError(
            f"target_prompt_logprobs: expected an int64 tensor of two dimensions, got {targets.dtype} of shape {shape}"
        )
    if length is not None and shape[0] != length - 1:
        raise ValueError(
            f"target_prompt_logprobs: {shape[0]} rows for a prompt of {length} tokens; give {length - 1}, one in place "
            "of each token but the first"
        )


def check_answer(request: SampleRequest, response: SampleResponse) -> None:
    """APIResponseValidationError when the server passed over a question that changes what an answer means."""
    if request.prompt_alt_tokens_k and response.prompt_alt_tokens is None:
        raise _unfit(f"prompt_alt_tokens_k={request.prompt_alt_tokens_k}: the server drew none; it may not know this")
    last_n, found = request.prompt_logprobs_last_n, response.prompt_logprobs
    if last_n is not None and found is not None and any(value is not None for value in found[:-last_n]):
        raise _unfit(f"prompt_logprobs_last_n={last_n}: the server gave those of earlier tokens; it may not know this")


def aligned(request: SampleRequest, response: SampleResponse) -> list[float | None]:
    """The prompt logprobs, one a token of the prompt.

    Raises:
        APIResponseValidationError: there are none, or of another number of tokens.
    """
    found = response.prompt_logprobs
    length = _length(request)
    if length is None:
        length = len(found or ())
    if found is None or len(found) not in (length, length - 1):
        raise _unfit(
            f"compute_logprobs: the server gave {'no' if found is None else len(found)} prompt logprobs for {length} "
            "tokens"
        )
    # Some servers leave out the first token, of which there is nothing to say.
    return list(found) if len(found) == length else [None, *found]


def _length(request: SampleRequest) -> int | None:
    try:
        return request.prompt.length
    except ValueError:
        # Only the server knows how many tokens an image is.
        return None


def _unfit(text: str) -> APIResponseValidationError:
    return APIResponseValidationError(text, response=ResponseInfo(status_code=200))
