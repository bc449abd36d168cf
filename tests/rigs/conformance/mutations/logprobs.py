"""Mutations of the logprobs of samples and prompts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from tinkerwire._server.handlers import sampling as handlers

from .mutation import Group
from .sampling import change_sample_request, change_samples, change_sequences

GROUP = Group("Logprobs")


def _change(name: str, change: Callable[[Any], Any]) -> None:
    def change_all(_: Any, samples: Any) -> Any:
        value = getattr(samples, name)
        return None if value is None else attrs.evolve(samples, **{name: change(value)})

    change_samples(change_all)


@GROUP.mutation("LGP-001")
def sample_logprobs_shifted() -> None:
    """The logprobs of sampled tokens are 0.01 too low."""
    change_sequences(lambda sequence: sequence.logprobs.__setitem__(slice(None), [v - 0.01 for v in sequence.logprobs]))


@GROUP.mutation("LGP-003", "LGP-006", "LGP-009")
def prompt_logprobs_shifted() -> None:
    """The logprobs of the prompt are 0.01 too low."""
    _change("prompt_logprobs", lambda values: [None if value is None else value - 0.01 for value in values])


@GROUP.mutation("LGP-004", "LGP-012")
def prompt_logprobs_always() -> None:
    """The logprobs of the prompt are returned without being asked for."""
    change_sample_request(lambda body: attrs.evolve(body, prompt_logprobs=True))


@GROUP.mutation("LGP-006")
def topk_of_next_place() -> None:
    """The top-k logprobs of the prompt are one place off."""
    _change("topk_prompt_logprobs", lambda places: [None, *places[2:], places[1]])


@GROUP.mutation("LGP-006")
def topk_of_other_tokens() -> None:
    """The top-k logprobs of the last place have other tokens."""
    _change(
        "topk_prompt_logprobs",
        lambda places: [*places[:-1], [((token + 100) % 256, value) for token, value in places[-1]]],
    )


@GROUP.mutation("LGP-007")
def topk_best_is_another() -> None:
    """The most likely token of the last place is another one, unless it is the last token of the prompt."""

    def change(body: Any, samples: Any) -> Any:
        places = samples.topk_prompt_logprobs
        if not places or not places[-1]:
            return None
        (best, value), *others = places[-1]
        taken = {best, body.prompt.to_ints()[-1], *(token for token, _ in others)}
        if best == body.prompt.to_ints()[-1]:
            return None
        other = next(token for token in range(len(taken) + 1) if token not in taken)
        return attrs.evolve(samples, topk_prompt_logprobs=[*places[:-1], [(other, value), *others]])

    change_samples(change)


@GROUP.mutation("LGP-008")
def topk_worst_first() -> None:
    """The top-k logprobs of sampled tokens begin with the worst."""

    def change(sequence: Any) -> None:
        sequence.topk_logprobs = [place[::-1] for place in sequence.topk_logprobs or []]

    change_sequences(change)


@GROUP.mutation("LGP-009")
def target_logprobs_rolled() -> None:
    """The logprobs of targets are one place off."""
    _change("target_logprobs", lambda values: np.roll(values, 1, axis=0))


@GROUP.mutation("LGP-010")
def alternatives_shifted() -> None:
    """The logprobs of alternatives are 0.1 too low."""
    _change("alternatives", lambda values: attrs.evolve(values, logprobs=values.logprobs - 0.1))


@GROUP.mutation("LGP-011")
def last_n_ignored() -> None:
    """prompt_logprobs_last_n is ignored."""
    handlers._keep_last = lambda values, _: values  # type: ignore[assignment]


@GROUP.mutation("LGP-012")
def options_unchecked() -> None:
    """Options of asample that contradict each other are accepted."""
    handlers._validate_options = lambda _: None  # type: ignore[assignment]


@GROUP.mutation("LGP-013")
def prompt_logprobs_change_sample() -> None:
    """The tokens of a sample are reversed if the logprobs of the prompt are asked for."""

    def change(body: Any, samples: Any) -> None:
        if body.prompt_logprobs:
            for sequence in samples.sequences:
                sequence.tokens.reverse()

    change_samples(change)
