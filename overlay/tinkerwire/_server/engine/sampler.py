"""Sampling from a base model, with or without an adapter."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from tinkerwire._server.engine import lora
from tinkerwire._server.engine.arrays import AnyArray, FloatArray, IntArray
from tinkerwire._server.engine.base import BaseModel
from tinkerwire._server.engine.cache import KeyValueCache
from tinkerwire._server.engine.config import ModelConfig
from tinkerwire._server.engine.errors import EngineError
from tinkerwire._server.engine.example import token_array, token_ids
from tinkerwire._server.engine.logits import log_softmax
from tinkerwire._server.engine.sampling_rule import SamplingRule
from tinkerwire._server.engine.stopping import Stop, StopRule
from tinkerwire._server.engine.transformer import forward

__all__ = ["SampledSequence", "Sampler", "Samples"]

NOTHING = -1
"""In place of a target token: nothing is asked here."""
ALTERNATIVES = 1
"""Number of the stream of draws that alternatives to a prompt come from."""
MAX_CACHED = 2**25
"""Keys and values of samples that are decoded side by side: 128 MiB, and for moments up to four times that."""
MAX_REPORTED = 2**22
"""Pairs of token and logprob that a request's samples may come with: half a GiB while they are gathered."""
TopkLogprobs = list[list[tuple[int, float]] | None]


@attrs.define
class SampledSequence:
    """One continuation; its logprobs (nats) are those of the plain model, whatever the sampling rule.

    Args:
        topk_logprobs: the likeliest (token, logprob) at each of its positions, best first; empty when not asked for.
    """

    tokens: list[int] = attrs.field(factory=list)
    logprobs: list[float] = attrs.field(factory=list)
    stop_reason: str = "length"
    topk_logprobs: list[list[tuple[int, float]]] = attrs.field(factory=list)


@attrs.frozen
class Alternatives:
    """Tokens drawn in place of those of a prompt, (prompt tokens - 1, count), and their logprobs (nats)."""

    tokens: IntArray
    logprobs: FloatArray


@attrs.frozen
class Samples:
    """Continuations of one prompt, and what was asked about the prompt itself.

    Args:
        prompt_logprobs: one a prompt token, the first None because nothing comes before it.
        topk_prompt_logprobs: the likeliest (token, logprob) at each prompt position, best first; the first None.
        target_logprobs: those of the tokens that were asked about, in the shape of those; NaN where none was.
        alternatives: tokens drawn in place of each prompt token but the first.
    """

    sequences: list[SampledSequence]
    prompt_logprobs: list[float | None] | None = None
    topk_prompt_logprobs: TopkLogprobs | None = None
    target_logprobs: FloatArray | None = None
    alternatives: Alternatives | None = None


class Sampler:
    """A model to sample from: the base, with the adapter merged in. Thread safe, it never changes.

    Raises:
        EngineError: the adapter belongs to another base model.
    """

    def __init__(self, base: BaseModel, adapter: lora.Adapter | None = None) -> None:
        self._config = base.config
        if adapter is None:
            self._weights = dict(base.weights)
            return
        if adapter.base_name != base.config.name:
            raise EngineError(
                f"Sampler: the adapter is for {adapter.base_name} but the base is {base.config.name}; "
                "pass the base it was trained on"
            )
        self._weights = lora.merge(base, adapter.settings, adapter.params)

    def sample(
        self,
        prompt: Sequence[int],
        num_samples: int = 1,
        max_tokens: int | None = None,
        temperature: float = 1.0,
        top_k: int = -1,
        top_p: float = 1.0,
        stop: Stop = None,
        seed: int | None = None,
        prompt_logprobs: bool = False,
        topk_prompt_logprobs: int = 0,
        topk_sample_logprobs: int = 0,
        target_tokens: AnyArray | None = None,
        alternatives: int = 0,
    ) -> Samples:
        """Continue the prompt num_samples times.

        Args:
            max_tokens: most tokens of a continuation; None: until the context is full.
            stop: a text, texts or token ids that end a continuation; they stay in it.
            seed: any int; sample i draws the same numbers whatever num_samples is. None: a fresh one.
            topk_prompt_logprobs: how many likeliest tokens to report at each prompt position; 0: none.
            topk_sample_logprobs: the same at each position of a continuation.
            target_tokens: token ids (prompt tokens - 1, any number) to report the logprobs of: row i in place of
                prompt token i + 1; -1 asks nothing.
            alternatives: how many tokens to draw in place of each prompt token but the first, at the temperature.

        Raises:
            EngineError: an argument out of range, or a prompt that the model cannot read.
        """
        tokens = token_array("sample: prompt", np.asarray(prompt), self._config)
        rule = SamplingRule(temperature=temperature, top_k=top_k, top_p=top_p)
        rule.check()
        stop_rule = StopRule.read(stop, self._config)
        _require_counts(
            num_samples,
            max_tokens,
            topk_prompt_logprobs=topk_prompt_logprobs,
            topk_sample_logprobs=topk_sample_logprobs,
            alternatives=alternatives,
        )
        targets = None if target_tokens is None else _targets(target_tokens, len(tokens), self._config)
        room = self._config.max_context - len(tokens)
        length = room if max_tokens is None else min(max_tokens, room)
        _require_few(num_samples, length, min(topk_sample_logprobs, self._config.vocab_size))
        cache = KeyValueCache()
        hidden, _ = forward(self._config, self._weights, tokens[None], cache)
        last = self._logprobs(hidden[:, -1])
        draws = _draws(seed, num_samples, length)
        rows = _rows_at_once(self._config, len(tokens) + length)
        sequences = [
            sequence
            for first in range(0, num_samples, rows)
            for sequence in self._continue(
                cache, last, draws[first : first + rows], rule, stop_rule, topk_sample_logprobs
            )
        ]
        if not (prompt_logprobs or topk_prompt_logprobs or alternatives) and targets is None:
            return Samples(sequences)
        about = self._logprobs(hidden[0, :-1])
        return Samples(
            sequences,
            prompt_logprobs=_prompt_logprobs(about, tokens) if prompt_logprobs else None,
            topk_prompt_logprobs=[None, *_topk(about, topk_prompt_logprobs)] if topk_prompt_logprobs else None,
            target_logprobs=None if targets is None else _target_logprobs(about, targets),
            alternatives=_alternatives(about, alternatives, temperature, seed) if alternatives else None,
        )

    def _logprobs(self, hidden: FloatArray) -> FloatArray:
        found = log_softmax(hidden @ self._weights["unembedding"])
        if np.isnan(found).any():
            raise EngineError(
                "sample: the model's log probabilities are not numbers, for its weights have left the finite range; "
                "load an earlier checkpoint, and train with a smaller learning rate"
            )
        return found

    def _continue(
        self,
        cache: KeyValueCache,
        logprobs: FloatArray,
        draws: FloatArray,
        rule: SamplingRule,
        stop_rule: StopRule,
        topk: int,
    ) -> list[SampledSequence]:
        """Decode all samples side by side, dropping rows as they stop; draws is (samples, length)."""
        n_samples, length = draws.shape
        sequences = [SampledSequence() for _ in range(n_samples)]
        alive = np.arange(n_samples)
        # All samples start from the one row of the prompt.
        same_row = np.zeros(n_samples, dtype=np.int64)
        cache, logprobs = cache.select(same_row), logprobs[same_row]
        for at in range(length):
            chosen = rule.choose(logprobs, draws[alive, at])
            if topk:
                for row, best in zip(alive, _topk(logprobs, topk), strict=True):
                    sequences[row].topk_logprobs.append(best)
            going = _record([sequences[row] for row in alive], chosen, logprobs, stop_rule)
            if at + 1 == length or not going.size:
                break
            if going.size < alive.size:
                alive, chosen, cache = alive[going], chosen[going], cache.select(going)
            hidden, _ = forward(self._config, self._weights, chosen[:, None], cache)
            logprobs = self._logprobs(hidden[:, 0])
        return sequences


def _rows_at_once(config: ModelConfig, positions: int) -> int:
    """How many samples of that many positions, prompt included, are decoded side by side."""
    return max(1, MAX_CACHED // (2 * config.n_layers * config.d_model * positions))


def _prompt_logprobs(logprobs: FloatArray, tokens: IntArray) -> list[float | None]:
    own = logprobs[np.arange(len(tokens) - 1), tokens[1:]]
    return [None, *own.tolist()]


def _targets(values: AnyArray, length: int, config: ModelConfig) -> IntArray:
    if values.ndim != 2 or len(values) != length - 1:
        raise EngineError(
            f"sample: target tokens have shape {values.shape}; pass {length - 1} rows, one for each token of the "
            "prompt but the first"
        )
    flat = values.reshape(-1)
    token_ids("sample: target tokens", np.where(flat == NOTHING, 0, flat), config)
    return values.astype(np.int64)


def _target_logprobs(logprobs: FloatArray, targets: IntArray) -> FloatArray:
    is_asked = targets != NOTHING
    found = np.take_along_axis(logprobs, np.where(is_asked, targets, 0), axis=-1)
    return np.where(is_asked, found, np.nan).astype(np.float32)


def _alternatives(logprobs: FloatArray, count: int, temperature: float, seed: int | None) -> Alternatives:
    """Tokens drawn independently at each position."""
    # A stream of its own, so that asking for them changes no sample.
    draws = np.random.default_rng(_root(seed, ALTERNATIVES)).random((count, len(logprobs)))
    rule = SamplingRule(temperature=temperature)
    tokens = np.stack([rule.choose(logprobs, each) for each in draws], axis=-1)
    return Alternatives(tokens, np.take_along_axis(logprobs, tokens, axis=-1))


def _require_counts(num_samples: int, max_tokens: int | None, **counts: int) -> None:
    if num_samples < 1:
        raise EngineError(f"sample: num_samples is {num_samples}; pass 1 or more")
    if max_tokens is not None and max_tokens < 0:
        raise EngineError(f"sample: max_tokens is {max_tokens}; pass 0 or more, or None to fill the context")
    for name, count in counts.items():
        if count < 0:
            raise EngineError(f"sample: {name} is {count}; pass 0 or more, 0 for none")


def _require_few(num_samples: int, length: int, topk: int) -> None:
    if num_samples * length * topk > MAX_REPORTED:
        raise EngineError(
            f"sample: topk_sample_logprobs is {topk} at {length} tokens of {num_samples} samples, and {MAX_REPORTED} "
            "is the most altogether; pass a smaller one, smaller max_tokens or fewer samples"
        )


def _draws(seed: int | None, num_samples: int, length: int) -> FloatArray:
    """Uniform numbers (num_samples, length), each row from a generator of its own."""
    children = _root(seed).spawn(num_samples)
    return np.stack([np.random.default_rng(child).random(length) for child in children])


def _root(seed: int | None, *stream: int) -> np.random.SeedSequence:
    # Seeds on the wire are any integers; a generator takes none below zero.
    return np.random.SeedSequence(None if seed is None else (seed % 2**64, *stream) if stream else seed % 2**64)


def _record(sequences: list[SampledSequence], chosen: IntArray, logprobs: FloatArray, stop_rule: StopRule) -> IntArray:
    """Append the chosen tokens; the rows that go on."""
    going = []
    for row, (sequence, token) in enumerate(zip(sequences, chosen.tolist(), strict=True)):
        sequence.tokens.append(token)
        sequence.logprobs.append(float(logprobs[row, token]))
        if stop_rule.met_by(sequence.tokens):
            sequence.stop_reason = "stop"
        else:
            going.append(row)
    return np.array(going, dtype=np.int64)


def _topk(logprobs: FloatArray, count: int) -> list[list[tuple[int, float]]]:
    order = np.argsort(-logprobs, axis=-1, kind="stable")[:, :count]
    best = np.take_along_axis(logprobs, order, axis=-1)
    rows = zip(order.tolist(), best.tolist(), strict=True)
    return [list(zip(ids, values, strict=True)) for ids, values in rows]
