"""The request of one sample, and the validation of its arguments."""

from __future__ import annotations

from typing import TypedDict

from typing_extensions import Unpack

from tinkerwire_base.errors import ContextLengthError, ResponseInfo
from tinkerwire_base.validators import require_int
from tinkerwire_generated import models

from .._usage import exact_length

BAD_REQUEST = 400


class SampleOptions(TypedDict, total=False):
    """Fields of a sample request beside the prompt, the number of samples, and the sampling parameters."""

    prompt_logprobs: bool
    topk_prompt_logprobs: int
    topk_sample_logprobs: int
    target_prompt_logprobs: models.TensorData | None
    prompt_alt_tokens_k: int
    prompt_logprobs_last_n: int | None
    record_stability_info: bool | None


def build_sample_request(
    prompt: models.ModelInput,
    num_samples: int,
    sampling_params: models.SamplingParams,
    **options: Unpack[SampleOptions],
) -> models.SampleRequest:
    """Validate the arguments of SamplingClient.sample, and return the request.

    Raises:
        ValueError, TypeError: an argument is invalid.
    """
    require_int("num_samples", num_samples)
    if num_samples < 1:
        raise ValueError(f"num_samples must be at least 1, got {num_samples}")
    if not isinstance(sampling_params, models.SamplingParams):
        raise TypeError(f"sampling_params: expected SamplingParams, got {type(sampling_params).__name__}")
    _validate_prompt(prompt)
    request = models.SampleRequest(
        num_samples=num_samples, prompt=_compact_prompt(prompt), sampling_params=sampling_params, **options
    )
    _validate_options(request)
    return request


def _validate_prompt(prompt: models.ModelInput) -> None:
    if not isinstance(prompt, models.ModelInput):
        raise TypeError(
            f"prompt: expected a ModelInput, got {type(prompt).__name__}; ModelInput.from_ints converts token ids"
        )
    if not prompt.chunks:
        raise ValueError("prompt must have at least one token, got no chunks")


def _compact_prompt(prompt: models.ModelInput) -> models.ModelInput:
    """Return a prompt whose long lists of tokens are arrays: thousands may wait, and a list takes twice the memory."""
    return models.ModelInput(chunks=[_compact_chunk(chunk) for chunk in prompt.chunks])


def _compact_chunk(chunk: models.ModelInputChunk) -> models.ModelInputChunk:
    if not isinstance(chunk, models.EncodedTextChunk):
        return chunk
    try:
        return chunk.packed()
    except (ValueError, TypeError):
        return chunk  # a list that was changed after its check


def _validate_options(request: models.SampleRequest) -> None:
    for name in ("topk_prompt_logprobs", "topk_sample_logprobs", "prompt_alt_tokens_k"):
        if getattr(request, name) < 0:
            raise ValueError(f"{name} must be at least 0, got {getattr(request, name)}")
    tokens = exact_length(request.prompt)
    last_n = request.prompt_logprobs_last_n
    if last_n is not None:
        _validate_last_n(last_n, tokens, with_prompt_logprobs=bool(request.prompt_logprobs))
    if request.target_prompt_logprobs is not None:
        _validate_targets(request.target_prompt_logprobs, tokens)


def _validate_last_n(last_n: int, tokens: int | None, *, with_prompt_logprobs: bool) -> None:
    if last_n < 1:
        raise ValueError(f"prompt_logprobs_last_n must be at least 1, got {last_n}")
    if not with_prompt_logprobs:
        raise ValueError("prompt_logprobs_last_n needs prompt logprobs; set include_prompt_logprobs=True")
    if tokens is not None and last_n >= tokens:
        raise ValueError(
            f"prompt_logprobs_last_n must be at most {tokens - 1} for a prompt of {tokens} tokens, because the first "
            f"token has no logprob, got {last_n}; omit it for all tokens"
        )


def _validate_targets(targets: models.TensorData, tokens: int | None) -> None:
    shape = targets.to_numpy().shape
    if targets.dtype != "int64" or len(shape) != 2:
        raise ValueError(
            f"target_prompt_logprobs: expected an int64 tensor of two dimensions, got {targets.dtype} of shape {shape}"
        )
    if tokens is not None and shape[0] != tokens - 1:
        raise ValueError(
            f"target_prompt_logprobs: expected {tokens - 1} rows for a prompt of {tokens} tokens, one per token but "
            f"the first, got {shape[0]}"
        )


def check_context_length(prompt: models.ModelInput, max_tokens: int | None, context_length: int) -> None:
    """Refuse a prompt that does not fit into the context together with ``max_tokens`` more tokens.

    A prompt with an image or another chunk that is not text is not checked: only the server knows its length.

    Raises:
        ContextLengthError: the two exceed the context.
    """
    if not all(isinstance(chunk, models.EncodedTextChunk) for chunk in prompt.chunks):
        return
    prompt_tokens, requested_tokens = prompt.length, max(max_tokens or 0, 0)
    if prompt_tokens + requested_tokens <= context_length:
        return
    room = context_length - prompt_tokens
    way_out = f"set max_tokens to at most {room}, or shorten the prompt" if room > 0 else "shorten the prompt"
    message = (
        f"prompt and max_tokens must fit into the model's context of {context_length} tokens, got a prompt of "
        f"{prompt_tokens} tokens and max_tokens={max_tokens}; {way_out}"
    )
    # The same response as that of a server that checks; this request is not sent.
    response = ResponseInfo(status_code=BAD_REQUEST, text=message)
    raise ContextLengthError(
        message, response, prompt_tokens=prompt_tokens, max_tokens=max_tokens, context_length=context_length
    )
