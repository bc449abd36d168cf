"""Requirements on samples: their number and length, stop conditions, and the parameters of sampling."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

from tinkerwire_generated import models
from tinkerwire_generated.api.sampling import asample
from tinkerwire_generated.api.service import get_server_capabilities

from ..checks.breakages import WRONG_SAMPLES
from ..requirement import Area, Breakage, Feature
from ..subject.sampler import OpenSampler
from ..subject.server import Server
from ..subject.training_model import TOKENS
from ..violation import Blocked, NotApplicable, Violation, expect

AREA = Area("SMP", "sampling", "Samples: their number, length and end, and the parameters of sampling")
LENGTH = 16
"""Tokens of samples that have to differ, or to be equal."""
STOP_TEXTS = [*string.ascii_letters, *string.digits, *string.punctuation, " ", "\n"]
"""Stop texts of which any model soon samples one."""
TEXT_LENGTH = 64
MAX_CONTEXT = 16384
"""Largest context that tests fill."""
IMAGE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
"""A PNG of one pixel."""
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
    expected = await _greedy_tokens(sampler)
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
    greedy = (await _greedy_tokens(sampler))[0]
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
    whole = (await _greedy_tokens(sampler))[:8]
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
    await _expect_greedy(server, top_k=1)


@AREA.must(
    8,
    contract="SamplingParams.top_p",
    remedy="Sample from the smallest set of most likely tokens whose probability reaches top_p, at least one.",
    needs=("SMP-004", "SMP-005"),
    breaks=[WRONG_SAMPLES],
)
async def small_top_p_is_greedy(server: Server) -> None:
    """With a top_p of one in a million the tokens are those of temperature 0."""
    await _expect_greedy(server, top_p=1e-6)


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


@AREA.must(
    14,
    contract=("SamplingParams.stop", "StopCondition"),
    remedy="End a sequence as soon as it has one of the tokens in stop, with the stop_reason stop.",
    needs=("SMP-002", "SMP-004"),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "samples beyond the end of an answer, without an error")],
)
async def stop_token_ends(server: Server) -> None:
    """A token in the list stop ends the sequence, with the stop_reason stop."""
    await _expect_stop_at_token(server)


@AREA.should(
    15,
    contract=("SamplingParams.stop", "SampledSequence.tokens"),
    remedy="Keep the stop token as the last token of the sequence; renderers look for it to know that an answer ended.",
    needs=("SMP-014",),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "takes whole answers for cut ones in the cookbook's renderers")],
)
async def stop_token_stays(server: Server) -> None:
    """The stop token is the last token of the sequence that it ends."""
    token, tokens = await _expect_stop_at_token(server)
    expect(tokens[-1:] == [token], f"{token} as the last token", f"{tokens}", server.client.recent[-1])


@AREA.must(
    16,
    contract=("SamplingParams.stop", "StopCondition"),
    remedy="Compare the text of the sampled tokens with each text in stop.",
    needs=("SMP-002",),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "samples beyond the end of an answer, without an error")],
)
async def stop_texts_end(server: Server) -> None:
    """A text in the list stop ends the sequence, with the stop_reason stop."""
    sampler = await server.base_sampler()
    call = sampler.sample_call(num_samples=2, max_tokens=TEXT_LENGTH, stop=STOP_TEXTS)
    result = await server.futures.run(call)
    ends = [(len(sequence.tokens), str(sequence.stop_reason)) for sequence in result.value.sequences]
    fits = all(length < TEXT_LENGTH and reason == "stop" for length, reason in ends)
    expect(fits, f"stop before {TEXT_LENGTH} tokens: the stop texts are all of ASCII", ends, result.exchange)


@AREA.should(
    17,
    contract=("SamplingParams.stop", "StopCondition"),
    remedy="Accept a text as stop, and treat it as a list of one.",
    needs=("SMP-009", "SMP-016"),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "raises if stop is a text, or samples beyond it")],
)
async def stop_text_ends(server: Server) -> None:
    """A stop that is one text ends the sequence as a list of this text does."""
    sampler = await server.base_sampler()
    # The one text that ends this sequence is found by halves.
    texts, whole = STOP_TEXTS, await _stopped_tokens(sampler, STOP_TEXTS)
    while len(texts) > 1:
        half = texts[: len(texts) // 2]
        texts = half if await _stopped_tokens(sampler, half) == whole else texts[len(half) :]
    if await _stopped_tokens(sampler, texts) != whole:
        raise Blocked("the sequence that a stop text ends is not the same each time")
    result = await server.futures.run(sampler.sample_call(max_tokens=TEXT_LENGTH, seed=5, stop=texts[0]))
    tokens = list(result.value.sequences[0].tokens)
    expect(tokens == whole, f"{whole}, as with stop {texts!r}", f"{tokens}", result.exchange)


@AREA.should(
    18,
    contract=("SamplingParams.stop", "StopCondition"),
    remedy="Treat an empty list like an absent stop.",
    needs=("SMP-004",),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "raises if stop is an empty list")],
)
async def empty_stop_is_none(server: Server) -> None:
    """An empty list stop ends no sequence."""
    await _expect_greedy(server, temperature=0, stop=[])


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
    expected = await _greedy_tokens(sampler)
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
    await _expect_greedy(server, temperature=0, fields={"record_stability_info": True})


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
    expected = await _greedy_tokens(await server.base_sampler())
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


@AREA.must(
    25,
    contract="ImageChunk",
    remedy="Refuse images with a 4xx if the model has none, and sample otherwise.",
    needs=("SMP-001",),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "retries a prompt with an image endlessly")],
)
async def image_is_served_or_refused(server: Server) -> None:
    """A prompt with an image ends in samples, in a failure or in a 4xx, and not in a 5xx."""
    sampler = await server.base_sampler()
    size: dict[str, Any] = (
        {} if not server.contract.has_field("ImageChunk", "height") else {"height": 1, "width": 1, "tokens": 1}
    )
    image = models.ImageChunk(data=IMAGE, format="png", **size)
    chunks: list[models.ModelInputChunk] = [models.EncodedTextChunk(tokens=list(TOKENS)), image]
    body = models.SampleRequest(
        prompt=models.ModelInput(chunks=chunks),
        sampling_params=models.SamplingParams(max_tokens=4),
        sampling_session_id=sampler.id,
        seq_id=sampler.take_seq_id(),
    )
    await server.futures.attempt(asample(body=body))


@AREA.must(
    26,
    contract="SampleRequest.prompt",
    remedy="Refuse an empty prompt with a 4xx, or sample from the start of a text.",
    needs=("SMP-001",),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "retries an empty prompt endlessly")],
)
async def empty_prompt_ends(server: Server) -> None:
    """An empty prompt ends in samples, in a failure or in a 4xx, and not in a 5xx."""
    sampler = await server.base_sampler()
    await server.futures.attempt(sampler.sample_call([]))
    await _expect_alive(server, sampler)


@AREA.should(
    27,
    since="0.18.2",
    contract=("SupportedModel.max_context_length", "SamplingParams.max_tokens"),
    remedy="End a sequence where the context is full, with the stop_reason length, or refuse such a request.",
    needs=("SMP-003",),
)
async def sequence_stays_in_context(server: Server) -> None:
    """With a max_tokens beyond the context a sequence ends within the context, or the request is refused."""
    limit = await _context_length(server)
    sampler = await server.base_sampler()
    prompt = [TOKENS[index % len(TOKENS)] for index in range(limit - len(TOKENS))]
    result, exchange = await server.futures.attempt(sampler.sample_call(prompt, max_tokens=2 * len(TOKENS)))
    if result is not None:
        length = len(result.value.sequences[0].tokens)
        expect(length <= len(TOKENS), f"at most {len(TOKENS)} tokens in a context of {limit}", f"{length}", exchange)


@AREA.should(
    28,
    since="0.18.2",
    contract=("SupportedModel.max_context_length", "SampleRequest.prompt"),
    remedy="Refuse a prompt that is longer than max_context_length with a 4xx or a failure; do not cut it.",
    needs=("SMP-001",),
)
async def long_prompt_is_refused(server: Server) -> None:
    """A prompt that is longer than the context is refused."""
    limit = await _context_length(server)
    sampler = await server.base_sampler()
    prompt = [TOKENS[index % len(TOKENS)] for index in range(limit + len(TOKENS))]
    result, exchange = await server.futures.attempt(sampler.sample_call(prompt))
    expect(result is None, f"a refusal of {len(prompt)} tokens in a context of {limit}", "samples", exchange)


# This is the last one, because it ends some servers.
@AREA.must(
    99,
    contract="SampleRequest.prompt",
    remedy="Compare the tokens of a prompt with the size of the vocabulary when the request arrives.",
    needs=("SMP-001",),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "polls for the result of a bad prompt endlessly")],
)
async def unknown_token_is_refused(server: Server) -> None:
    """A token outside the vocabulary is refused by a failure or a 4xx, and later samples work."""
    sampler = await server.base_sampler()
    result, exchange = await server.futures.attempt(sampler.sample_call([*TOKENS[:-1], 10_000_000]))
    expect(result is None, "a refusal of token 10000000", "samples", exchange)
    await _expect_alive(server, sampler)


async def _sample_tokens(sampler: OpenSampler, seed: int | None) -> list[list[int]]:
    response = await sampler.sample(num_samples=2, max_tokens=LENGTH, seed=seed)
    return [list(sequence.tokens) for sequence in response.sequences]


async def _greedy_tokens(sampler: OpenSampler) -> list[int]:
    response = await sampler.sample(temperature=0, max_tokens=LENGTH)
    return list(response.sequences[0].tokens)


async def _expect_greedy(server: Server, **settings: object) -> None:
    """Raise Violation unless a sample with some settings has the tokens of temperature 0."""
    sampler = await server.base_sampler()
    expected = await _greedy_tokens(sampler)
    result = await server.futures.run(sampler.sample_call(max_tokens=LENGTH, **settings))  # type: ignore[arg-type]
    tokens = list(result.value.sequences[0].tokens)
    expect(tokens == expected, f"{expected}, as with temperature 0", f"{tokens}", result.exchange)


async def _expect_stop_at_token(server: Server) -> tuple[int, list[int]]:
    """Check that a token ends a sequence; return the token and the tokens of the sequence."""
    sampler = await server.base_sampler()
    tokens = await _greedy_tokens(sampler)
    if len(tokens) < 2:
        raise NotApplicable("the model ends its greedy sample at once")
    # The token that appears latest for the first time, but not at the end.
    place = max(tokens.index(token) for token in tokens[:-1])
    token = tokens[place]
    result = await server.futures.run(sampler.sample_call(temperature=0, max_tokens=LENGTH, stop=[token]))
    sequence = result.value.sequences[0]
    stopped = list(sequence.tokens)
    # Another requirement tests the stop token itself.
    fits = stopped in (tokens[:place], tokens[: place + 1]) and str(sequence.stop_reason) == "stop"
    expect(fits, f"the end of {tokens} at {token}", f"{stopped}, {sequence.stop_reason}", result.exchange)
    return token, stopped


async def _stopped_tokens(sampler: OpenSampler, texts: Sequence[str]) -> list[int]:
    response = await sampler.sample(max_tokens=TEXT_LENGTH, seed=5, stop=list(texts))
    return list(response.sequences[0].tokens)


async def _context_length(server: Server) -> int:
    """Return the number of tokens in a context; raise NotApplicable if it is unknown, or too large for a test."""
    capabilities, _ = await server.client.call(get_server_capabilities())
    name = await server.base_model()
    for model in capabilities.supported_models:
        if model.model_name == name and model.max_context_length is not None:
            if model.max_context_length > MAX_CONTEXT:
                raise NotApplicable(f"a context of {model.max_context_length} tokens is too large for this test")
            return int(model.max_context_length)
    raise NotApplicable("the server does not name max_context_length")


async def _expect_alive(server: Server, sampler: OpenSampler) -> None:
    try:
        await sampler.sample()
    except Violation as error:
        raise Violation("samples after the refused request", error.received, error.exchange) from None
