"""Sampling from a base model, with or without an adapter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from tinkerwire._server.engine import lora
from tinkerwire._server.engine.arrays import AnyArray, FloatArray, IntArray, log_softmax
from tinkerwire._server.engine.attention import KeyValueCache
from tinkerwire._server.engine.base import BaseModel
from tinkerwire._server.engine.config import ModelConfig
from tinkerwire._server.engine.decoding import (
    Join,
    PromptOptions,
    SampledSequence,
    SampleRun,
    decode_batch,
    require_not_nan,
)
from tinkerwire._server.engine.errors import EngineError
from tinkerwire._server.engine.example import array_of_token_ids, token_array
from tinkerwire._server.engine.sampling_rule import SamplingRule, find_likeliest
from tinkerwire._server.engine.stopping import Stop, StopRule
from tinkerwire._server.engine.transformer import run_forward

NO_TARGET = -1
"""Value of positions without a target token."""
ALTERNATIVES_STREAM = 1
"""Number of the random stream for alternatives to prompt tokens."""
MAX_CACHED = 2**25
"""Maximum number of cached keys and values of parallel samples: 128 MiB, at peaks up to four times as much."""
MAX_REPORTED = 2**22
"""Maximum number of (token, logprob) pairs in the samples of a request: half a GiB while they are collected."""
MAX_BATCH_ROWS = 128
"""Maximum number of samples in a batch of several requests; larger batches are not faster."""
SampledTopk = list[list[tuple[int, float]] | None]


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
        prompt_logprobs: one per prompt token; the first is None, because no token precedes it, and so are those of
            patches, which are not tokens of the vocabulary.
        topk_prompt_logprobs: the likeliest (token, logprob) pairs at each prompt position, best first; None for the
            first and for patches.
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

    def start(
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
        patches: FloatArray | None = None,
    ) -> SampleRun:
        """Start to continue the prompt num_samples times: check the arguments, and pass the prompt through the model.

        Args:
            prompt: token ids; the value -1 - i is patch i.
            num_samples: number of continuations.
            max_tokens: maximum number of tokens of a continuation; None fills the context.
            temperature: see SamplingRule.
            top_k: see SamplingRule.
            top_p: see SamplingRule.
            stop: a text, texts or token ids that end a continuation; they remain in it.
            seed: any int. None draws a new seed.
            prompt_logprobs: report the log probabilities of the prompt tokens.
            topk_prompt_logprobs: number of likeliest tokens to report at each prompt position.
            topk_sample_logprobs: number of likeliest tokens to report at each position of a continuation.
            target_tokens: token ids to report the log probabilities of, (prompt tokens - 1, any number): row i
                replaces prompt token i + 1. The value -1 has no target.
            alternatives: number of alternatives to draw for each prompt token except the first, at the temperature.
            patches: patches of images in the prompt, (any number, PATCH_VALUES).

        Raises:
            EngineError: an argument is out of range, the prompt is invalid, or the weights are not finite.
        """
        tokens = token_array("sample: prompt", np.asarray(prompt), self._config, 0 if patches is None else len(patches))
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
        hidden, _ = run_forward(self._config, self._weights, tokens[None], cache, patches=patches)
        return SampleRun(
            prompt=tokens,
            rule=rule,
            stop_rule=stop_rule,
            topk=topk_sample_logprobs,
            draws=_draws(seed, num_samples, length),
            parallel_rows=_max_parallel_rows(self._config, len(tokens) + length),
            cache=cache,
            hidden=hidden[0],
            logprobs=self._logprobs(hidden[:, -1]),
            prompt_options=PromptOptions(
                logprobs=prompt_logprobs,
                topk=topk_prompt_logprobs,
                targets=targets,
                alternatives=alternatives,
                temperature=temperature,
                seed=seed,
            ),
        )

    def decode(self, join: Join) -> Iterator[SampleRun]:
        """Decode runs of this sampler as one batch, and yield each of them when it is done.

        Args:
            join: returns runs that join the batch; see :func:`~tinkerwire._server.engine.decoding.decode_batch`.
        """
        return decode_batch(self._config, self._weights, join)

    def finish(self, run: SampleRun) -> Samples:
        """Return the result of a run that is done, with the log probabilities of the prompt.

        Raises:
            EngineError: the weights are not finite.
        """
        if run.error is not None:
            raise run.error
        options = run.prompt_options
        if not (options.logprobs or options.topk or options.alternatives) and options.targets is None:
            return Samples(run.sequences)
        logprobs = self._logprobs(run.hidden[:-1])
        return Samples(
            run.sequences,
            prompt_logprobs=_prompt_logprobs(logprobs, run.prompt) if options.logprobs else None,
            topk_prompt_logprobs=_topk_logprobs(logprobs, run.prompt, options.topk) if options.topk else None,
            target_logprobs=None if options.targets is None else _target_logprobs(logprobs, options.targets),
            alternatives=_draw_alternatives(logprobs, options) if options.alternatives else None,
        )

    def complete(self, run: SampleRun) -> Samples:
        """Decode a run alone, and return its result.

        Raises:
            EngineError: the weights are not finite.
        """
        runs = [run]
        for _ in self.decode(lambda is_empty: None if is_empty and not runs else [runs.pop()] if runs else []):
            pass
        return self.finish(run)

    def _logprobs(self, hidden: FloatArray) -> FloatArray:
        logprobs = log_softmax(hidden @ self._weights["unembedding"])
        require_not_nan(logprobs)
        return logprobs


def compute_batch_share(
    config: ModelConfig, prompt_length: int, num_samples: int, max_tokens: int | None, topk: int
) -> float:
    """Return the part of a batch that a request takes, above 1 if it is larger than any batch.

    Args:
        config: config of the base model.
        prompt_length: number of tokens of the prompt.
        num_samples: see :meth:`Sampler.start`.
        max_tokens: see :meth:`Sampler.start`.
        topk: see topk_sample_logprobs of :meth:`Sampler.start`.
    """
    max_length = config.max_context - prompt_length
    length = max_length if max_tokens is None else min(max_tokens, max_length)
    # The arguments are not checked yet.
    max_rows = _max_parallel_rows(config, max(1, prompt_length + length))
    reported = num_samples * length * min(topk, config.vocab_size)
    return max(num_samples / min(max_rows, MAX_BATCH_ROWS), reported / MAX_REPORTED)


def _max_parallel_rows(config: ModelConfig, positions: int) -> int:
    """Return the maximum number of parallel samples with this number of positions, prompt included."""
    return max(1, MAX_CACHED // (2 * config.n_layers * config.d_model * positions))


def _prompt_logprobs(logprobs: FloatArray, tokens: IntArray) -> list[float | None]:
    token_logprobs = logprobs[np.arange(len(tokens) - 1), tokens[1:]].tolist()
    return [None, *(None if token < 0 else value for token, value in zip(tokens[1:], token_logprobs, strict=True))]


def _topk_logprobs(logprobs: FloatArray, tokens: IntArray, count: int) -> SampledTopk:
    likeliest = find_likeliest(logprobs, count)
    return [None, *(None if token < 0 else pairs for token, pairs in zip(tokens[1:], likeliest, strict=True))]


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


def _draw_alternatives(logprobs: FloatArray, options: PromptOptions) -> Alternatives:
    """Draw tokens independently at each position."""
    # A separate random stream, so that alternatives do not change the samples.
    generator = np.random.default_rng(_seed_sequence(options.seed, ALTERNATIVES_STREAM))
    draws = generator.random((options.alternatives, len(logprobs)))
    rule = SamplingRule(temperature=options.temperature)
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
