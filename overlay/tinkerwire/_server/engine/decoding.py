"""Decoding of samples: the samples of several requests advance together, one token in each pass through the model.

A sample does not depend on the requests beside it, to the bit: the products of each request are computed by themselves,
and the attention of all samples with equally many positions. All other computation is independent for each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import attrs
import numpy as np

from tinkerwire._server.engine.arrays import FloatArray, IntArray, log_softmax
from tinkerwire._server.engine.attention import KeyValueCache
from tinkerwire._server.engine.config import ModelConfig
from tinkerwire._server.engine.errors import EngineError
from tinkerwire._server.engine.sampling_rule import SamplingRule, find_likeliest
from tinkerwire._server.engine.stopping import StopRule
from tinkerwire._server.engine.transformer import Weights, multiply_blocks, run_step


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


@attrs.frozen(eq=False, kw_only=True)
class PromptOptions:
    """Options of the log probabilities of a prompt; see :meth:`~tinkerwire._server.engine.sampler.Sampler.start`."""

    logprobs: bool
    topk: int
    targets: IntArray | None
    alternatives: int
    temperature: float
    seed: int | None


@attrs.define(eq=False, kw_only=True)
class SampleRun:
    """A request for continuations of a prompt, after the pass of its prompt.

    Args:
        prompt: token ids of the prompt; negative values are patches.
        rule: chooses the tokens.
        stop_rule: ends continuations.
        topk: number of likeliest tokens to report at each position.
        draws: uniform numbers, (samples, maximum length).
        parallel_rows: maximum number of samples that are decoded at once.
        cache: keys and values of the prompt.
        hidden: hidden state of the prompt.
        logprobs: log probabilities of the first token, (1, vocabulary).
        prompt_options: options of the log probabilities of the prompt.
        sequences: the continuations.
        error: the error that ended the request.
        is_done: True once all continuations have been decoded, or the request has failed.
    """

    prompt: IntArray
    rule: SamplingRule
    stop_rule: StopRule
    topk: int
    draws: FloatArray
    parallel_rows: int
    cache: KeyValueCache
    hidden: FloatArray
    logprobs: FloatArray
    prompt_options: PromptOptions
    sequences: list[SampledSequence] = attrs.field(factory=list)
    error: EngineError | None = None
    is_done: bool = False


Join = Callable[[bool], Sequence[SampleRun] | None]
"""A function that returns the runs that join a batch, or None to end it; its argument is True if the batch is empty."""


def decode_batch(config: ModelConfig, weights: Weights, join: Join) -> Iterator[SampleRun]:
    """Decode runs as one batch, and yield each of them when it is done.

    Args:
        config: config of the base model.
        weights: merged weights.
        join: called before each pass.
    """
    cohorts: list[_Cohort] = []
    unfinished: list[SampleRun] = []
    while True:
        joined = join(not cohorts and not unfinished)
        if joined is None:
            return
        groups = [_Group(run) for run in (*unfinished, *joined)]
        # A limit of 0 tokens ends a group before its first token.
        cohorts += _form_cohorts([group for group in groups if group.length])
        done = [group.run for group in groups if not group.length]
        done += _append_tokens(cohorts)
        cohorts = [cohort for cohort in cohorts if cohort.groups]
        if cohorts:
            done += _run_pass(config, weights, cohorts)
            cohorts = [cohort for cohort in cohorts if cohort.groups]
        unfinished = []
        for run in done:
            if run.error is None and len(run.sequences) < len(run.draws):
                unfinished.append(run)
            else:
                run.is_done = True
                yield run


class _Group:
    """Samples of one run that are decoded at once; those that have stopped are dropped."""

    def __init__(self, run: SampleRun) -> None:
        first = len(run.sequences)
        self.run = run
        self.draws = run.draws[first : first + run.parallel_rows]
        self.sequences = [SampledSequence() for _ in self.draws]
        self.active = np.arange(len(self.draws))
        self.tokens: IntArray = np.empty(0, dtype=np.int64)
        self.position = 0
        run.sequences += self.sequences

    @property
    def length(self) -> int:
        """Maximum number of tokens."""
        return int(self.draws.shape[1])

    @property
    def next_draws(self) -> FloatArray:
        """Uniform numbers for the next token of the active samples."""
        draws: FloatArray = self.draws[self.active, self.position]
        return draws

    def append(self, chosen: IntArray, logprobs: FloatArray) -> IntArray:
        """Append a token to each active sample, and return the rows that go on."""
        run, remaining = self.run, []
        if run.topk:
            for sample, likeliest in zip(self.active, find_likeliest(logprobs, run.topk), strict=True):
                self.sequences[sample].topk_logprobs.append(likeliest)
        values = logprobs[np.arange(len(chosen)), chosen].tolist()
        for row, (sample, token, value) in enumerate(zip(self.active.tolist(), chosen.tolist(), values, strict=True)):
            sequence = self.sequences[sample]
            sequence.tokens.append(token)
            sequence.logprobs.append(value)
            if run.stop_rule.matches(sequence.tokens):
                sequence.stop_reason = "stop"
            else:
                remaining.append(row)
        self.position += 1
        if self.position == self.length:
            remaining = []
        rows = np.array(remaining, dtype=np.int64)
        self.active, self.tokens = self.active[rows], chosen[rows]
        return rows


@attrs.define(eq=False)
class _Cohort:
    """Groups whose samples have equally many positions, prompt included.

    Args:
        groups: the groups.
        cache: keys and values of their active samples.
        logprobs: log probabilities of the next token of these samples.
    """

    groups: list[_Group]
    cache: KeyValueCache
    logprobs: FloatArray

    def keep(self, rows: Sequence[IntArray]) -> list[SampleRun]:
        """Keep these rows of each group, drop the groups without rows, and return the runs of the dropped groups."""
        kept = np.concatenate(rows)
        dropped = [group.run for group, group_rows in zip(self.groups, rows, strict=True) if not group_rows.size]
        self.groups = [group for group, group_rows in zip(self.groups, rows, strict=True) if group_rows.size]
        if self.groups and len(kept) < len(self.logprobs):
            self.cache, self.logprobs = self.cache.select(kept), self.logprobs[kept]
        return dropped


def _form_cohorts(groups: Sequence[_Group]) -> list[_Cohort]:
    by_length: dict[int, list[_Group]] = {}
    for group in groups:
        by_length.setdefault(len(group.run.prompt), []).append(group)
    return [_form_cohort(members) for members in by_length.values()]


def _form_cohort(groups: list[_Group]) -> _Cohort:
    # All samples start from the row of the prompt.
    rows = [np.zeros(len(group.active), dtype=np.int64) for group in groups]
    caches = [group.run.cache.select(zeros) for group, zeros in zip(groups, rows, strict=True)]
    logprobs = [group.run.logprobs[zeros] for group, zeros in zip(groups, rows, strict=True)]
    return _Cohort(groups, KeyValueCache.join(caches), np.concatenate(logprobs))


def _append_tokens(cohorts: Sequence[_Cohort]) -> list[SampleRun]:
    """Append a token to each sample, and return the runs whose group has ended."""
    if not cohorts:
        return []
    chosen = _choose([group for cohort in cohorts for group in cohort.groups], [cohort.logprobs for cohort in cohorts])
    ended, start = [], 0
    for cohort in cohorts:
        first, rows = start, []
        for group in cohort.groups:
            stop = start + len(group.active)
            rows.append(start - first + group.append(chosen[start:stop], cohort.logprobs[start - first : stop - first]))
            start = stop
        ended += cohort.keep(rows)
    return ended


def _choose(groups: Sequence[_Group], cohort_logprobs: Sequence[FloatArray]) -> IntArray:
    """Choose the next token of each active sample, with all samples of a rule at once."""
    logprobs = cohort_logprobs[0] if len(cohort_logprobs) == 1 else np.concatenate(cohort_logprobs)
    draws = np.concatenate([group.next_draws for group in groups])
    rules = [group.run.rule for group in groups]
    if len(set(rules)) == 1:
        return rules[0].choose(logprobs, draws)
    sizes = [len(group.active) for group in groups]
    chosen = np.empty(len(draws), dtype=np.int64)
    for rule in set(rules):
        rows = np.repeat([other == rule for other in rules], sizes)
        chosen[rows] = rule.choose(logprobs[rows], draws[rows])
    return chosen


def _run_pass(config: ModelConfig, weights: Weights, cohorts: Sequence[_Cohort]) -> list[SampleRun]:
    """Compute the log probabilities of the next tokens, and return the runs that fail."""
    groups = [group for cohort in cohorts for group in cohort.groups]
    sizes = [len(group.active) for group in groups]
    tokens = np.concatenate([group.tokens for group in groups])
    hidden = run_step(config, weights, tokens, [cohort.cache for cohort in cohorts], sizes)
    logprobs = log_softmax(multiply_blocks(sizes, hidden, weights["unembedding"]))
    has_nan = bool(np.isnan(logprobs).any())
    failed, start = [], 0
    for cohort in cohorts:
        cohort.logprobs = logprobs[start : start + cohort.cache.rows]
        start += cohort.cache.rows
        if has_nan:
            failed += _drop_nan(cohort)
    return failed


def _drop_nan(cohort: _Cohort) -> list[SampleRun]:
    """Drop the groups with NaN, and return their runs, which fail."""
    rows, start = [], 0
    for group in cohort.groups:
        stop = start + len(group.active)
        try:
            require_not_nan(cohort.logprobs[start:stop])
            rows.append(np.arange(start, stop))
        except EngineError as error:
            group.run.error = error
            rows.append(np.arange(0))
        start = stop
    return cohort.keep(rows)


def require_not_nan(logprobs: FloatArray) -> None:
    """Check log probabilities.

    Raises:
        EngineError: they are not numbers.
    """
    if np.isnan(logprobs).any():
        raise EngineError(
            "sample: the model's log probabilities are NaN, because its weights are not finite; "
            "load an earlier checkpoint and train with a lower learning rate"
        )
