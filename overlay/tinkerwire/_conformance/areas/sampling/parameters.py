"""Requirements on the parameters of sampling: number, length, temperature, top_k, top_p and seed."""

from __future__ import annotations

from ...checks.breakages import WRONG_SAMPLES
from ...requirement import Breakage, Feature
from ...subject.sampler import OpenSampler
from ...subject.server import Server
from ...subject.training_model import TOKENS
from ...violation import NotApplicable, expect
from .area import AREA, LENGTH, expect_greedy, greedy_tokens

NO_SAMPLES = Breakage("0.3.0", None, Feature.SAMPLE, "gets no samples")


@AREA.must(
    1,
    contract=("asample 200", "SampleResponse.sequences", "SampleRequest.num_samples", "SamplingParams.max_tokens"),
    remedy="Return one sequence for each of num_samples, and end each after at most max_tokens tokens.",
    breaks=[NO_SAMPLES],
)
async def sample_has_sequences(server: Server) -> None:
    """A sample on the base model ends with num_samples sequences of at most max_tokens tokens."""
    sampler = await server.base_sampler()
    result = await server.futures.run(sampler.sample_call(num_samples=2))
    lengths = [len(sequence.tokens) for sequence in result.value.sequences]
    expect(len(lengths) == 2, "2 sequences", f"{len(lengths)}", result.exchange)
    expect(all(0 < length <= 4 for length in lengths), "1 to 4 tokens", f"{lengths} tokens", result.exchange)


@AREA.must(
    2,
    contract="SampledSequence.stop_reason",
    remedy="Set stop_reason to length or stop; read other reasons, such as an end token, as stop.",
    needs=("SMP-001",),
    breaks=[Breakage("0.18.2", None, Feature.SAMPLE, "raises on every sample with another reason")],
)
async def stop_reason_is_known(server: Server) -> None:
    """The stop_reason of each sequence is length or stop."""
    sampler = await server.base_sampler()
    result = await server.futures.run(sampler.sample_call(num_samples=2))
    reasons = {str(sequence.stop_reason) for sequence in result.value.sequences}
    expect(reasons <= {"length", "stop"}, "length or stop", ", ".join(sorted(reasons)), result.exchange)


@AREA.must(
    3,
    contract=("SampledSequence.stop_reason", "SamplingParams.max_tokens"),
    remedy="Set stop_reason to length where max_tokens ended the sequence, and to stop otherwise.",
    needs=("SMP-002",),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "takes cut texts for whole ones, or whole ones for cut")],
)
async def max_tokens_means_length(server: Server) -> None:
    """A sequence that max_tokens ended has the stop_reason length, and a shorter one has stop."""
    sampler = await server.base_sampler()
    result = await server.futures.run(sampler.sample_call(num_samples=8))
    ends = [(len(sequence.tokens), str(sequence.stop_reason)) for sequence in result.value.sequences]
    fits = all(reason == "stop" for length, reason in ends if length < 4)
    # The model's end token may be the last one of some, but hardly of all.
    expect(fits and (4, "length") in ends, "length after 4 tokens, else stop", ends, result.exchange)


@AREA.must(
    4,
    contract="SamplingParams.temperature",
    remedy="At temperature 0 take the most likely token, and use no random numbers.",
    needs=("SMP-001",),
    breaks=[WRONG_SAMPLES],
)
async def greedy_ignores_seed(server: Server) -> None:
    """At temperature 0 the tokens do not depend on the seed."""
    sampler = await server.base_sampler()
    expected = await greedy_tokens(sampler)
    for seed in (2, 3):
        result = await server.futures.run(sampler.sample_call(temperature=0, max_tokens=LENGTH, seed=seed))
        tokens = result.value.sequences[0].tokens
        expect(list(tokens) == expected, f"{expected}, as with seed 1", f"{list(tokens)}", result.exchange)


@AREA.must(
    5,
    contract="SamplingParams.temperature",
    remedy="At temperature 0 take the most likely token.",
    needs=("SMP-004",),
    breaks=[WRONG_SAMPLES],
)
async def greedy_takes_most_likely(server: Server) -> None:
    """At temperature 0 the first token is at least as likely as every token that temperature 1 yields."""
    sampler = await server.base_sampler()
    greedy = (await greedy_tokens(sampler))[0]
    result = await server.futures.run(sampler.sample_call(max_tokens=1, num_samples=256))
    logprobs = {sequence.tokens[0]: (sequence.logprobs or [None])[0] for sequence in result.value.sequences}
    if greedy not in logprobs or None in logprobs.values():
        raise NotApplicable("the model is so undecided that 256 samples lack the greedy token, or have no logprobs")
    best = max(logprobs, key=lambda token: logprobs[token] or 0.0)
    margin = (logprobs[best] or 0.0) - (logprobs[greedy] or 0.0)
    text = f"token {greedy}, although {best} is more likely by {margin:.4f} nats"
    expect(margin <= 0.02, "the most likely token", text, result.exchange)


@AREA.should(
    6,
    contract=("SamplingParams.temperature", "SampleRequest.prompt"),
    remedy="Compute each token from the prompt and all tokens before it; check the cache of keys and values.",
    needs=("SMP-004",),
    breaks=[WRONG_SAMPLES],
)
async def greedy_continues_itself(server: Server) -> None:
    """A greedy sample goes on as the greedy sample whose prompt ends with its first tokens."""
    sampler = await server.base_sampler()
    whole = (await greedy_tokens(sampler))[:8]
    result = await server.futures.run(sampler.sample_call([*TOKENS, *whole[:4]], temperature=0, max_tokens=4))
    rest = list(result.value.sequences[0].tokens)
    # Two nearly equal logits may change places with the shape of a batch, but hardly at the first token and its like.
    expect(rest[:1] == whole[4:5], f"{whole[4:]} after {whole[:4]}", f"{rest}", result.exchange)


@AREA.must(
    7,
    contract="SamplingParams.top_k",
    remedy="Sample from the top_k most likely tokens only.",
    needs=("SMP-004", "SMP-005"),
    breaks=[WRONG_SAMPLES],
)
async def top_1_is_greedy(server: Server) -> None:
    """With top_k 1 the tokens are those of temperature 0."""
    await expect_greedy(server, top_k=1)


@AREA.must(
    8,
    contract="SamplingParams.top_p",
    remedy="Sample from the smallest set of most likely tokens whose probability reaches top_p, at least one.",
    needs=("SMP-004", "SMP-005"),
    breaks=[WRONG_SAMPLES],
)
async def small_top_p_is_greedy(server: Server) -> None:
    """With a top_p of one in a million the tokens are those of temperature 0."""
    await expect_greedy(server, top_p=1e-6)


@AREA.should(
    9,
    contract="SamplingParams.seed",
    remedy="Derive all random numbers of a request from its seed.",
    needs=("SMP-001",),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "cannot repeat a run")],
)
async def seed_repeats(server: Server) -> None:
    """Two requests with the same seed yield the same sequences."""
    sampler = await server.base_sampler()
    first = await _sample_tokens(sampler, seed=11)
    result = await server.futures.run(sampler.sample_call(num_samples=2, max_tokens=LENGTH, seed=11))
    again = [list(sequence.tokens) for sequence in result.value.sequences]
    expect(again == first, f"{first}", f"{again}", result.exchange)


@AREA.must(
    10,
    contract="SamplingParams.seed",
    remedy="Use the seed of the request; a constant one makes all samples of a batch equal.",
    needs=("SMP-001",),
    breaks=[WRONG_SAMPLES],
)
async def seeds_differ(server: Server) -> None:
    """Requests with different seeds yield different sequences at temperature 1."""
    sampler = await server.base_sampler()
    first = await _sample_tokens(sampler, seed=11)
    result = await server.futures.run(sampler.sample_call(num_samples=2, max_tokens=LENGTH, seed=104729))
    second = [list(sequence.tokens) for sequence in result.value.sequences]
    expect(first != second, "other tokens than with seed 11", f"the same {second}", result.exchange)


@AREA.must(
    11,
    contract="SamplingParams.seed",
    remedy="Draw a new seed for each request without one.",
    needs=("SMP-001",),
    breaks=[WRONG_SAMPLES],
)
async def no_seed_is_random(server: Server) -> None:
    """Requests without a seed yield different sequences at temperature 1."""
    sampler = await server.base_sampler()
    first = await _sample_tokens(sampler, seed=None)
    result = await server.futures.run(sampler.sample_call(num_samples=2, max_tokens=LENGTH, seed=None))
    second = [list(sequence.tokens) for sequence in result.value.sequences]
    expect(first != second, "other tokens than in the request before", f"the same {second}", result.exchange)


@AREA.must(
    12,
    contract=("SampleRequest.num_samples", "SamplingParams.seed"),
    remedy="Give each of num_samples random numbers of its own, also if the request has a seed.",
    needs=("SMP-001",),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "gets equal samples, so that advantages in a group are 0")],
)
async def samples_of_a_request_differ(server: Server) -> None:
    """The sequences of one request with a seed differ from each other at temperature 1."""
    sampler = await server.base_sampler()
    result = await server.futures.run(sampler.sample_call(num_samples=4, max_tokens=LENGTH))
    sequences = {tuple(sequence.tokens) for sequence in result.value.sequences}
    expect(len(sequences) == 4, "4 different sequences", f"{len(sequences)} of 4", result.exchange)


@AREA.must(
    13,
    contract="SampledSequence.logprobs",
    remedy="Return the log probability of each sampled token; training with rewards needs it.",
    needs=("SMP-001",),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "has no logprobs, which training with rewards needs")],
)
async def each_token_has_a_logprob(server: Server) -> None:
    """Each sampled token has a logprob of at most 0."""
    sampler = await server.base_sampler()
    result = await server.futures.run(sampler.sample_call(num_samples=2))
    for sequence in result.value.sequences:
        logprobs = sequence.logprobs
        count = len(sequence.tokens)
        found = "none" if logprobs is None else f"{list(logprobs)}"
        fits = logprobs is not None and len(logprobs) == count and all(-1e4 < value <= 1e-4 for value in logprobs)
        expect(fits, f"{count} log probabilities of at most 0", found, result.exchange)


async def _sample_tokens(sampler: OpenSampler, seed: int | None) -> list[list[int]]:
    response = await sampler.sample(num_samples=2, max_tokens=LENGTH, seed=seed)
    return [list(sequence.tokens) for sequence in response.sequences]
