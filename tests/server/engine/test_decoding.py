"""Tests of batches of requests: no request depends on the others, to the bit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinkerwire._server.engine import EngineError, SampledSequence, Sampler, base_model, decoding
from tinkerwire._server.engine.attention import KeyValueCache
from tinkerwire._server.engine.decoding import SampleRun
from tinkerwire._server.engine.sampler import compute_batch_share
from tinkerwire._server.engine.sampling_rule import find_likeliest
from tinkerwire._server.engine.transformer import run_forward

NANO, SMALL = "tinkerwire/byte-nano", "tinkerwire/byte-small"
Arguments = dict[str, Any]


SAMPLERS = {name: Sampler(base_model(name)) for name in (NANO, SMALL)}


@st.composite
def requests(draw: st.DrawFn) -> list[Arguments]:
    """Draw requests with prompts of few different lengths, so that some of them share their attention."""
    lengths = draw(st.lists(st.integers(1, 70), min_size=1, max_size=3))
    tokens = st.integers(0, 256)
    request = st.fixed_dictionaries(
        {
            "prompt": st.sampled_from(lengths).flatmap(
                lambda length: st.lists(tokens, min_size=length, max_size=length)
            ),
            "num_samples": st.sampled_from([1, 1, 1, 2, 5, 9]),
            "max_tokens": st.integers(0, 20),
            "temperature": st.sampled_from([0.0, 0.7, 1.0]) | st.floats(0.1, 3),
            "top_k": st.sampled_from([-1, -1, 1, 7]),
            "top_p": st.sampled_from([1.0, 1.0, 0.5]) | st.floats(0.01, 1),
            "stop": st.none() | st.lists(tokens, max_size=20) | st.sampled_from(["a", ["ab", "e"]]),
            "seed": st.integers(-5, 5),
            "topk_sample_logprobs": st.sampled_from([0, 0, 2]),
        }
    )
    return draw(st.lists(request, min_size=2, max_size=6))


def _decode(sampler: Sampler, runs: Sequence[SampleRun], joins: Iterator[int]) -> None:
    """Decode runs of which the given numbers join before each pass, and at least one if the batch is empty."""
    waiting = list(runs)

    def join(is_empty: bool) -> list[SampleRun] | None:
        count = max(next(joins, len(waiting)), int(is_empty))
        joined, waiting[:] = waiting[:count], waiting[count:]
        return joined or (None if is_empty else [])

    done = list(sampler.decode(join))
    assert {id(run) for run in done} == {id(run) for run in runs}
    assert len(done) == len(runs)


def _decode_by_definition(sampler: Sampler, run: SampleRun) -> list[SampledSequence]:
    """Decode the samples of one request, with one forward pass of all of its active samples for each token."""
    sequences = [SampledSequence() for _ in run.draws]
    active = np.arange(len(run.draws))
    cache, logprobs = run.cache.select(active * 0), run.logprobs[active * 0]
    for position in range(run.draws.shape[1]):
        chosen = run.rule.choose(logprobs, run.draws[active, position])
        likeliest = find_likeliest(logprobs, run.topk)
        for row, sample in enumerate(active):
            sequence = sequences[sample]
            sequence.tokens.append(int(chosen[row]))
            sequence.logprobs.append(float(logprobs[row, chosen[row]]))
            sequence.topk_logprobs += [likeliest[row]] if run.topk else []
            sequence.stop_reason = "stop" if run.stop_rule.matches(sequence.tokens) else "length"
        rows = np.array([row for row, sample in enumerate(active) if sequences[sample].stop_reason != "stop"], int)
        if not rows.size:
            break
        if rows.size < active.size:
            active, chosen, cache = active[rows], chosen[rows], cache.select(rows)
        hidden, _ = run_forward(sampler._config, sampler._weights, chosen[:, None], cache)
        logprobs = sampler._logprobs(hidden[:, 0])
    return sequences


@pytest.mark.parametrize("name", SAMPLERS)
@settings(max_examples=20)
@given(st.data())
def test_samples_do_not_depend_on_the_batch(name: str, data: st.DataObject) -> None:
    """Tokens and logprobs equal those of the request alone to the bit, for any companions that join at any time."""
    sampler, batch = SAMPLERS[name], data.draw(requests())
    runs = [sampler.start(**arguments) for arguments in batch]
    _decode(sampler, runs, iter(data.draw(st.lists(st.integers(0, 3), max_size=8))))
    for arguments, run in zip(batch, runs, strict=True):
        expected = _decode_by_definition(sampler, sampler.start(**arguments))
        assert sampler.finish(run).sequences == expected
        assert sampler.complete(sampler.start(**arguments)).sequences == expected


@pytest.mark.parametrize("joins", [[], [1] * 16])
def test_batch_needs_fewer_passes_than_its_requests_alone(joins: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """16 requests run in the passes of one, plus one for each pass by which the last one joins later."""
    passes = []
    run_step = decoding.run_step
    monkeypatch.setattr(decoding, "run_step", lambda *arguments: passes.append(0) or run_step(*arguments))
    sampler = SAMPLERS[NANO]
    sampler.complete(sampler.start([65], 1, 20))
    assert len(passes) == 19
    passes.clear()
    _decode(sampler, [sampler.start([65 + index], 1, 20) for index in range(16)], iter(joins))
    assert len(passes) == (19 + 15 if joins else 19)


def test_request_with_nan_fails_alone() -> None:
    """A request whose values are not finite fails, and the others of its batch go on."""
    sampler = SAMPLERS[NANO]
    runs = [sampler.start([65, 66], 2, 9, seed=seed) for seed in range(3)]
    runs[1].cache._layers[0][:] = np.nan
    _decode(sampler, runs, iter(()))
    with pytest.raises(EngineError, match="NaN, because its weights are not finite"):
        sampler.finish(runs[1])
    for seed in (0, 2):
        assert sampler.finish(runs[seed]) == sampler.complete(sampler.start([65, 66], 2, 9, seed=seed))


def test_request_is_yielded_when_it_is_done() -> None:
    """A short request does not wait for the longer ones of its batch."""
    sampler = SAMPLERS[NANO]
    runs = [sampler.start([65], 1, length) for length in (30, 0, 5)]
    waiting = list(runs)

    def join(is_empty: bool) -> list[SampleRun] | None:
        joined, waiting[:] = waiting[:], []
        return joined or (None if is_empty else [])

    lengths = [(run.draws.shape[1], len(runs[0].sequences[0].tokens)) for run in sampler.decode(join)]
    assert lengths == [(0, 1), (5, 5), (30, 30)]


def test_joined_caches_keep_their_rows() -> None:
    """The joined cache holds the rows of all caches, in their order."""
    caches = []
    for value in (1.0, 2.0):
        cache = KeyValueCache()
        cache.extend(0, np.full((2, 1, 3, 4), value), np.full((2, 1, 3, 4), -value))
        cache.advance(3)
        caches.append(cache)
    joined = KeyValueCache.join(caches)
    assert (joined.rows, joined.length) == (4, 3)
    keys, values = joined.extend(0, np.zeros((4, 1, 1, 4)), np.zeros((4, 1, 1, 4)))
    assert keys[:, 0, 0, 0].tolist() == [1, 1, 2, 2]
    assert values[:, 0, 2, 0].tolist() == [-1, -1, -2, -2]


@pytest.mark.parametrize(
    ("arguments", "share"),
    [
        ((10, 1, 20, 0), 1 / 128),
        ((10, 128, 20, 0), 1.0),
        ((10, 1, 2**13, 257), 2038 * 257 / 2**22),
        ((0, 1, -5, -1), 1 / 128),
    ],
)
def test_share_of_a_batch_is_that_of_its_scarcest_limit(arguments: tuple[int, int, int, int], share: float) -> None:
    """The limits are samples, cached positions, and reported pairs; invalid arguments have a share as well."""
    assert compute_batch_share(base_model(NANO).config, *arguments) == pytest.approx(share)


def test_share_of_long_samples_grows_with_their_positions() -> None:
    """128 samples that fill the context of the larger model exceed the memory of a batch."""
    assert compute_batch_share(base_model(SMALL).config, 48, 128, 2000, 0) > 2
