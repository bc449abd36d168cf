"""Sampling: against forward, against the rule's definition, and what a request can ask for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinkerwire._server.engine import EngineError, Example, LoraModel, Sampler, base_model
from tinkerwire._server.engine import sampler as sampler_module
from tinkerwire._server.engine.cache import KeyValueCache
from tinkerwire._server.engine.sampling_rule import SamplingRule

NANO = "tinkerwire/byte-nano"
PROMPT = [72, 101, 108, 108, 111]


@pytest.fixture
def model(make_model) -> LoraModel:
    """A float32 model, as servers run it."""
    return make_model(dtype=np.float32)


@pytest.fixture
def sampler(model) -> Sampler:
    """A sampler of that model."""
    return Sampler(model.base, model.adapter_snapshot())


def _forward_logprobs(model: LoraModel, tokens: list[int]) -> np.ndarray:
    """Of tokens[1:], each given those before it."""
    example = Example(tokens[:-1], {"target_tokens": tokens[1:]})
    return model.forward([example], "cross_entropy").outputs[0]["logprobs"]


@pytest.mark.parametrize("rule", [{}, {"temperature": 0.5, "top_k": 5}, {"temperature": 2.0, "top_p": 0.5}])
def test_logprobs_are_those_of_forward(rule, model, sampler):
    """Whatever the rule, prompt and sample logprobs equal forward's within 1e-4, past the cache's growth."""
    samples = sampler.sample(PROMPT, 3, 150, seed=1, prompt_logprobs=True, **rule)
    for sequence in samples.sequences:
        expected = _forward_logprobs(model, PROMPT + sequence.tokens)
        assert samples.prompt_logprobs[0] is None
        got = [*samples.prompt_logprobs[1:], *sequence.logprobs]
        np.testing.assert_allclose(got, expected, atol=1e-4)


def test_greedy_takes_the_likeliest_token(model, sampler):
    """At temperature 0 every token is the argmax of forward over the whole vocabulary."""
    (sequence,) = sampler.sample(PROMPT, 1, 12, temperature=0.0).sequences
    tokens = list(PROMPT)
    for token in sequence.tokens:
        rows = [Example([*tokens], {"target_tokens": [*tokens[1:], choice]}) for choice in range(257)]
        outputs = model.forward(rows, "cross_entropy").outputs
        assert token == int(np.argmax([output["logprobs"][-1] for output in outputs]))
        tokens.append(token)


def test_a_new_adapter_samples_like_the_base(make_model):
    """Without an adapter, or with an untrained one, the continuations are the same."""
    model = make_model(dtype=np.float32, moved=False)
    plain = Sampler(model.base).sample(PROMPT, 2, 20, seed=4)
    assert plain == Sampler(model.base, model.adapter_snapshot()).sample(PROMPT, 2, 20, seed=4)


def test_a_sampler_keeps_the_weights_it_was_made_with(model, sampler, make_examples):
    """Training on does not change a sampler, and a new sampler shows the training."""
    before = sampler.sample(PROMPT, 1, 10, seed=1)
    model.forward_backward(make_examples("cross_entropy"), "cross_entropy")
    model.optim_step(0.05)
    assert sampler.sample(PROMPT, 1, 10, seed=1) == before
    assert Sampler(model.base, model.adapter_snapshot()).sample(PROMPT, 1, 10, seed=1) != before


def test_seeds_reproduce_and_samples_differ(sampler):
    """One seed gives one result, another seed another; the samples of one request differ."""
    first = sampler.sample(PROMPT, 4, 20, seed=11)
    assert first == sampler.sample(PROMPT, 4, 20, seed=11)
    assert first != sampler.sample(PROMPT, 4, 20, seed=12)
    assert len({tuple(sequence.tokens) for sequence in first.sequences}) == 4


def test_no_seed_means_a_fresh_one_and_any_int_is_a_seed(sampler):
    """Two requests without a seed differ; a negative seed is as good as any."""
    one, two = sampler.sample(PROMPT, 1, 20), sampler.sample(PROMPT, 1, 20)
    assert one != two
    assert sampler.sample(PROMPT, 1, 20, seed=-3) == sampler.sample(PROMPT, 1, 20, seed=-3)


def test_a_sample_does_not_depend_on_its_neighbours(sampler):
    """Sample i of a seed is the same with more samples beside it, also when those stop early."""
    few = sampler.sample(PROMPT, 2, 30, seed=5)
    many = sampler.sample(PROMPT, 6, 30, seed=5)
    assert [s.tokens for s in few.sequences] == [s.tokens for s in many.sequences[:2]]
    stop = sorted({s.tokens[5] for s in many.sequences[2:]} - {t for s in few.sequences for t in s.tokens})
    stopped = sampler.sample(PROMPT, 6, 30, seed=5, stop=stop)
    assert stop
    assert [s.tokens for s in stopped.sequences[:2]] == [s.tokens for s in few.sequences]
    assert any(s.stop_reason == "stop" for s in stopped.sequences[2:])


def test_many_long_samples_are_decoded_a_few_at_a_time(sampler, monkeypatch):
    """Memory is bounded by the size of the contexts, and the samples are the same."""
    together = sampler.sample(PROMPT, 7, 30, seed=5)
    widths = []
    plain = KeyValueCache.select

    def select(cache, rows):
        widths.append(len(rows))
        return plain(cache, rows)

    monkeypatch.setattr(KeyValueCache, "select", select)
    config = base_model(NANO).config
    room = 2 * config.n_layers * config.d_model * (len(PROMPT) + 30)
    monkeypatch.setattr(sampler_module, "MAX_CACHED", 3 * room)
    assert [s.tokens for s in sampler.sample(PROMPT, 7, 30, seed=5).sequences] == [s.tokens for s in together.sequences]
    assert widths == [3, 3, 1]
    monkeypatch.setattr(sampler_module, "MAX_CACHED", 1)
    assert [s.tokens for s in sampler.sample(PROMPT, 2, 30, seed=5).sequences] == [
        s.tokens for s in together.sequences[:2]
    ]


def test_more_likeliest_tokens_than_the_memory_holds_are_refused(sampler):
    """At once, with the product; as many as there are tokens count."""
    with pytest.raises(EngineError, match=r"at most 4194304, got 257 \* 2000 \* 1024"):
        sampler.sample(PROMPT, 1024, 2000, topk_sample_logprobs=10**9)
    assert len(sampler.sample(PROMPT, 2, 3, topk_sample_logprobs=10**9).sequences[0].topk_logprobs[0]) == 257


@pytest.mark.parametrize("form", ["text", "texts", "tokens"])
def test_stops_end_a_continuation_and_stay_in_it(form, sampler):
    """The continuation is the free one cut just behind the first stop, whatever the stop's form."""
    (free,) = sampler.sample(PROMPT, 1, 200, seed=2).sequences
    assert free.stop_reason == "length"
    at = next(i for i in range(20, 199) if free.tokens[i] < 128 and free.tokens[i + 1] < 128)
    if form == "tokens":
        stop, ending = [free.tokens[at + 1]], [free.tokens[at + 1]]
    else:
        ending = free.tokens[at : at + 2]
        text = bytes(ending).decode()
        stop = text if form == "text" else ["never seen", text]
    (cut,) = sampler.sample(PROMPT, 1, 200, seed=2, stop=stop).sequences
    assert cut.stop_reason == "stop"
    assert cut.tokens[-len(ending) :] == ending
    assert cut.tokens == free.tokens[: len(cut.tokens)]
    assert cut.logprobs == pytest.approx(free.logprobs[: len(cut.tokens)], abs=1e-5)
    assert len(cut.logprobs) == len(cut.tokens)


def test_an_empty_list_stops_nowhere(sampler):
    """stop [] and None are the same request."""
    assert sampler.sample(PROMPT, 1, 20, seed=2, stop=[]) == sampler.sample(PROMPT, 1, 20, seed=2)


def test_stop_texts_do_not_reach_into_the_prompt(sampler):
    """A stop text that the prompt's end would complete does not count."""
    (free,) = sampler.sample(PROMPT, 1, 20, seed=2).sequences
    pair = [PROMPT[-1], free.tokens[0]]
    assert all(free.tokens[i : i + 2] != pair for i in range(19))
    if free.tokens[0] < 128:
        (got,) = sampler.sample(PROMPT, 1, 20, seed=2, stop=bytes(pair).decode()).sequences
        assert got == free


def test_length_ends_at_max_tokens_or_the_full_context(sampler):
    """max_tokens is kept, 0 included; beyond it the context's end gives reason length."""
    room = base_model(NANO).config.max_context
    for asked, prompt, expected in ((0, PROMPT, 0), (3, PROMPT, 3), (None, [65] * (room - 4), 4), (9, [65] * room, 0)):
        (sequence,) = sampler.sample(prompt, 1, asked, seed=1).sequences
        assert len(sequence.tokens) == len(sequence.logprobs) == expected
        assert sequence.stop_reason == "length"


def test_topk_prompt_logprobs_are_the_best_of_each_position(model, sampler):
    """Best first, none at the first position, and the whole vocabulary when more is asked than exists."""
    samples = sampler.sample(PROMPT, 1, 1, prompt_logprobs=True, topk_prompt_logprobs=3)
    everything = sampler.sample(PROMPT, 1, 1, topk_prompt_logprobs=999)
    assert everything.prompt_logprobs is None
    assert samples.topk_prompt_logprobs[0] is None
    assert len(samples.topk_prompt_logprobs) == len(PROMPT)
    for at in range(1, len(PROMPT)):
        ranked = everything.topk_prompt_logprobs[at]
        assert len(ranked) == 257
        assert ranked == sorted(ranked, key=lambda pair: -pair[1])
        assert samples.topk_prompt_logprobs[at] == ranked[:3]
        assert dict(ranked)[PROMPT[at]] == pytest.approx(samples.prompt_logprobs[at])
        assert sum(np.exp([logprob for _, logprob in ranked])) == pytest.approx(1.0, abs=1e-4)


def test_plain_requests_carry_no_prompt_logprobs(sampler):
    """What was not asked for is None, and a one-token prompt has only the None of its first token."""
    samples = sampler.sample(PROMPT, 1, 1)
    assert samples.prompt_logprobs is None
    assert samples.topk_prompt_logprobs is None
    single = sampler.sample([65], 1, 1, prompt_logprobs=True, topk_prompt_logprobs=2)
    assert single.prompt_logprobs == single.topk_prompt_logprobs == [None]


distributions = st.lists(st.floats(-8, 0), min_size=2, max_size=12).map(np.array)
draws = st.floats(0, 1, exclude_max=True)


def _allowed(logits: np.ndarray, temperature: float, top_k: int, top_p: float) -> set[int]:
    """Tokens that the rule may give, by its definition and one token at a time."""
    order = sorted(range(len(logits)), key=lambda token: -logits[token])
    order = order if top_k == -1 else order[:top_k]
    weights = np.exp((logits[order] - logits.max()) / temperature)
    weights /= weights.sum()
    allowed, held = set(), 0.0
    for token, weight in zip(order, weights, strict=True):
        if held >= top_p + 1e-9:
            break
        allowed.add(token)
        held += weight
    return allowed


@given(distributions, st.floats(0.05, 5), st.integers(1, 14) | st.just(-1), st.floats(0.01, 1), draws)
def test_only_allowed_tokens_are_drawn(logits, temperature, top_k, top_p, draw):
    """Every draw gives a token among the top k, and among the fewest that hold top_p of those."""
    rule = SamplingRule(temperature=temperature, top_k=top_k, top_p=top_p)
    (token,) = rule.choose(logits[None], np.array([draw]))
    assert token in _allowed(logits, temperature, top_k, top_p)


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
def test_the_narrowest_rules_are_greedy(logits, draw, rule):
    """top_k 1, a vanishing top_p and a vanishing temperature give a likeliest token."""
    (token,) = SamplingRule(**rule).choose(logits[None], np.array([draw]))
    assert logits[token] == pytest.approx(logits.max(), abs=1e-6)


@given(distributions)
def test_temperature_zero_ignores_the_draw(logits):
    """Greedy gives the first of the likeliest tokens."""
    (token,) = SamplingRule(temperature=0.0).choose(logits[None], np.array([0.9]))
    assert token == int(logits.argmax())
