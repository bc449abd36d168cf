"""Sampling from a base model, with or without an adapter."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs
import numpy as np

from tinkerwire._server.engine import lora
from tinkerwire._server.engine.arrays import AnyArray, FloatArray, IntArray, log_softmax
from tinkerwire._server.engine.base import BaseModel
from tinkerwire._server.engine.config import ModelConfig
from tinkerwire._server.engine.errors import EngineError
from tinkerwire._server.engine.example import array_of_token_ids, token_array
from tinkerwire._server.engine.stopping import Stop, StopRule
from tinkerwire._server.engine.transformer import KeyValueCache, run_forward


@attrs.frozen(kw_only=True)
class SamplingRule:
    """A rule that chooses tokens from log probabilities.

    Args:
        temperature: divisor of the logits; 0 chooses the likeliest token.
        top_k: number of likeliest tokens to draw from; -1 for all.
        top_p: draw from the smallest set of likeliest tokens with this total probability; 1 for all.
    """

    temperature: float = 1.0
    top_k: int = -1
    top_p: float = 1.0

    def check(self) -> None:
        """Check the range of all settings.

        Raises:
            EngineError: a setting is out of range.
        """
        if not 0.0 <= self.temperature < math.inf:
            raise EngineError(
                f"sample: temperature must be finite and at least 0 (0 for greedy sampling), got {self.temperature}"
            )
        if self.top_k != -1 and self.top_k < 1:
            raise EngineError(f"sample: top_k must be at least 1, or -1 for no limit, got {self.top_k}")
        if not 0.0 < self.top_p <= 1.0:
            raise EngineError(f"sample: top_p must be above 0 and at most 1 (1 for no limit), got {self.top_p}")

    def choose(self, logprobs: FloatArray, draws: FloatArray) -> IntArray:
        """Choose one token per row.

        Args:
            logprobs: log probabilities of the model, (rows, vocabulary).
            draws: uniform numbers from [0, 1), (rows,).
        """
        if self.temperature == 0.0:
            best: IntArray = logprobs.argmax(axis=-1)
            return best
        order = np.argsort(-logprobs, axis=-1, kind="stable")
        ordered = np.take_along_axis(logprobs, order, axis=-1).astype(np.float64)
        # Relative to the likeliest, so that a small temperature cannot overflow.
        weights = np.exp((ordered - ordered[:, :1]) / self.temperature)
        if self.top_k != -1:
            weights[:, self.top_k :] = 0.0
        weights /= weights.sum(axis=-1, keepdims=True)
        if self.top_p < 1.0:
            weights[weights.cumsum(axis=-1) - weights >= self.top_p] = 0.0
        cumulative = weights.cumsum(axis=-1)
        rank = (cumulative <= draws[:, None] * cumulative[:, -1:]).sum(axis=-1)
        rank = np.minimum(rank, (weights > 0.0).sum(axis=-1) - 1)
        tokens: IntArray = np.take_along_axis(order, rank[:, None], axis=-1)[:, 0]
        return tokens


NO_TARGET = -1
"""Value of positions without a target token."""
ALTERNATIVES_STREAM = 1
"""Number of the random stream for alternatives to prompt tokens."""
MAX_CACHED = 2**25
"""Maximum number of cached keys and values of parallel samples: 128 MiB, at peaks up to four times as much."""
MAX_REPORTED = 2**22
"""Maximum number of (token, logprob) pairs in the samples of a request: half a GiB while they are collected."""
SampledTopk = list[list[tuple[int, float]] | None]


@attrs.define
class SampledSequence:
    """A continuation; its logprobs (nats) are those of the model, independent of the sampling rule.

    Args:
        tokens: token ids.
        logprobs: log probabilities of the tokens.
        stop_reason: stop or length.
        topk_logprobs: the likeliest (token, logprob) pairs at each position, best first; empty unless requested.
    """

    tokens: list[int] = attrs.field(factory=list)
    logprobs: list[float] = attrs.field(factory=list)
    stop_reason: str = "length"
    topk_logprobs: list[list[tuple[int, float]]] = attrs.field(factory=list)


@attrs.frozen
class Alternatives:
    """Alternatives to the tokens of a prompt, (prompt tokens - 1, count), and their logprobs (nats)."""

    tokens: IntArray
    logprobs: FloatArray


@attrs.frozen
class Samples:
    """Continuations of one prompt, and log probabilities of the prompt.

    Args:
        sequences: the continuations.
        prompt_logprobs: one per prompt token; the first is None, because no token precedes it.
        topk_prompt_logprobs: the likeliest (token, logprob) pairs at each prompt position, best first; the first is
            None.
        target_logprobs: log probabilities of the target tokens, in their shape; NaN for positions without a target.
        alternatives: alternatives to each prompt token except the first.
    """

    sequences: list[SampledSequence]
    prompt_logprobs: list[float | None] | None = None
    topk_prompt_logprobs: SampledTopk | None = None
    target_logprobs: FloatArray | None = None
    alternatives: Alternatives | None = None


class Sampler:
    """A model to sample from: a base model with a merged adapter. Immutable and thread safe.

    Args:
        base: the base model.
        adapter: the adapter, if any.

    Raises:
        EngineError: the adapter belongs to another base model.
    """

    def __init__(self, base: BaseModel, adapter: lora.Adapter | None = None) -> None:
        self._config = base.config
        if adapter is None:
            self._weights = dict(base.weights)
            return
        if adapter.base_name != base.config.name:
            raise EngineError(f"Sampler: the base must be {adapter.base_name} for this adapter, got {base.config.name}")
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
            prompt: token ids.
            num_samples: number of continuations.
            max_tokens: maximum number of tokens of a continuation; None fills the context.
            temperature: see SamplingRule.
            top_k: see SamplingRule.
            top_p: see SamplingRule.
            stop: a text, texts or token ids that end a continuation; they remain in it.
            seed: any int; sample i does not depend on num_samples. None draws a new seed.
            prompt_logprobs: report the log probabilities of the prompt tokens.
            topk_prompt_logprobs: number of likeliest tokens to report at each prompt position.
            topk_sample_logprobs: number of likeliest tokens to report at each position of a continuation.
            target_tokens: token ids to report the log probabilities of, (prompt tokens - 1, any number): row i
                replaces prompt token i + 1. The value -1 has no target.
            alternatives: number of alternatives to draw for each prompt token except the first, at the temperature.

        Raises:
            EngineError: an argument is out of range, or the prompt is invalid.
        """
        tokens = token_array("sample: prompt", np.asarray(prompt), self._config)
        rule = SamplingRule(temperature=temperature, top_k=top_k, top_p=top_p)
        rule.check()
        stop_rule = StopRule.parse(stop, self._config)
        _require_counts(
            num_samples,
            max_tokens,
            topk_prompt_logprobs=topk_prompt_logprobs,
            topk_sample_logprobs=topk_sample_logprobs,
            alternatives=alternatives,
        )
        targets = None if target_tokens is None else _parse_targets(target_tokens, len(tokens), self._config)
        max_length = self._config.max_context - len(tokens)
        length = max_length if max_tokens is None else min(max_tokens, max_length)
        _require_topk_limit(num_samples, length, min(topk_sample_logprobs, self._config.vocab_size))
        cache = KeyValueCache()
        hidden, _ = run_forward(self._config, self._weights, tokens[None], cache)
        last = self._logprobs(hidden[:, -1])
        draws = _draws(seed, num_samples, length)
        rows = _max_parallel_rows(self._config, len(tokens) + length)
        sequences = [
            sequence
            for first in range(0, num_samples, rows)
            for sequence in self._continue(
                cache, last, draws[first : first + rows], rule, stop_rule, topk_sample_logprobs
            )
        ]
        if not (prompt_logprobs or topk_prompt_logprobs or alternatives) and targets is None:
            return Samples(sequences)
        all_logprobs = self._logprobs(hidden[0, :-1])
        return Samples(
            sequences,
            prompt_logprobs=_prompt_logprobs(all_logprobs, tokens) if prompt_logprobs else None,
            topk_prompt_logprobs=[None, *_topk(all_logprobs, topk_prompt_logprobs)] if topk_prompt_logprobs else None,
            target_logprobs=None if targets is None else _target_logprobs(all_logprobs, targets),
            alternatives=_draw_alternatives(all_logprobs, alternatives, temperature, seed) if alternatives else None,
        )

    def _logprobs(self, hidden: FloatArray) -> FloatArray:
        logprobs = log_softmax(hidden @ self._weights["unembedding"])
        if np.isnan(logprobs).any():
            raise EngineError(
                "sample: the model's log probabilities are NaN, because its weights are not finite; "
                "load an earlier checkpoint and train with a lower learning rate"
            )
        return logprobs

    def _continue(
        self,
        cache: KeyValueCache,
        logprobs: FloatArray,
        draws: FloatArray,
        rule: SamplingRule,
        stop_rule: StopRule,
        topk: int,
    ) -> list[SampledSequence]:
        """Decode all samples in parallel and drop rows as they stop; draws has the shape (samples, length)."""
        n_samples, length = draws.shape
        sequences = [SampledSequence() for _ in range(n_samples)]
        active = np.arange(n_samples)
        # All samples start from the row of the prompt.
        prompt_rows = np.zeros(n_samples, dtype=np.int64)
        cache, logprobs = cache.select(prompt_rows), logprobs[prompt_rows]
        for position in range(length):
            chosen = rule.choose(logprobs, draws[active, position])
            if topk:
                for row, best in zip(active, _topk(logprobs, topk), strict=True):
                    sequences[row].topk_logprobs.append(best)
            remaining = _append_tokens([sequences[row] for row in active], chosen, logprobs, stop_rule)
            if position + 1 == length or not remaining.size:
                break
            if remaining.size < active.size:
                active, chosen, cache = active[remaining], chosen[remaining], cache.select(remaining)
            hidden, _ = run_forward(self._config, self._weights, chosen[:, None], cache)
            logprobs = self._logprobs(hidden[:, 0])
        return sequences


def _max_parallel_rows(config: ModelConfig, positions: int) -> int:
    """Return the maximum number of parallel samples with this number of positions, prompt included."""
    return max(1, MAX_CACHED // (2 * config.n_layers * config.d_model * positions))


def _prompt_logprobs(logprobs: FloatArray, tokens: IntArray) -> list[float | None]:
    token_logprobs = logprobs[np.arange(len(tokens) - 1), tokens[1:]]
    return [None, *token_logprobs.tolist()]


def _parse_targets(values: AnyArray, length: int, config: ModelConfig) -> IntArray:
    if values.ndim != 2 or len(values) != length - 1:
        raise EngineError(
            f"sample: target tokens must have {length - 1} rows, one for each prompt token except the first, got shape "
            f"{values.shape}"
        )
    flat = values.reshape(-1)
    array_of_token_ids("sample: target tokens", np.where(flat == NO_TARGET, 0, flat), config)
    return values.astype(np.int64)


def _target_logprobs(logprobs: FloatArray, targets: IntArray) -> FloatArray:
    has_target = targets != NO_TARGET
    target_logprobs = np.take_along_axis(logprobs, np.where(has_target, targets, 0), axis=-1)
    return np.where(has_target, target_logprobs, np.nan).astype(np.float32)


def _draw_alternatives(logprobs: FloatArray, count: int, temperature: float, seed: int | None) -> Alternatives:
    """Draw tokens independently at each position."""
    # A separate random stream, so that alternatives do not change the samples.
    draws = np.random.default_rng(_seed_sequence(seed, ALTERNATIVES_STREAM)).random((count, len(logprobs)))
    rule = SamplingRule(temperature=temperature)
    tokens = np.stack([rule.choose(logprobs, row) for row in draws], axis=-1)
    return Alternatives(tokens, np.take_along_axis(logprobs, tokens, axis=-1))


def _require_counts(num_samples: int, max_tokens: int | None, **counts: int) -> None:
    if num_samples < 1:
        raise EngineError(f"sample: num_samples must be at least 1, got {num_samples}")
    if max_tokens is not None and max_tokens < 0:
        raise EngineError(f"sample: max_tokens must be at least 0, or None to fill the context, got {max_tokens}")
    for name, count in counts.items():
        if count < 0:
            raise EngineError(f"sample: {name} must be at least 0, got {count}")


def _require_topk_limit(num_samples: int, length: int, topk: int) -> None:
    if num_samples * length * topk > MAX_REPORTED:
        raise EngineError(
            f"sample: topk_sample_logprobs times tokens times samples must be at most {MAX_REPORTED}, got {topk} * "
            f"{length} * {num_samples}; lower topk_sample_logprobs, max_tokens or num_samples"
        )


def _draws(seed: int | None, num_samples: int, length: int) -> FloatArray:
    """Draw uniform numbers (num_samples, length), each row from its own generator."""
    children = _seed_sequence(seed).spawn(num_samples)
    return np.stack([np.random.default_rng(child).random(length) for child in children])


def _seed_sequence(seed: int | None, *stream: int) -> np.random.SeedSequence:
    # Seeds on the wire may be negative, which numpy does not support.
    return np.random.SeedSequence(None if seed is None else (seed % 2**64, *stream) if stream else seed % 2**64)


def _append_tokens(
    sequences: list[SampledSequence], chosen: IntArray, logprobs: FloatArray, stop_rule: StopRule
) -> IntArray:
    """Append the chosen tokens and return the rows that have not stopped."""
    remaining = []
    for row, (sequence, token) in enumerate(zip(sequences, chosen.tolist(), strict=True)):
        sequence.tokens.append(token)
        sequence.logprobs.append(float(logprobs[row, token]))
        if stop_rule.matches(sequence.tokens):
            sequence.stop_reason = "stop"
        else:
            remaining.append(row)
    return np.array(remaining, dtype=np.int64)


def _topk(logprobs: FloatArray, count: int) -> list[list[tuple[int, float]]]:
    order = np.argsort(-logprobs, axis=-1, kind="stable")[:, :count]
    best = np.take_along_axis(logprobs, order, axis=-1)
    rows = zip(order.tolist(), best.tolist(), strict=True)
    return [list(zip(ids, values, strict=True)) for ids, values in rows]
