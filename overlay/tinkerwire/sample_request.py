"""What is asked of a server for one sample, checked before anything is sent."""

from __future__ import annotations

from tinkerwire_generated.models import ModelInput, SampleRequest, SamplingParams, TensorData


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
    if num_samples < 1:
        raise ValueError(f"num_samples: {num_samples} is below 1")
    for name, count in (
        ("topk_prompt_logprobs", topk_prompt_logprobs),
        ("topk_sample_logprobs", topk_sample_logprobs),
        ("prompt_alt_tokens_k", prompt_alt_tokens_k),
    ):
        if count < 0:
            raise ValueError(f"{name}: {count} is below 0")
    _check_last_n(prompt_logprobs_last_n, is_asked=prompt_logprobs)
    if target_prompt_logprobs is not None and (
        target_prompt_logprobs.dtype != "int64" or len(target_prompt_logprobs.shape or ()) != 2
    ):
        raise ValueError(
            "target_prompt_logprobs: expected an int64 tensor of two dimensions, got "
            f"{target_prompt_logprobs.dtype} of shape {target_prompt_logprobs.shape}"
        )
    if not isinstance(sampling_params, SamplingParams):
        raise TypeError(f"sampling_params: expected SamplingParams, got {type(sampling_params).__name__}")
    return SampleRequest(
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


def _checked(prompt: ModelInput) -> ModelInput:
    if not isinstance(prompt, ModelInput):
        raise TypeError(f"prompt: expected a ModelInput, got {type(prompt).__name__}; ModelInput.from_ints makes one")
    if not prompt.chunks:
        raise ValueError("prompt: it has no chunks; give at least one token")
    return prompt


def _check_last_n(last_n: int | None, *, is_asked: bool) -> None:
    if last_n is None:
        return
    if last_n < 1:
        raise ValueError(f"prompt_logprobs_last_n: {last_n} is below 1")
    if not is_asked:
        raise ValueError("prompt_logprobs_last_n: set include_prompt_logprobs, too; there are none without")
