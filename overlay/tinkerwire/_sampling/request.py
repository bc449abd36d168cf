"""What is asked of a server for one sample, checked before anything is sent."""

from __future__ import annotations

from tinkerwire_base.validators import require_int
from tinkerwire_generated.models import ModelInput, SampleRequest, SamplingParams, TensorData

from .._usage import exact_length


def sample_request(
    prompt: ModelInput,
    num_samples: int,
    sampling_params: SamplingParams,
    *,
    prompt_logprobs: bool,
    topk_prompt_logprobs: int = 0,
    topk_sample_logprobs: int = 0,
    target_prompt_logprobs: TensorData | None = None,
    prompt_alt_tokens_k: int = 0,
    prompt_logprobs_last_n: int | None = None,
    record_stability_info: bool | None,
) -> SampleRequest:
    """The request; arguments as for SamplingClient.sample. ValueError or TypeError names what cannot be asked."""
    require_int("num_samples", num_samples)
    if num_samples < 1:
        raise ValueError(f"num_samples: {num_samples} is below 1")
    if not isinstance(sampling_params, SamplingParams):
        raise TypeError(f"sampling_params: expected SamplingParams, got {type(sampling_params).__name__}")
    request = SampleRequest(
        num_samples=num_samples,
        prompt=_checked(prompt),
        sampling_params=sampling_params,
        prompt_logprobs=prompt_logprobs,
        topk_prompt_logprobs=topk_prompt_logprobs,
        topk_sample_logprobs=topk_sample_logprobs,
        target_prompt_logprobs=target_prompt_logprobs,
        prompt_alt_tokens_k=prompt_alt_tokens_k,
        prompt_logprobs_last_n=prompt_logprobs_last_n,
        record_stability_info=record_stability_info,
    )
    _check_questions(request)
    return request


def _checked(prompt: ModelInput) -> ModelInput:
    if not isinstance(prompt, ModelInput):
        raise TypeError(f"prompt: expected a ModelInput, got {type(prompt).__name__}; ModelInput.from_ints makes one")
    if not prompt.chunks:
        raise ValueError("prompt: it has no chunks; give at least one token")
    return prompt


def _check_questions(request: SampleRequest) -> None:
    """ValueError for what nobody can answer about the prompt."""
    for name in ("topk_prompt_logprobs", "topk_sample_logprobs", "prompt_alt_tokens_k"):
        if getattr(request, name) < 0:
            raise ValueError(f"{name}: {getattr(request, name)} is below 0")
    length = exact_length(request.prompt)
    last_n = request.prompt_logprobs_last_n
    if last_n is not None:
        _check_last_n(last_n, length, is_asked=bool(request.prompt_logprobs))
    if request.target_prompt_logprobs is not None:
        _check_targets(request.target_prompt_logprobs, length)


def _check_last_n(last_n: int, length: int | None, *, is_asked: bool) -> None:
    if last_n < 1:
        raise ValueError(f"prompt_logprobs_last_n: {last_n} is below 1")
    if not is_asked:
        raise ValueError("prompt_logprobs_last_n: set include_prompt_logprobs, too; there are none without")
    if length is not None and last_n >= length:
        raise ValueError(
            f"prompt_logprobs_last_n: {last_n} of a prompt of {length} tokens, the first of which has none; give at "
            f"most {length - 1}, or leave it away"
        )


def _check_targets(targets: TensorData, length: int | None) -> None:
    shape = targets.to_numpy().shape
    if targets.dtype != "int64" or len(shape) != 2:
        raise ValueError(
            f"target_prompt_logprobs: expected an int64 tensor of two dimensions, got {targets.dtype} of shape {shape}"
        )
    if length is not None and shape[0] != length - 1:
        raise ValueError(
            f"target_prompt_logprobs: {shape[0]} rows for a prompt of {length} tokens; give {length - 1}, one in place "
            "of each token but the first"
        )
