"""Requirements on log probabilities that samples return: of their tokens, of the prompt, and of other tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tinkerwire_generated import models

from ..exchange import Exchange
from ..requirement import Area, Breakage, Feature
from ..subject.sampler import LOGPROB_TOLERANCE
from ..subject.server import Server
from ..subject.training_model import TOKENS, make_datum
from ..violation import Violation, expect

AREA = Area("LGP", "logprobs", "Log probabilities of samples, of prompts and of other tokens")
TOP = 4
"""Number of most likely tokens that tests request."""
PROMPT = TOKENS[:4]
"""Prompt that has the length of TOKENS together with a sample of four tokens."""
LAST = 3
"""Number of tokens at the end of the prompt with log probabilities."""
Pairs = Sequence[tuple[int, float]]


@AREA.must(
    1,
    contract=("SampledSequence.logprobs", "ForwardBackwardOutput.loss_fn_outputs"),
    remedy="Return the log probabilities of the model at temperature 1, as forward computes them for the same weights.",
    needs=("SMP-013", "TRN-004"),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "gets wrong ratios of importance sampling, without an error")],
)
async def sample_logprobs_are_those_of_forward(server: Server) -> None:
    """The logprobs of a sample are those that forward returns for the prompt and the sampled tokens."""
    model, sampler = await server.trained_sampler()
    result = await server.futures.run(sampler.sample_call(PROMPT))
    sequence = result.value.sequences[0]
    tokens = [*PROMPT, *sequence.tokens]
    tokens += TOKENS[: len(TOKENS) - len(tokens)]  # after an early end
    expected = (await model.logprobs([make_datum(tokens)]))[0][len(PROMPT) - 1 :]
    _expect_close(sequence.logprobs, expected[: len(sequence.tokens)], result.exchange)


@AREA.must(
    2,
    contract=("SampleRequest.prompt_logprobs", "SampleResponse.prompt_logprobs"),
    remedy="With prompt_logprobs return one value for each token of the prompt, null for the first and no other.",
    needs=("SMP-001",),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "returns the logprobs of a prompt one place off, or none")],
)
async def prompt_logprobs_have_a_place_each(server: Server) -> None:
    """With prompt_logprobs the response has one logprob for each token of the prompt, with null for the first only."""
    logprobs, exchange = await _prompt_logprobs(server)
    numbers = [value for value in logprobs if value is not None]
    fits = len(logprobs) == len(TOKENS) and logprobs[0] is None and len(numbers) == len(TOKENS) - 1
    expect(fits, f"null and {len(TOKENS) - 1} logprobs", f"{logprobs}", exchange)
    expect(all(-1e4 < value <= 1e-4 for value in numbers), "logprobs of at most 0", f"{numbers}", exchange)


@AREA.must(
    3,
    contract=("SampleResponse.prompt_logprobs", "ForwardBackwardOutput.loss_fn_outputs"),
    remedy="Return the log probabilities of the weights that the sampling session is on, as forward computes them.",
    needs=("SMP-001", "TRN-004"),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "gets wrong logprobs of prompts, without an error")],
)
async def prompt_logprobs_are_those_of_forward(server: Server) -> None:
    """The logprobs of a prompt are those that forward returns for its tokens."""
    model, sampler = await server.trained_sampler()
    result = await server.futures.run(sampler.sample_call(fields={"prompt_logprobs": True}))
    expected = (await model.logprobs())[0][:-1]
    # The place of the first token, which has none, is a requirement of its own.
    found = (result.value.prompt_logprobs or [])[-len(expected) :]
    _expect_close(found, expected, result.exchange)


@AREA.should(
    4,
    contract="SampleRequest.prompt_logprobs",
    remedy="Return prompt_logprobs only if the request asks for them: they cost time and bytes.",
    needs=("SMP-001",),
)
async def false_returns_none(server: Server) -> None:
    """With prompt_logprobs false the response has no logprobs of the prompt."""
    sampler = await server.base_sampler()
    result = await server.futures.run(sampler.sample_call(fields={"prompt_logprobs": False}))
    values = result.value.prompt_logprobs
    expect(not values, "no prompt_logprobs", f"{values}", result.exchange)


@AREA.should(
    5,
    contract=("SampleRequest.topk_prompt_logprobs", "SampleResponse.topk_prompt_logprobs", "TokenLogprob"),
    remedy="With topk_prompt_logprobs k return null, then for each further token of the prompt k pairs, best first.",
    needs=("SMP-001",),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "gets no most likely tokens of a prompt")],
)
async def prompt_topk_is_sorted(server: Server) -> None:
    """With topk_prompt_logprobs k each token of the prompt but the first has the k most likely tokens, best first."""
    topk, _, exchange = await _prompt_topk(server)
    expect(len(topk) == len(TOKENS) and not topk[0], f"null and {len(TOKENS) - 1} lists", f"{topk}", exchange)
    for pairs in topk[1:]:
        _expect_sorted(pairs, exchange)


@AREA.should(
    6,
    contract=("SampleResponse.topk_prompt_logprobs", "SampleResponse.prompt_logprobs"),
    remedy="Take topk_prompt_logprobs and prompt_logprobs from the same place: place i predicts token i of the prompt.",
    needs=("LGP-002", "LGP-005"),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "gets the most likely tokens of another place")],
)
async def prompt_topk_fits_logprobs(server: Server) -> None:
    """A token of the prompt has the same logprob in topk_prompt_logprobs, and is less likely if it is not there."""
    sampler = await server.base_sampler()
    # Greedy tokens are surely among the most likely ones of their places.
    greedy = (await sampler.sample(PROMPT, temperature=0)).sequences[0].tokens
    prompt = [*PROMPT, *greedy, *TOKENS[len(PROMPT) + len(greedy) :]]
    topk, logprobs, exchange = await _prompt_topk(server, prompt)
    for token, pairs, logprob in list(zip(prompt, topk, logprobs, strict=True))[1:]:
        _expect_member(token, logprob, pairs, exchange)


@AREA.should(
    7,
    contract=("SampleResponse.topk_prompt_logprobs", "SamplingParams.temperature"),
    remedy="Compute topk_prompt_logprobs with the same model as samples.",
    needs=("LGP-006", "SMP-005"),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "gets most likely tokens of another model")],
)
async def greedy_is_the_first_of_topk(server: Server) -> None:
    """The greedy continuation of a prompt is the first of topk_prompt_logprobs in its place."""
    sampler = await server.base_sampler()
    greedy = (await sampler.sample(TOKENS[:-1], temperature=0, max_tokens=1)).sequences[0].tokens[0]
    fields = {"prompt_logprobs": True, "topk_prompt_logprobs": TOP}
    result = await server.futures.run(sampler.sample_call(fields=fields))
    pairs = dict(result.value.topk_prompt_logprobs[-1])
    margin = max(pairs.values()) - pairs.get(greedy, -math.inf)
    expect(margin <= 0.02, f"{greedy} as the first", f"{pairs}", result.exchange)


@AREA.should(
    8,
    since="0.29.1",
    contract=("SampleRequest.topk_sample_logprobs", "SampledSequence.topk_logprobs"),
    remedy="With topk_sample_logprobs k return k pairs for each sampled token, best first.",
    needs=("SMP-013",),
    breaks=[Breakage("0.29.1", None, Feature.SAMPLE, "gets no most likely tokens of samples")],
)
async def sample_topk_is_sorted(server: Server) -> None:
    """With topk_sample_logprobs k each sampled token has the k most likely tokens with their logprobs, best first."""
    sampler = await server.base_sampler()
    result = await server.futures.run(sampler.sample_call(num_samples=2, fields={"topk_sample_logprobs": TOP}))
    for sequence in result.value.sequences:
        topk, count = sequence.topk_logprobs or [], len(sequence.tokens)
        expect(len(topk) == count, f"{count} lists, one for each token", f"{topk}", result.exchange)
        for token, pairs, logprob in zip(sequence.tokens, topk, sequence.logprobs, strict=True):
            _expect_sorted(pairs, result.exchange)
            _expect_member(token, logprob, pairs, result.exchange)


@AREA.should(
    9,
    since="0.30.4",
    contract=("SampleRequest.target_prompt_logprobs", "SampleResponse.target_prompt_logprobs"),
    remedy="Return the logprob of each target token in the shape of the request, and NaN for -1.",
    needs=("LGP-002",),
    breaks=[Breakage("0.30.4", None, Feature.SAMPLE, "gets no logprobs of target tokens, or wrong ones")],
)
async def target_logprobs_are_those_of_the_prompt(server: Server) -> None:
    """The tokens of the prompt as target_prompt_logprobs have the logprobs of the prompt, and -1 has none."""
    columns = [value for token in TOKENS[1:] for value in (token, -1)]
    shape = [len(TOKENS) - 1, 2]
    target = models.TensorData(data=columns, dtype="int64", shape=shape)
    result = await _sample(server, {"prompt_logprobs": True, "target_prompt_logprobs": target})
    found = result.value.target_prompt_logprobs
    if found is None or list(found.shape or ()) != shape:
        raise Violation(f"target_prompt_logprobs of shape {shape}", f"{found}", result.exchange)
    values = list(found.data)
    _expect_close(values[::2], result.value.prompt_logprobs[1:], result.exchange)
    expect(all(math.isnan(value) for value in values[1::2]), "NaN for -1", f"{values[1::2]}", result.exchange)


@AREA.should(
    10,
    since="0.31.0",
    contract=("SampleRequest.prompt_alt_tokens_k", "SampleResponse.prompt_alt_tokens", "PromptAltTokens"),
    remedy="Return k tokens with their logprobs for each token of the prompt but the first.",
    needs=("LGP-009",),
    breaks=[Breakage("0.31.0", None, Feature.SAMPLE, "raises RuntimeError if alternatives are requested")],
)
async def alternatives_have_their_logprobs(server: Server) -> None:
    """With prompt_alt_tokens_k the response has k tokens for each place of the prompt, with their logprobs."""
    shape = [len(TOKENS) - 1, TOP]
    result = await _sample(server, {"prompt_logprobs": True, "prompt_alt_tokens_k": TOP})
    found = result.value.prompt_alt_tokens
    if found is None:
        raise Violation("prompt_alt_tokens", "none", result.exchange)
    shapes = [list(found.tokens.shape or ()), list(found.logprobs.shape or ())]
    expect(shapes == [shape, shape], f"tokens and logprobs of shape {shape}", f"{shapes}", result.exchange)
    again = await _sample(server, {"prompt_logprobs": True, "target_prompt_logprobs": found.tokens})
    _expect_close(list(found.logprobs.data), list(again.value.target_prompt_logprobs.data), result.exchange)


@AREA.should(
    11,
    since="0.33.1",
    contract=("SampleRequest.prompt_logprobs_last_n", "SampleResponse.prompt_logprobs"),
    remedy="With prompt_logprobs_last_n n return null for all tokens of the prompt but the last n.",
    needs=("LGP-002",),
    breaks=[Breakage("0.33.1", None, Feature.SAMPLE, "raises RuntimeError if only the last logprobs are requested")],
)
async def last_n_limits_logprobs(server: Server) -> None:
    """With prompt_logprobs_last_n only the last n tokens of the prompt have logprobs, and these are unchanged."""
    whole, _ = await _prompt_logprobs(server)
    result = await _sample(server, {"prompt_logprobs": True, "prompt_logprobs_last_n": LAST})
    logprobs = result.value.prompt_logprobs or []
    head = [value for value in logprobs[:-LAST] if value is not None]
    fits = len(logprobs) == len(TOKENS) and not head
    expect(fits, f"{len(TOKENS) - LAST} times null, {LAST} logprobs", f"{logprobs}", result.exchange)
    _expect_close(logprobs[-LAST:], whole[-LAST:], result.exchange)


@AREA.should(
    12,
    since="0.33.1",
    contract="SampleRequest.prompt_logprobs_last_n",
    remedy="Refuse prompt_logprobs_last_n with a 4xx if it is 0, or if prompt_logprobs is not true.",
    needs=("SMP-001",),
)
async def last_n_needs_prompt_logprobs(server: Server) -> None:
    """A prompt_logprobs_last_n of 0 is refused, and so is any without prompt_logprobs."""
    sampler = await server.base_sampler()
    for wants, last_n in ((True, 0), (False, LAST)):
        fields = {"prompt_logprobs": wants, "prompt_logprobs_last_n": last_n}
        result, exchange = await server.futures.attempt(sampler.sample_call(fields=fields))
        expected = f"a refusal of prompt_logprobs_last_n {last_n} with prompt_logprobs {str(wants).lower()}"
        expect(result is None, expected, "a result", exchange)


@AREA.must(
    13,
    contract=("SampleRequest.prompt_logprobs", "SampleRequest.num_samples"),
    remedy="Sample as usual where the logprobs of the prompt are requested, too.",
    needs=("SMP-004",),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "gets other samples with prompt logprobs than without")],
)
async def prompt_logprobs_change_no_sample(server: Server) -> None:
    """A greedy sample has the same tokens with the logprobs of the prompt and without them."""
    sampler = await server.base_sampler()
    plain = await sampler.sample(temperature=0)
    result = await server.futures.run(sampler.sample_call(temperature=0, fields={"prompt_logprobs": True}))
    tokens, expected = list(result.value.sequences[0].tokens), list(plain.sequences[0].tokens)
    expect(tokens == expected, f"{expected}", f"{tokens}", result.exchange)


async def _sample(server: Server, fields: dict[str, Any], prompt: Sequence[int] = TOKENS) -> Any:
    """Sample once on the base model with some fields; return the result."""
    sampler = await server.base_sampler()
    return await server.futures.run(sampler.sample_call(prompt, fields=fields))


async def _prompt_logprobs(server: Server) -> tuple[list[float | None], Exchange]:
    result = await _sample(server, {"prompt_logprobs": True})
    return list(result.value.prompt_logprobs or []), result.exchange


async def _prompt_topk(
    server: Server, prompt: Sequence[int] = TOKENS
) -> tuple[list[Any], list[float | None], Exchange]:
    """Return the most likely tokens of each place of the prompt, and the logprobs of its tokens."""
    result = await _sample(server, {"prompt_logprobs": True, "topk_prompt_logprobs": TOP}, prompt)
    topk = result.value.topk_prompt_logprobs
    if not topk:
        raise Violation("topk_prompt_logprobs", "none", result.exchange)
    return list(topk), list(result.value.prompt_logprobs or []), result.exchange


def _expect_close(found: Sequence[float | None] | None, expected: Sequence[float | None], exchange: Exchange) -> None:
    """Raise Violation unless log probabilities are those expected."""
    fits = (
        found is not None
        and len(found) == len(expected)
        and all(
            a is not None and b is not None and abs(a - b) <= LOGPROB_TOLERANCE
            for a, b in zip(found, expected, strict=True)
        )
    )
    expect(fits, f"the logprobs {_rounded(expected)}", _rounded(found), exchange)


def _expect_sorted(pairs: Pairs | None, exchange: Exchange) -> None:
    """Raise Violation unless a place has TOP different tokens, best first."""
    values = [logprob for _, logprob in pairs or []]
    tokens = {token for token, _ in pairs or []}
    fits = len(tokens) == len(values) == TOP and values == sorted(values, reverse=True)
    expect(fits, f"{TOP} different tokens with their logprobs, best first", f"{pairs}", exchange)


def _expect_member(token: int, logprob: float | None, pairs: Pairs, exchange: Exchange) -> None:
    """Raise Violation unless a token has its logprob among the most likely ones, or is less likely than they are."""
    values = dict(pairs)
    if logprob is None:
        raise Violation(f"a logprob of token {token}", "null", exchange)
    fits = (
        abs(values[token] - logprob) <= LOGPROB_TOLERANCE
        if token in values
        else logprob <= min(values.values()) + LOGPROB_TOLERANCE
    )
    expect(fits, f"a place for token {token} with logprob {logprob:.4f}", f"{pairs}", exchange)


def _rounded(values: Sequence[float | None] | None) -> str:
    return "none" if values is None else str([None if value is None else round(value, 4) for value in values])
