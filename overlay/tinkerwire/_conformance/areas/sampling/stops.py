"""Requirements on the stop conditions of samples."""

from __future__ import annotations

from collections.abc import Sequence

from ...requirement import Breakage, Feature
from ...subject.sampler import OpenSampler
from ...subject.server import Server
from ...violation import Blocked, NotApplicable, expect
from .area import AREA, LENGTH, STOP_TEXTS, expect_greedy, greedy_tokens

TEXT_LENGTH = 64


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
    await expect_greedy(server, temperature=0, stop=[])


async def _expect_stop_at_token(server: Server) -> tuple[int, list[int]]:
    """Check that a token ends a sequence; return the token and the tokens of the sequence."""
    sampler = await server.base_sampler()
    tokens = await greedy_tokens(sampler)
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
