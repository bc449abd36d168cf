"""How much a client has used so far: the tokens that prices go by, counted from results."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import attrs

from tinkerwire_base.list_array import length
from tinkerwire_generated.models import Datum, ModelInput, SampleResponse

from ._futures.reporting import log


@attrs.frozen(kw_only=True)
class Usage:
    """Tokens of the results that have arrived. Failed operations, and samples that were drawn again, are not in it."""

    trained_tokens: int = 0
    """Tokens of model inputs that went through forward_backward."""
    forward_tokens: int = 0
    """Those that went through forward alone; a loss of one's own takes one of each."""
    prompt_tokens: int = 0
    """Tokens of prompts, each prompt once, however many samples it got."""
    cached_prompt_tokens: int = 0
    """How many of those the server had at hand, as far as it says so."""
    sampled_tokens: int = 0
    """Tokens of all samples."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            **{each.name: getattr(self, each.name) + getattr(other, each.name) for each in attrs.fields(Usage)}
        )


class UsageCounter:
    """Adds usage up, for one client and for the service that it is of. Written on the loop thread, read on any."""

    def __init__(self, whole: UsageCounter | None = None) -> None:
        self.usage = Usage()
        self._whole = whole

    def add(self, more: Usage) -> None:
        """Count something."""
        self.usage += more
        if self._whole is not None:
            self._whole.add(more)

    def add_batch(self, data: Iterable[Datum], *, backward: bool) -> None:
        """Count a batch; what cannot be counted costs no result."""
        try:
            self.add(usage_of_batch(data, backward=backward))
        except Exception as error:
            log.warning("usage: a batch could not be counted: %r", error)

    def add_sample(self, prompt: ModelInput, response: SampleResponse) -> None:
        """Count a prompt and its samples; what cannot be counted costs no result."""
        try:
            self.add(usage_of_sample(prompt, response))
        except Exception as error:
            log.warning("usage: a sample could not be counted: %r", error)


def usage_of_batch(data: Iterable[Datum], *, backward: bool) -> Usage:
    """What a batch uses."""
    tokens = sum(known_length(datum.model_input) for datum in data)
    return Usage(trained_tokens=tokens) if backward else Usage(forward_tokens=tokens)


def usage_of_sample(prompt: ModelInput, response: SampleResponse) -> Usage:
    """What a prompt and its samples use."""
    return Usage(
        prompt_tokens=known_length(prompt),
        cached_prompt_tokens=response.prompt_cache_hit_tokens or 0,
        sampled_tokens=sum(length(sequence, "tokens") or 0 for sequence in response.sequences),
    )


def exact_length(prompt: ModelInput) -> int | None:
    """Its tokens; None where only the server knows how many an image is."""
    try:
        return int(prompt.length)
    except ValueError:
        return None


def known_length(prompt: ModelInput) -> int:
    """Return its tokens; an image counts as what was expected of it, and as nothing where that was not said."""
    total = 0
    for chunk in prompt.chunks:
        with suppress(ValueError):
            total += chunk.length
    return total
