"""Requirements on the distribution of samples, by chi-square tests with a stated rate of errors."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import attrs

from ..checks.breakages import WRONG_SAMPLES
from ..checks.chi_square import ERROR_RATE, fit_probability
from ..exchange import Exchange
from ..requirement import Area, Breakage, Feature
from ..subject.server import Server
from ..violation import NotApplicable, Violation, expect

AREA = Area("DST", "distribution", "The distribution of sampled tokens")
REQUESTS = 8
SAMPLES = 128
"""Number of samples of each request."""
SEED_DISTANCE = 1_000_003
"""Difference of the seeds of two requests: some servers add the index of a sample to the seed."""
TOP_K = 8
TOP_P = 0.5
SLACK = 1e-3
"""Relative difference up to which two probabilities count as equal."""
MAX_S = 300.0


@attrs.frozen
class Draws:
    """First tokens of many samples, in their order, and the last response with them."""

    tokens: list[int]
    logprobs: list[float]
    exchange: Exchange | None

    @property
    def counts(self) -> Counter[int]:
        """Number of each token."""
        return Counter(self.tokens)


@AREA.must(
    1,
    contract=("SampledSequence.logprobs", "SampledSequence.tokens"),
    remedy="Return the logprob of a token under the distribution that it was sampled from, over the whole vocabulary.",
    needs=("SMP-010", "SMP-012", "SMP-013"),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "gets wrong logprobs, without an error")],
    max_s=MAX_S,
)
async def probabilities_are_consistent(server: Server) -> None:
    """At temperature 1 a token has the same probability in each sample, and all probabilities add up to 1 at most."""
    draws = await _reference(server)
    probabilities = _probabilities(draws)
    for token, logprob in zip(draws.tokens, draws.logprobs, strict=True):
        difference = abs(math.exp(logprob) - probabilities[token])
        text = f"token {token} with {math.exp(logprob):.5f} and {probabilities[token]:.5f}"
        expect(difference <= 0.02 * probabilities[token] + 1e-6, "one probability for a token", text, draws.exchange)
    total = sum(probabilities.values())
    expect(total <= 1.01, "probabilities that add up to 1 at most", f"{total:.4f}", draws.exchange)


@AREA.must(
    2,
    contract=("SamplingParams.temperature", "SampledSequence.logprobs"),
    remedy="At temperature 1 sample each token with its probability under the model.",
    needs=("DST-001",),
    breaks=[WRONG_SAMPLES],
    max_s=MAX_S,
)
async def temperature_1_samples_the_model(server: Server) -> None:
    """At temperature 1 each token comes as often as its probability (chi-square test, 1 error in a million)."""
    probabilities = _probabilities(await _reference(server))
    rest = {-1: max(1e-9, 1.0 - sum(probabilities.values()))}
    draws = await _draw(server, 1)
    # The tokens were chosen by other samples, so that this is a test of these samples against fixed cells.
    counts = Counter(token if token in probabilities else -1 for token in draws.tokens)
    _expect_fit(counts, probabilities | rest, draws)


@AREA.must(
    3,
    contract="SamplingParams.temperature",
    remedy="Divide the logits by the temperature before the softmax.",
    needs=("DST-002",),
    breaks=[WRONG_SAMPLES],
    max_s=MAX_S,
)
async def low_temperature_sharpens(server: Server) -> None:
    """At temperature 0.5 tokens come in proportion to the squares of their probabilities."""
    await _expect_temperature(server, 2, 0.5)


@AREA.must(
    4,
    contract="SamplingParams.temperature",
    remedy="Divide the logits by the temperature before the softmax, also if it is above 1.",
    needs=("DST-002",),
    breaks=[WRONG_SAMPLES],
    max_s=MAX_S,
)
async def high_temperature_flattens(server: Server) -> None:
    """At temperature 2 tokens come in proportion to the square roots of their probabilities."""
    await _expect_temperature(server, 3, 2.0)


@AREA.must(
    5,
    contract="SamplingParams.top_k",
    remedy="Sample from the top_k most likely tokens, and from no other.",
    needs=("DST-001",),
    breaks=[WRONG_SAMPLES],
    max_s=MAX_S,
)
async def top_k_limits_tokens(server: Server) -> None:
    """With top_k k only k different tokens come, and no token is much more likely than they are."""
    probabilities = _probabilities(await _reference(server))
    draws = await _draw(server, 4, top_k=TOP_K)
    counts = draws.counts
    expect(len(counts) <= TOP_K, f"at most {TOP_K} different tokens", f"{len(counts)}", draws.exchange)
    limit = sorted(probabilities.values(), reverse=True)[TOP_K - 1] if len(probabilities) >= TOP_K else 0.0
    outside = [token for token in counts if probabilities.get(token, limit) < limit * (1 - SLACK)]
    expect(not outside, f"the {TOP_K} most likely tokens", f"{outside}, which are less likely", draws.exchange)


@AREA.must(
    6,
    contract="SamplingParams.top_k",
    remedy="Sample the top_k most likely tokens in proportion to their probabilities.",
    needs=("DST-005", "DST-002"),
    breaks=[WRONG_SAMPLES],
    max_s=MAX_S,
)
async def top_k_keeps_proportions(server: Server) -> None:
    """With top_k k the k most likely tokens come in proportion to their probabilities."""
    probabilities = _probabilities(await _reference(server))
    if len(probabilities) < TOP_K:
        raise NotApplicable("the model is too certain of its first token")
    draws = await _draw(server, 4, top_k=TOP_K)
    # Tokens that the reference lacks may be among the most likely ones of a model without clear preferences.
    _expect_fit(draws.counts, {token: probabilities[token] for token in draws.counts if token in probabilities}, draws)


@AREA.must(
    7,
    contract="SamplingParams.top_p",
    remedy="Sample from the smallest set of most likely tokens whose probability reaches top_p.",
    needs=("DST-001",),
    breaks=[WRONG_SAMPLES],
    max_s=MAX_S,
)
async def top_p_limits_tokens(server: Server) -> None:
    """With top_p p no token comes if more likely ones have the probability p together."""
    probabilities = _probabilities(await _reference(server))
    before = _probability_before(probabilities)
    draws = await _draw(server, 5, top_p=TOP_P)
    # The reference does not show the rank of a token that it lacks.
    outside = [token for token in draws.counts if before.get(token, 0.0) > TOP_P + SLACK]
    expected = f"tokens of the most likely {TOP_P:.0%} only"
    expect(not outside, expected, f"{len(outside)} others, such as {outside[:3]}", draws.exchange)


@AREA.must(
    8,
    contract="SamplingParams.top_p",
    remedy="Sample the tokens within top_p in proportion to their probabilities.",
    needs=("DST-007", "DST-002"),
    breaks=[WRONG_SAMPLES],
    max_s=MAX_S,
)
async def top_p_keeps_proportions(server: Server) -> None:
    """With top_p p all tokens of the smallest set that reaches p come in proportion to their probabilities."""
    probabilities = _probabilities(await _reference(server))
    before = _probability_before(probabilities)
    # Tokens that the reference lacks would move the end of the set; its last part is left out.
    unknown = max(0.0, 1.0 - sum(probabilities.values()))
    inner = {token: probabilities[token] for token in probabilities if before[token] + unknown < TOP_P - SLACK}
    draws = await _draw(server, 5, top_p=TOP_P)
    _expect_fit(draws.counts, inner, draws)


@AREA.must(
    9,
    contract=("SampleRequest.num_samples", "SamplingParams.seed"),
    remedy="Draw independent random numbers for each sample of a request.",
    needs=("DST-002",),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "gets samples of a group that depend on each other")],
    max_s=MAX_S,
)
async def samples_are_independent(server: Server) -> None:
    """A sample of a request has the token of the sample before it as often as by chance."""
    probabilities = _probabilities(await _reference(server))
    draws = await _draw(server, 1)
    unknown = max(0.0, 1.0 - sum(probabilities.values()))
    equal = sum(value * value for value in probabilities.values())
    # Pairs that do not overlap; tokens that the reference lacks can be equal, too.
    pairs = list(zip(draws.tokens[::2], draws.tokens[1::2], strict=True))
    count = sum(first == second for first, second in pairs)
    chance = equal + unknown * unknown
    expected = f"about {chance * len(pairs):.0f} of {len(pairs)} pairs of equal tokens"
    expect(_binomial_tail(count, len(pairs), chance) >= ERROR_RATE, expected, f"{count}", draws.exchange)


async def _reference(server: Server) -> Draws:
    """Return samples at temperature 1, which all tests share, and which show the probabilities of tokens."""
    return await server.share("reference samples", lambda: _sample_first_tokens(server, 0, {}))


async def _draw(server: Server, stream: int, **params: Any) -> Draws:
    """Return samples with other seeds than those of the reference, once for each stream."""
    return await server.share(f"samples {stream}", lambda: _sample_first_tokens(server, stream, params))


async def _sample_first_tokens(server: Server, stream: int, params: dict[str, Any]) -> Draws:
    sampler = await server.base_sampler()
    tokens: list[int] = []
    logprobs: list[float] = []
    exchange: Exchange | None = None
    for index in range(REQUESTS):
        seed = 1 + SEED_DISTANCE * (stream * REQUESTS + index)
        call = sampler.sample_call(num_samples=SAMPLES, max_tokens=1, seed=seed, **params)
        result, exchange = await server.futures.attempt(call)
        if result is None:
            raise NotApplicable(f"the server refuses a sample with {params} and num_samples {SAMPLES}")
        for sequence in result.value.sequences:
            # An end token may be left out, with its logprob.
            tokens += sequence.tokens[:1]
            logprobs += (sequence.logprobs or [math.nan])[: len(sequence.tokens[:1])]
    return Draws(tokens, logprobs, exchange)


def _probabilities(draws: Draws) -> dict[int, float]:
    return {token: math.exp(value) for token, value in zip(draws.tokens, draws.logprobs, strict=True)}


def _probability_before(probabilities: Mapping[int, float]) -> dict[int, float]:
    """Return for each token the probability of all more likely ones."""
    total, before = 0.0, {}
    for token in sorted(probabilities, key=lambda token: -probabilities[token]):
        before[token] = total
        total += probabilities[token]
    return before


async def _expect_temperature(server: Server, stream: int, temperature: float) -> None:
    probabilities = _probabilities(await _reference(server))
    draws = await _draw(server, stream, temperature=temperature)
    # Among the known tokens only, so that the probabilities of the others do not matter.
    weights = {token: value ** (1 / temperature) for token, value in probabilities.items()}
    _expect_fit(draws.counts, weights, draws)


def _expect_fit(counts: Mapping[int, int], weights: Mapping[int, float], draws: Draws) -> None:
    probability = fit_probability(counts, weights)
    if probability >= ERROR_RATE:
        return
    scale = sum(counts.get(token, 0) for token in weights) / sum(weights.values())
    worst = max(weights, key=lambda token: (counts.get(token, 0) - scale * weights[token]) ** 2 / weights[token])
    name = "tokens that the reference lacks" if worst < 0 else f"token {worst}"
    expected = f"about {scale * weights[worst]:.0f} times {name}"
    received = f"{counts.get(worst, 0)} (so bad a fit by chance: {probability:.0e})"
    raise Violation(expected, received, draws.exchange)


def _binomial_tail(count: int, total: int, chance: float) -> float:
    """Return the probability of at least ``count`` successes in ``total`` independent trials."""
    if count <= total * chance:
        return 1.0
    chance = min(max(chance, 1e-12), 1 - 1e-12)
    return sum(
        math.exp(
            math.lgamma(total + 1)
            - math.lgamma(successes + 1)
            - math.lgamma(total - successes + 1)
            + successes * math.log(chance)
            + (total - successes) * math.log1p(-chance)
        )
        for successes in range(count, total + 1)
    )
