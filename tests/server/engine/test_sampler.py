"""Tests of sampling against forward and against the definition of the rule, and of the request's options."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinkerwire._server.engine import EngineError, Example, LoraModel, Sampler, base_model
from tinkerwire._server.engine import sampler as sampler_module
from tinkerwire._server.engine.attention import KeyValueCache
from tinkerwire._server.engine.sampler import Samples
from tinkerwire._server.engine.sampling_rule import SamplingRule

NANO = "tinkerwire/byte-nano"
PROMPT = [72, 101, 108, 108, 111]


@pytest.fixture
def model(make_model) -> LoraModel:
    """Create a float32 model, the dtype of servers."""
    return make_model(dtype=np.float32)


@pytest.fixture
def sampler(model) -> Sampler:
    """Create a sampler of the model."""
    return Sampler(model.base, model.adapter_snapshot())


def sample(sampler: Sampler, *arguments: Any, **options: Any) -> Samples:
    """Sample without other requests; the arguments are those of Sampler.start."""
    return sampler.complete(sampler.start(*arguments, **options))


def _compute_logprobs(model: LoraModel, tokens: list[int]) -> np.ndarray:
    """Compute the logprobs of tokens[1:], each given the tokens before it."""
    example = Example(tokens[:-1], {"target_tokens": tokens[1:]})
    return model.forward([example], "cross_entropy").outputs[0]["logprobs"]


@pytest.mark.parametrize("rule", [{}, {"temperature": 0.5, "top_k": 5}, {"temperature": 2.0, "top_p": 0.5}])
def test_logprobs_equal_those_of_forward(rule, model, sampler):
    """With any rule, prompt and sample logprobs equal forward's within 1e-4, also after the cache grows."""
    samples = sample(sampler, PROMPT, 3, 150, seed=1, prompt_logprobs=True, **rule)
    for sequence in samples.sequences:
        expected = _compute_logprobs(model, PROMPT + sequence.tokens)
        assert samples.prompt_logprobs[0] is None
        logprobs = [*samples.prompt_logprobs[1:], *sequence.logprobs]
        np.testing.assert_allclose(logprobs, expected, atol=1e-4)


def test_temperature_zero_gives_the_argmax(model, sampler):
    """At temperature 0 every token is the argmax of forward over the whole vocabulary."""
    (sequence,) = sample(sampler, PROMPT, 1, 12, temperature=0.0).sequences
    tokens = list(PROMPT)
    for token in sequence.tokens:
        rows = [Example([*tokens], {"target_tokens": [*tokens[1:], choice]}) for choice in range(257)]
        outputs = model.forward(rows, "cross_entropy").outputs
        assert token == int(np.argmax([output["logprobs"][-1] for output in outputs]))
        tokens.append(token)


def test_new_adapter_samples_like_the_base(make_model):
    """Without an adapter, or with an untrained one, the continuations are the same."""
    model = make_model(dtype=np.float32, moved=False)
    base_samples = sample(Sampler(model.base), PROMPT, 2, 20, seed=4)
    assert base_samples == sample(Sampler(model.base, model.adapter_snapshot()), PROMPT, 2, 20, seed=4)


def test_training_does_not_change_an_existing_sampler(model, sampler, make_examples):
    """A new sampler has the trained weights."""
    before = sample(sampler, PROMPT, 1, 10, seed=1)
    model.forward_backward(make_examples("cross_entropy"), "cross_entropy")
    model.optim_step(0.05)
    assert sample(sampler, PROMPT, 1, 10, seed=1) == before
    assert sample(Sampler(model.base, model.adapter_snapshot()), PROMPT, 1, 10, seed=1) != before


def test_seed_reproduces_samples(sampler):
    """Equal seeds give equal results, other seeds give others; the samples of one request differ."""
    first = sample(sampler, PROMPT, 4, 20, seed=11)
    assert first == sample(sampler, PROMPT, 4, 20, seed=11)
    assert first != sample(sampler, PROMPT, 4, 20, seed=12)
    assert len({tuple(sequence.tokens) for sequence in first.sequences}) == 4


def test_missing_seed_is_random_and_any_int_is_a_seed(sampler):
    """Two requests without a seed differ; a negative seed is valid."""
    first, second = sample(sampler, PROMPT, 1, 20), sample(sampler, PROMPT, 1, 20)
    assert first != second
    assert sample(sampler, PROMPT, 1, 20, seed=-3) == sample(sampler, PROMPT, 1, 20, seed=-3)


def test_sample_does_not_depend_on_other_samples(sampler):
    """Sample i of a seed is the same with more samples beside it, also when those stop early."""
    two_samples = sample(sampler, PROMPT, 2, 30, seed=5)
    six_samples = sample(sampler, PROMPT, 6, 30, seed=5)
    assert [s.tokens for s in two_samples.sequences] == [s.tokens for s in six_samples.sequences[:2]]
    stop = sorted(
        {s.tokens[5] for s in six_samples.sequences[2:]} - {t for s in two_samples.sequences for t in s.tokens}
    )
    stopped = sample(sampler, PROMPT, 6, 30, seed=5, stop=stop)
    assert stop
    assert [s.tokens for s in stopped.sequences[:2]] == [s.tokens for s in two_samples.sequences]
    assert any(s.stop_reason == "stop" for s in stopped.sequences[2:])


def test_many_long_samples_are_decoded_in_groups(sampler, monkeypatch):
    """The total context size limits the memory, and the samples are the same."""
    ungrouped = sample(sampler, PROMPT, 7, 30, seed=5)
    widths = []
    select = KeyValueCache.select

    def select_and_record(cache, rows):
        widths.append(len(rows))
        return select(cache, rows)

    monkeypatch.setattr(KeyValueCache, "select", select_and_record)
    config = base_model(NANO).config
    cached_values = 2 * config.n_layers * config.d_model * (len(PROMPT) + 30)
    monkeypatch.setattr(sampler_module, "MAX_CACHED", 3 * cached_values)
    assert [s.tokens for s in sample(sampler, PROMPT, 7, 30, seed=5).sequences] == [
        s.tokens for s in ungrouped.sequences
    ]
    assert widths == [3, 3, 1]
    monkeypatch.setattr(sampler_module, "MAX_CACHED", 1)
    assert [s.tokens for s in sample(sampler, PROMPT, 2, 30, seed=5).sequences] == [
        s.tokens for s in ungrouped.sequences[:2]
    ]


def test_topk_beyond_the_memory_limit_is_rejected(sampler):
    """The error comes at once and names the product; the vocabulary limits the count of tokens."""
    with pytest.raises(EngineError, match=r"at most 4194304, got 257 \* 2000 \* 1024"):
        sample(sampler, PROMPT, 1024, 2000, topk_sample_logprobs=10**9)
    assert len(sample(sampler, PROMPT, 2, 3, topk_sample_logprobs=10**9).sequences[0].topk_logprobs[0]) == 257


@pytest.mark.parametrize("form", ["text", "texts", "tokens"])
def test_stop_ends_the_continuation_and_is_included(form, sampler):
    """The continuation ends after the first stop, regardless of the stop's form."""
    (free,) = sample(sampler, PROMPT, 1, 200, seed=2).sequences
    assert free.stop_reason == "length"
    at = next(i for i in range(20, 199) if free.tokens[i] < 128 and free.tokens[i + 1] < 128)
    if form == "tokens":
        stop, ending = [free.tokens[at + 1]], [free.tokens[at + 1]]
    else:
        ending = free.tokens[at : at + 2]
        text = bytes(ending).decode()
        stop = text if form == "text" else ["never seen", text]
    (cut,) = sample(sampler, PROMPT, 1, 200, seed=2, stop=stop).sequences
    assert cut.stop_reason == "stop"
    assert cut.tokens[-len(ending) :] == ending
    assert cut.tokens == free.tokens[: len(cut.tokens)]
    assert cut.logprobs == pytest.approx(free.logprobs[: len(cut.tokens)], abs=1e-5)
    assert len(cut.logprobs) == len(cut.tokens)


def test_empty_stop_list_equals_none(sampler):
    """A request with an empty list of stops and one with None are the same."""
    assert sample(sampler, PROMPT, 1, 20, seed=2, stop=[]) == sample(sampler, PROMPT, 1, 20, seed=2)


def test_stop_text_does_not_match_the_prompt(sampler):
    """A stop text that starts in the prompt does not count."""
    (free,) = sample(sampler, PROMPT, 1, 20, seed=2).sequences
    pair = [PROMPT[-1], free.tokens[0]]
    assert all(free.tokens[i : i + 2] != pair for i in range(19))
    if free.tokens[0] < 128:
        (sequence,) = sample(sampler, PROMPT, 1, 20, seed=2, stop=bytes(pair).decode()).sequences
        assert sequence == free


def test_max_tokens_or_the_context_limits_the_length(sampler):
    """Any max_tokens applies, 0 included; at the end of the context the stop reason is length."""
    max_context = base_model(NANO).config.max_context
    for max_tokens, prompt, expected in (
        (0, PROMPT, 0),
        (3, PROMPT, 3),
        (None, [65] * (max_context - 4), 4),
        (9, [65] * max_context, 0),
    ):
        (sequence,) = sample(sampler, prompt, 1, max_tokens, seed=1).sequences
        assert len(sequence.tokens) == len(sequence.logprobs) == expected
        assert sequence.stop_reason == "length"


def test_topk_prompt_logprobs_are_the_best_of_each_position(model, sampler):
    """The best come first, the first position has None, and a larger k gives the whole vocabulary."""
    samples = sample(sampler, PROMPT, 1, 1, prompt_logprobs=True, topk_prompt_logprobs=3)
    response = sample(sampler, PROMPT, 1, 1, topk_prompt_logprobs=999)
    assert response.prompt_logprobs is None
    assert samples.topk_prompt_logprobs[0] is None
    assert len(samples.topk_prompt_logprobs) == len(PROMPT)
    for at in range(1, len(PROMPT)):
        ranked = response.topk_prompt_logprobs[at]
        assert len(ranked) == 257
        assert ranked == sorted(ranked, key=lambda pair: -pair[1])
        assert samples.topk_prompt_logprobs[at] == ranked[:3]
        assert dict(ranked)[PROMPT[at]] == pytest.approx(samples.prompt_logprobs[at])
        assert sum(np.exp([logprob for _, logprob in ranked])) == pytest.approx(1.0, abs=1e-4)


def test_prompt_logprobs_are_absent_by_default(sampler):
    """By default the fields hold None; a one-token prompt has only the None of its first token."""
    samples = sample(sampler, PROMPT, 1, 1)
    assert samples.prompt_logprobs is None
    assert samples.topk_prompt_logprobs is None
    single = sample(sampler, [65], 1, 1, prompt_logprobs=True, topk_prompt_logprobs=2)
    assert single.prompt_logprobs == single.topk_prompt_logprobs == [None]


distributions = st.lists(st.floats(-8, 0), min_size=2, max_size=12).map(np.array)
draws = st.floats(0, 1, exclude_max=True)


def _list_allowed(logits: np.ndarray, temperature: float, top_k: int, top_p: float) -> set[int]:
    """Return the allowed tokens by the rule's definition, computed one token at a time."""
    order = sorted(range(len(logits)), key=lambda token: -logits[token])
    order = order if top_k == -1 else order[:top_k]
    weights = np.exp((logits[order] - logits.max()) / temperature)
    weights /= weights.sum()
    allowed, probability = set(), 0.0
    for token, weight in zip(order, weights, strict=True):
        if probability >= top_p + 1e-9:
            break
        allowed.add(token)
        probability += weight
    return allowed


@given(distributions, st.floats(0.05, 5), st.integers(1, 14) | st.just(-1), st.floats(0.01, 1), draws)
def test_only_allowed_tokens_are_drawn(logits, temperature, top_k, top_p, draw):
    """Every draw gives a token among the top k, and among the fewest of those that hold top_p."""
    rule = SamplingRule(temperature=temperature, top_k=top_k, top_p=top_p)
    (token,) = rule.choose(logits[None], np.array([draw]))
    assert token in _list_allowed(logits, temperature, top_k, top_p)


@settings(max_examples=20)
@given(distributions, st.floats(0.3, 3))
def test_draws_follow_the_tempered_distribution(logits, temperature):
    """Evenly spread draws hit each token in proportion to exp(logit / temperature)."""
    spread = (np.arange(4000) + 0.5) / 4000
    tokens = SamplingRule(temperature=temperature).choose(np.tile(logits, (4000, 1)), spread)
    expected = np.exp(logits / temperature)
    shares = np.bincount(tokens, minlength=len(logits)) / 4000
    np.testing.assert_allclose(shares, expected / expected.sum(), atol=5e-4)


@given(distributions, draws, st.sampled_from([{"top_k": 1}, {"top_p": 1e-9}, {"temperature": 1e-9}]))
def test_narrowest_rules_are_greedy(logits, draw, rule):
    """A top_k of 1, a tiny top_p and a tiny temperature give a likeliest token."""
    (token,) = SamplingRule(**rule).choose(logits[None], np.array([draw]))
    assert logits[token] == pytest.approx(logits.max(), abs=1e-6)


@given(distributions)
def test_temperature_zero_ignores_the_draw(logits):
    """Greedy decoding gives the first of the likeliest tokens."""
    (token,) = SamplingRule(temperature=0.0).choose(logits[None], np.array([0.9]))
    assert token == int(logits.argmax())
