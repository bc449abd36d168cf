"""Checks of a sample response against its request; some servers silently ignore options."""

from __future__ import annotations

import attrs

from tinkerwire_base.errors import APIResponseValidationError, ResponseInfo
from tinkerwire_base.list_array import stored_length
from tinkerwire_generated import models

from .._usage import exact_length


def align_prompt_logprobs(request: models.SampleRequest, response: models.SampleResponse) -> models.SampleResponse:
    """Check a response, and return it with one prompt logprob per token: some servers omit the None of the first.

    Raises:
        APIResponseValidationError: the response does not fit the request.
    """
    _check_lengths(request, response)
    count, last_n = stored_length(response, "prompt_logprobs"), request.prompt_logprobs_last_n
    if last_n is not None and any(value is not None for value in (response.prompt_logprobs or ())[:-last_n]):
        raise invalid_response(
            f"prompt_logprobs: got values before the last {last_n} tokens, although prompt_logprobs_last_n={last_n}; "
            "the server may not support this option"
        )
    if count is None or count + 1 != exact_length(request.prompt):
        return response
    return attrs.evolve(response, prompt_logprobs=[None, *(response.prompt_logprobs or ())])


def missing_fields(request: models.SampleRequest, response: models.SampleResponse) -> list[str]:
    """Return the names of requested fields that the response lacks."""
    first = response.sequences[0] if response.sequences else None
    fields = (
        ("prompt_logprobs", request.prompt_logprobs, stored_length(response, "prompt_logprobs")),
        ("topk_prompt_logprobs", request.topk_prompt_logprobs, stored_length(response, "topk_prompt_logprobs")),
        ("topk_logprobs", request.topk_sample_logprobs, 0 if first is None else stored_length(first, "topk_logprobs")),
        ("target_prompt_logprobs", request.target_prompt_logprobs, response.target_prompt_logprobs),
    )
    return [name for name, is_requested, value in fields if is_requested and value is None]


def require_prompt_logprobs(request: models.SampleRequest, response: models.SampleResponse) -> list[float | None]:
    """Return the prompt logprobs, one per token.

    Raises:
        APIResponseValidationError: the response has none, or the wrong number.
    """
    values, tokens = response.prompt_logprobs, exact_length(request.prompt)
    if values is None or tokens not in (None, len(values)):
        count = "none" if values is None else len(values)
        raise invalid_response(f"prompt_logprobs: expected one value per prompt token ({tokens}), got {count}")
    return list(values)


def invalid_response(message: str) -> APIResponseValidationError:
    """Return the error of a response that does not fit its request."""
    return APIResponseValidationError(ResponseInfo(status_code=200), message=message)


def _check_lengths(request: models.SampleRequest, response: models.SampleResponse) -> None:
    """Check every list whose length the request or the tokens determine."""
    _check_sequences(request, response)
    tokens = exact_length(request.prompt)
    _check_alternatives(request, response, tokens)
    if tokens is None:
        return
    # Some servers omit the first token, which has no logprob; some return only the last_n values.
    allowed = {tokens, tokens - 1, request.prompt_logprobs_last_n}
    for name, is_requested in (
        ("prompt_logprobs", request.prompt_logprobs),
        ("topk_prompt_logprobs", request.topk_prompt_logprobs),
    ):
        count = stored_length(response, name)
        if is_requested and count is not None and count not in allowed:
            raise invalid_response(f"{name}: expected one value per prompt token ({tokens}), got {count}")
    targets = response.target_prompt_logprobs
    if request.target_prompt_logprobs is not None and targets is not None and targets.shape:
        expected = request.target_prompt_logprobs.shape
        if expected and (targets.shape[0] not in (tokens, tokens - 1) or targets.shape[1:] != expected[1:]):
            raise invalid_response(f"target_prompt_logprobs: expected shape {expected}, got {targets.shape}")


def _check_sequences(request: models.SampleRequest, response: models.SampleResponse) -> None:
    expected, count = request.num_samples, len(response.sequences)
    # A request for prompt logprobs samples one token only because the wire requires at least one.
    is_for_prompt_only = request.prompt_logprobs and request.sampling_params.max_tokens == 1 and not count
    if expected is not None and count != expected and not is_for_prompt_only:
        raise invalid_response(f"sequences: expected num_samples={expected}, got {count}")
    for position, sequence in enumerate(response.sequences):
        tokens = stored_length(sequence, "tokens")
        for name in ("logprobs", "topk_logprobs"):
            count_of_field = stored_length(sequence, name)
            if count_of_field is not None and count_of_field != tokens:
                raise invalid_response(
                    f"sequences[{position}].{name}: expected one value per token ({tokens}), got {count_of_field}"
                )


def _check_alternatives(request: models.SampleRequest, response: models.SampleResponse, tokens: int | None) -> None:
    k, alternatives = request.prompt_alt_tokens_k, response.prompt_alt_tokens
    if not k:
        return
    if alternatives is None:
        raise invalid_response(
            f"prompt_alt_tokens: expected prompt_alt_tokens_k={k} tokens per position, got none; the server may not "
            "support this option"
        )
    for name, tensor in (("tokens", alternatives.tokens), ("logprobs", alternatives.logprobs)):
        shape = tuple(tensor.shape or ())
        if len(shape) != 2 or shape[1] != k or (tokens is not None and shape[0] not in (tokens, tokens - 1)):
            rows = "any number of" if tokens is None else tokens - 1
            raise invalid_response(
                f"prompt_alt_tokens.{name}: expected {rows} rows of prompt_alt_tokens_k={k} values, got shape {shape}"
            )
