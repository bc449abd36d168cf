"""Steps that sample from the base model."""

from __future__ import annotations

from tinkerwire_generated import models
from tinkerwire_generated.api.futures import retrieve_futures
from tinkerwire_generated.api.sampling import asample, create_sampling_session, get_sampler

from ..subject.training_model import TOKENS
from .official_client import SEQUENCE_IDS_SINCE, Failure, OfficialClient
from .step import Step, require

SHORT_PROMPT_LOGPROBS = "one value too few"
DESCRIBES_SAMPLER_SINCE = "0.38.0"
"""These versions request get_sampler for a sampler of saved weights."""


async def open_sampler(sdk: OfficialClient, model_path: str | None = None) -> str:
    """Open a sampling session on saved weights, or on the base model, and return its id."""
    body = models.CreateSamplingSessionRequest(
        session_id=sdk.session_id,
        sampling_session_seq_id=sdk.take_sampler_seq_id(),
        base_model=None if model_path else await sdk.server.base_model(),
        model_path=model_path,
    )
    created = await sdk.call(create_sampling_session(body=body))
    if model_path and sdk.is_at_least(DESCRIBES_SAMPLER_SINCE):
        await sdk.call(get_sampler(created.sampling_session_id))
    return created.sampling_session_id


async def _open_base_sampler(sdk: OfficialClient) -> None:
    sdk.sampler_id = await open_sampler(sdk)


async def sample(
    sdk: OfficialClient, sampler_id: str, *, prompt_logprobs: bool = False, topk: int = 0
) -> models.SampleResponse:
    """Sample one sequence and return the response."""
    body = models.SampleRequest(
        prompt=models.ModelInput.from_ints(list(TOKENS)),
        sampling_params=models.SamplingParams(max_tokens=4, seed=1),
        num_samples=1,
        sampling_session_id=sampler_id,
        seq_id=sdk.take_sample_seq_id(sampler_id),
        prompt_logprobs=prompt_logprobs,
        topk_prompt_logprobs=topk,
        record_stability_info=False if sdk.knows("SampleRequest", "record_stability_info") else None,
    )
    future = await sdk.submit(asample(body=body))
    if sdk.is_at_least(SEQUENCE_IDS_SINCE) and len(future.sample_sequence_ids or ()) != 1:
        raise sdk.violation("one of sample_sequence_ids in the response to asample", "none")
    if sdk.client.dialect.config.sample_use_retrieve_futures and sdk.has("retrieve_futures"):
        await _poll_for_all(sdk, sampler_id)
    value, exchange = await sdk.wait(future.request_id, "SampleResponse")
    if isinstance(value, Failure):
        raise sdk.violation("a sample", f"the error {value.text}", exchange)
    if len(value.sequences) != 1:
        raise sdk.violation("one sequence", f"{len(value.sequences)} sequences", exchange)
    response: models.SampleResponse = value
    return response


async def _poll_for_all(sdk: OfficialClient, sampler_id: str) -> None:
    target = models.SamplingSessionFuturesTarget(sampling_session_id=sampler_id)
    await sdk.call(retrieve_futures(body=models.FuturesRetrieveRequest(target=target, timeout=1.0)))


async def _sample_once(sdk: OfficialClient) -> None:
    await sample(sdk, require(sdk.sampler_id))


async def _compute_logprobs(sdk: OfficialClient) -> None:
    response = await sample(sdk, require(sdk.sampler_id), prompt_logprobs=True)
    logprobs = response.prompt_logprobs
    if logprobs is None:
        raise sdk.violation(f"{len(TOKENS)} prompt_logprobs", "none")
    missing = len(TOKENS) - len(logprobs)
    if missing:
        received = SHORT_PROMPT_LOGPROBS if missing == 1 else f"{len(logprobs)} values"
        raise sdk.violation(f"{len(TOKENS)} prompt_logprobs", received)


async def _topk_prompt_logprobs(sdk: OfficialClient) -> None:
    response = await sample(sdk, require(sdk.sampler_id), prompt_logprobs=True, topk=2)
    if response.topk_prompt_logprobs is None:
        raise sdk.violation("topk_prompt_logprobs", "none")


async def _describe_sampler(sdk: OfficialClient) -> None:
    await sdk.call(get_sampler(require(sdk.sampler_id)))


SAMPLE_STEPS = (
    Step("create_sampling_client", _open_base_sampler),
    Step("sample", _sample_once),
    Step("compute_logprobs", _compute_logprobs),
    Step("sample with topk_prompt_logprobs", _topk_prompt_logprobs),
    Step("get_tokenizer and get_base_model", _describe_sampler, since="0.9.0"),
)
