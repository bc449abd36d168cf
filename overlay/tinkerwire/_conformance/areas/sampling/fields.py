"""Requirements on optional fields of sample requests and responses."""

from __future__ import annotations

from tinkerwire_generated import models
from tinkerwire_generated.api.sampling import asample

from ...checks.breakages import WRONG_SAMPLES
from ...requirement import Breakage, Feature
from ...subject.server import Server
from ...subject.training_model import TOKENS
from ...violation import NotApplicable, expect
from .area import AREA, LENGTH, STOP_TEXTS, expect_greedy, greedy_tokens


@AREA.should(
    19,
    contract="SamplingParams.max_tokens",
    remedy="Without max_tokens sample until a stop condition, or until the context is full.",
    needs=("SMP-014", "SMP-016"),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "raises on samples without max_tokens")],
)
async def max_tokens_is_optional(server: Server) -> None:
    """A sample without max_tokens is accepted, and ends at its stop condition."""
    sampler = await server.base_sampler()
    result = await server.futures.run(sampler.sample_call(max_tokens=None, stop=STOP_TEXTS))
    reason = str(result.value.sequences[0].stop_reason)
    expect(reason == "stop", "the stop_reason stop", reason, result.exchange)


@AREA.must(
    20,
    contract=("ModelInput.chunks", "EncodedTextChunk.tokens"),
    remedy="Join the tokens of all chunks of a prompt.",
    needs=("SMP-004",),
    breaks=[WRONG_SAMPLES],
)
async def chunks_are_joined(server: Server) -> None:
    """A prompt in several chunks yields what the same tokens in one chunk yield."""
    sampler = await server.base_sampler()
    expected = await greedy_tokens(sampler)
    chunks: list[models.ModelInputChunk] = [
        models.EncodedTextChunk(tokens=list(part)) for part in (TOKENS[:3], TOKENS[3:4], TOKENS[4:])
    ]
    body = models.SampleRequest(
        prompt=models.ModelInput(chunks=chunks),
        sampling_params=models.SamplingParams(max_tokens=LENGTH, seed=1, temperature=0),
        sampling_session_id=sampler.id,
        seq_id=sampler.take_seq_id(),
    )
    result = await server.futures.run(asample(body=body))
    tokens = list(result.value.sequences[0].tokens)
    expect(tokens == expected, f"{expected}", f"{tokens}", result.exchange)


@AREA.must(
    21,
    since="0.26.2",
    contract="UntypedAPIFuture.sample_sequence_ids",
    remedy="Add sample_sequence_ids to the response of asample: one new string for each of num_samples.",
    needs=("SMP-001",),
    breaks=[Breakage("0.26.2", None, Feature.SAMPLE, "raises AssertionError on every sample")],
)
async def sequences_have_ids(server: Server) -> None:
    """The response to asample has sample_sequence_ids, one for each sample, and all different."""
    sampler = await server.base_sampler()
    submissions = [await sampler.submit(num_samples=2), await sampler.submit(num_samples=2)]
    names: list[str] = []
    for submission in submissions:
        ids = submission.future.sample_sequence_ids
        expect(ids is not None and len(ids) == 2, "2 sample_sequence_ids", f"{ids}", submission.exchange)
        names += ids or []
    for submission in submissions:
        await server.futures.wait(submission)
    expect(len(set(names)) == len(names), "4 different ids", ", ".join(names), submissions[-1].exchange)


@AREA.should(
    22,
    since="0.26.2",
    contract="SampleRequest.record_stability_info",
    remedy="Accept record_stability_info, and sample as without it.",
    needs=("SMP-004",),
    breaks=[Breakage("0.26.2", None, Feature.SAMPLE, "raises on samples with record_stability_info")],
)
async def stability_info_changes_nothing(server: Server) -> None:
    """A sample with record_stability_info yields the same tokens as one without it."""
    await expect_greedy(server, temperature=0, fields={"record_stability_info": True})


@AREA.should(
    23,
    since="0.23.4",
    contract="SampleResponse.prompt_cache_hit_tokens",
    remedy="Set prompt_cache_hit_tokens to the number of prompt tokens that came from a cache, or leave it out.",
    needs=("SMP-001",),
)
async def cache_hits_are_prompt_tokens(server: Server) -> None:
    """The number of prompt tokens from the cache is from 0 to the length of the prompt."""
    sampler = await server.base_sampler()
    for _ in range(2):
        result = await server.futures.run(sampler.sample_call())
        hits = result.value.prompt_cache_hit_tokens
        expect(0 <= hits <= len(TOKENS), f"0 to {len(TOKENS)}", f"{hits}", result.exchange)


@AREA.may(
    24,
    contract="SampleRequest.base_model",
    remedy="Sample from base_model if a request has no sampling_session_id.",
    needs=("SMP-004",),
)
async def base_model_needs_no_session(server: Server) -> None:
    """A sample that names base_model, and no sampling session, yields what a session on the base model yields."""
    expected = await greedy_tokens(await server.base_sampler())
    body = models.SampleRequest(
        prompt=models.ModelInput.from_ints(list(TOKENS)),
        sampling_params=models.SamplingParams(max_tokens=LENGTH, seed=1, temperature=0),
        base_model=await server.base_model(),
    )
    result, exchange = await server.futures.attempt(asample(body=body))
    if result is None:
        raise NotApplicable(f"the server samples in sampling sessions only: {exchange.describe()}")
    tokens = list(result.value.sequences[0].tokens)
    expect(tokens == expected, f"{expected}", f"{tokens}", exchange)
