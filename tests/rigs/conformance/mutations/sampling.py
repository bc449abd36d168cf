"""Mutations of samples: lengths, stops, the choice of tokens and their distribution."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import attrs

from tinkerwire._server.engine import decoding, sampler, sampling_rule, stopping
from tinkerwire._server.handlers import sampling as handlers
from tinkerwire._server.state import State
from tinkerwire_generated import models

from . import patches
from .mutation import Group

GROUP = Group("Sampling")
OLD = "0.16.1"
MANY_SAMPLES = 8
LONG_PROMPT = 1000
CONTEXT = 2048


def change_samples(change: Callable[[Any, Any], Any]) -> None:
    """Change the samples of a request; ``change`` gets the request and the samples, and returns others or None."""

    def make(original: Any) -> Any:
        return lambda body, samples: original(body, change(body, samples) or samples)

    patches.replace(handlers, "_to_response", make)


def change_sequences(change: Callable[[Any], None]) -> None:
    """Change each sequence."""

    def change_all(_: Any, samples: Any) -> None:
        for sequence in samples.sequences:
            change(sequence)

    change_samples(change_all)


def change_sample_request(change: Callable[[Any], Any]) -> None:
    """Change the bodies of asample."""

    def make(original: Any) -> Any:
        return lambda state, request: original(state, attrs.evolve(request, body=change(request.body)))

    patches.replace_handler("asample", make)


def reject_samples(is_rejected: Callable[[Any], bool], status: int = 422) -> None:
    """Reject some samples."""

    def change(body: Any) -> Any:
        if is_rejected(body):
            raise patches.error(status) if status < 500 else RuntimeError("mutated")
        return body

    change_sample_request(change)


def _change_rule(change: Callable[[Any], Any]) -> None:
    def make(original: Any) -> Any:
        return lambda self, logits, draws: original(change(self), logits, draws)

    patches.replace(sampling_rule.SamplingRule, "choose", make)


def _change_draws(change: Callable[[Any, Any, Any, Any], Any]) -> None:
    patches.replace(
        sampler, "_draws", lambda original: lambda seed, number, length: change(original, seed, number, length)
    )


def _change_stop(change: Callable[[Any], Any]) -> None:
    original = stopping.StopRule.parse.__func__  # type: ignore[attr-defined]
    stopping.StopRule.parse = classmethod(  # type: ignore[assignment,method-assign]
        lambda cls, stop, config: original(cls, change(stop), config)
    )


def _ints(*tokens: int) -> Any:
    return models.ModelInput.from_ints(list(tokens))


@GROUP.mutation("SMP-001")
def last_sequence_dropped() -> None:
    """A sample has one sequence less than asked for."""
    change_samples(lambda _, samples: samples.sequences.pop() and None)


@GROUP.mutation("SMP-001")
def stop_reason_eos() -> None:
    """The stop_reason of each sequence is ``eos``."""
    change_sequences(lambda sequence: setattr(sequence, "stop_reason", "eos"))


@GROUP.mutation("SMP-002", wire=OLD)
def old_stop_reason_eos() -> None:
    """The stop_reason of each sequence is ``eos``, which older contracts allow."""
    change_sequences(lambda sequence: setattr(sequence, "stop_reason", "eos"))


@GROUP.mutation("SMP-003")
def stop_reason_stop() -> None:
    """The stop_reason of each sequence is ``stop``."""
    change_sequences(lambda sequence: setattr(sequence, "stop_reason", "stop"))


@GROUP.mutation("SMP-004")
def temperature_zero_random() -> None:
    """Temperature 0 samples at temperature 1."""
    _change_rule(lambda rule: attrs.evolve(rule, temperature=rule.temperature or 1.0))


@GROUP.mutation("SMP-005")
def temperature_zero_second_best() -> None:
    """Temperature 0 takes the second best token."""

    def make(original: Any) -> Any:
        def choose(self: Any, logits: Any, draws: Any) -> Any:
            return logits.argsort(-1)[:, -2] if self.temperature == 0 else original(self, logits, draws)

        return choose

    patches.replace(sampling_rule.SamplingRule, "choose", make)


@GROUP.mutation("SMP-006", "LGP-001")
def sampled_tokens_not_seen() -> None:
    """Each pass sees token 0 in place of the token that was sampled."""

    def make(original: Any) -> Any:
        def append(self: Any, chosen: Any, logprobs: Any) -> Any:
            result = original(self, chosen, logprobs)
            self.tokens = self.tokens * 0
            return result

        return append

    patches.replace(decoding._Group, "append", make)


@GROUP.mutation("SMP-007", "DST-005")
def top_k_ignored() -> None:
    """top_k is ignored."""
    _change_rule(lambda rule: attrs.evolve(rule, top_k=-1))


@GROUP.mutation("SMP-008", "DST-007")
def top_p_ignored() -> None:
    """top_p is ignored."""
    _change_rule(lambda rule: attrs.evolve(rule, top_p=1.0))


@GROUP.mutation("SMP-009")
def seed_ignored() -> None:
    """Samples are random, whatever their seed."""
    _change_draws(lambda original, _, number, length: original(None, number, length))


@GROUP.mutation("SMP-010", "SMP-011")
def seed_constant() -> None:
    """Samples have seed 7, whatever the request has."""
    _change_draws(lambda original, _, number, length: original(7, number, length))


@GROUP.mutation("SMP-011")
def seed_constant_without_one() -> None:
    """Samples without a seed have seed 7."""
    State.derive_seed = lambda *_: 7  # type: ignore[assignment,method-assign]


@GROUP.mutation("SMP-012")
def samples_share_random_numbers() -> None:
    """All sequences of a request have the same random numbers."""

    def change(original: Any, seed: Any, number: Any, length: Any) -> Any:
        draws = original(seed, number, length)
        draws[:] = draws[0]
        return draws

    _change_draws(change)


@GROUP.mutation("SMP-013")
def last_logprob_dropped() -> None:
    """Each sequence has one logprob less than tokens."""
    change_sequences(lambda sequence: sequence.logprobs.pop() and None)


@GROUP.mutation("SMP-014")
def stop_tokens_ignored() -> None:
    """Stop tokens are ignored."""
    _change_stop(lambda stop: None if isinstance(stop, list) and stop and isinstance(stop[0], int) else stop)


@GROUP.mutation("SMP-015")
def stop_token_removed() -> None:
    """The stop token is removed from the sequence."""

    def change(sequence: Any) -> None:
        if sequence.stop_reason == "stop":
            sequence.tokens.pop()
            sequence.logprobs.pop()

    change_sequences(change)


@GROUP.mutation("SMP-016")
def stop_texts_ignored() -> None:
    """Lists of stop texts are ignored."""
    _change_stop(lambda stop: None if isinstance(stop, list) and stop and isinstance(stop[0], str) else stop)


@GROUP.mutation("SMP-017")
def single_stop_text_ignored() -> None:
    """A stop that is one text is ignored."""
    _change_stop(lambda stop: None if isinstance(stop, str) else stop)


@GROUP.mutation("SMP-018")
def empty_stop_stops() -> None:
    """An empty list of stops ends a sequence at its first token."""
    _change_stop(lambda stop: list(range(256)) if stop == [] else stop)


@GROUP.mutation("SMP-019")
def max_tokens_required() -> None:
    """Asample rejects a request without max_tokens."""
    reject_samples(lambda body: body.sampling_params.max_tokens is None, 400)


@GROUP.mutation("SMP-020")
def first_chunk_only() -> None:
    """Only the first chunk of a prompt is read."""
    change_sample_request(
        lambda body: attrs.evolve(body, prompt=attrs.evolve(body.prompt, chunks=list(body.prompt.chunks[:1])))
    )


@GROUP.mutation("SMP-021")
def no_sample_sequence_ids() -> None:
    """The response to asample has no sample_sequence_ids."""
    patches.replace(handlers, "queue_response", lambda original: lambda request_id, **_: original(request_id))


@GROUP.mutation("SMP-022")
def stability_info_rejected() -> None:
    """Asample rejects record_stability_info."""
    reject_samples(lambda body: bool(body.record_stability_info))


@GROUP.mutation("SMP-023")
def cache_hits_too_many() -> None:
    """More prompt tokens hit the cache than the prompt has."""

    def make(original: Any) -> Any:
        return lambda body, samples: attrs.evolve(original(body, samples), prompt_cache_hit_tokens=999)

    patches.replace(handlers, "_to_response", make)


@GROUP.mutation("SMP-024", "SPL-011")
def samples_without_session_differ() -> None:
    """Samples without a sampling session read another prompt."""
    change_sample_request(lambda body: body if body.sampling_session_id else attrs.evolve(body, prompt=_ints(1, 2, 3)))


@GROUP.mutation("BAD-018", "SMP-025")
def images_crash() -> None:
    """A prompt with an image is answered with 500."""
    reject_samples(lambda body: any(hasattr(chunk, "expected_tokens") for chunk in body.prompt.chunks), 500)


@GROUP.mutation("BAD-018", "SMP-026")
def empty_prompt_crashes() -> None:
    """An empty prompt is answered with 500."""
    reject_samples(lambda body: not any(len(getattr(chunk, "tokens", [1])) for chunk in body.prompt.chunks), 500)


@GROUP.mutation("SMP-027")
def context_exceeded() -> None:
    """The sequences after a long prompt are three times as long as the context allows."""

    def change(body: Any, samples: Any) -> None:
        if sum(len(getattr(chunk, "tokens", None) or ()) for chunk in body.prompt.chunks) > LONG_PROMPT:
            for sequence in samples.sequences:
                sequence.tokens *= 3
                sequence.logprobs *= 3

    change_samples(change)


@GROUP.mutation("SMP-028")
def long_prompts_cut() -> None:
    """A prompt beyond the context is replaced by a short one."""

    def is_long(body: Any) -> bool:
        return sum(len(getattr(chunk, "tokens", None) or ()) for chunk in body.prompt.chunks) > CONTEXT

    change_sample_request(lambda body: attrs.evolve(body, prompt=_ints(1, 2, 3)) if is_long(body) else body)


@GROUP.mutation("SMP-099", "BAT-004")
def unknown_tokens_replaced() -> None:
    """Tokens of a prompt that are outside the vocabulary are replaced by 0."""

    def change(body: Any) -> Any:
        if len(body.prompt.chunks) != 1 or getattr(body.prompt.chunks[0], "tokens", None) is None:
            return body
        tokens = [token if 0 <= token < 256 else 0 for token in body.prompt.chunks[0].tokens]
        return attrs.evolve(body, prompt=_ints(*tokens))

    change_sample_request(change)


@GROUP.mutation("CON-010", "DST-001", "LGP-001")
def logprobs_noisy() -> None:
    """The logprobs of sampled tokens are too low by random numbers up to 0.2."""

    def change(sequence: Any) -> None:
        sequence.logprobs[:] = [value - 0.2 * random.random() for value in sequence.logprobs]

    change_sequences(change)


@GROUP.mutation("DST-002")
def distribution_distorted() -> None:
    """Random numbers are raised to the power of 1.3."""
    _change_draws(lambda original, seed, number, length: original(seed, number, length) ** 1.3)


@GROUP.mutation("DST-003")
def low_temperature_squared() -> None:
    """A temperature below 1 is squared."""
    _change_rule(lambda rule: attrs.evolve(rule, temperature=min(rule.temperature, rule.temperature**2)))


@GROUP.mutation("DST-004")
def high_temperature_ignored() -> None:
    """A temperature above 1 is 1."""
    _change_rule(lambda rule: attrs.evolve(rule, temperature=min(1.0, rule.temperature)))


@GROUP.mutation("DST-005")
def top_k_doubled() -> None:
    """Twice as many tokens as top_k come."""
    _change_rule(lambda rule: attrs.evolve(rule, top_k=rule.top_k * 2 if rule.top_k > 1 else rule.top_k))


def _flatten(is_flattened: Callable[[Any], bool]) -> None:
    _change_rule(lambda rule: attrs.evolve(rule, temperature=1.7) if rule.temperature and is_flattened(rule) else rule)


@GROUP.mutation("DST-006")
def top_k_flattened() -> None:
    """The distribution is flatter if top_k is set."""
    _flatten(lambda rule: rule.top_k != -1)


@GROUP.mutation("DST-007")
def top_p_larger() -> None:
    """top_p is larger by 0.1."""
    _change_rule(lambda rule: attrs.evolve(rule, top_p=min(1.0, rule.top_p + 0.1) if rule.top_p > 0.1 else rule.top_p))


@GROUP.mutation("DST-008")
def top_p_smaller() -> None:
    """top_p is smaller by 0.1."""
    _change_rule(lambda rule: attrs.evolve(rule, top_p=rule.top_p - 0.1 if 0.1 < rule.top_p < 1 else rule.top_p))


@GROUP.mutation("DST-004", "DST-008", "DST-009")
def samples_in_pairs() -> None:
    """Of many sequences, pairs have the same random numbers."""

    def change(original: Any, seed: Any, number: Any, length: Any) -> Any:
        draws = original(seed, number, length)
        if number > MANY_SAMPLES:
            draws[1::2] = draws[: number - 1 : 2]
        return draws

    _change_draws(change)
