"""Token counters, for estimating cost."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import attrs

from tinkerwire_base.html_repr import HtmlRepr
from tinkerwire_base.list_array import stored_length
from tinkerwire_generated import models

from ._futures.logger import log
from ._futures.operation_trace import OperationTrace


@attrs.frozen(kw_only=True)
class Usage(HtmlRepr):
    """Number of tokens in the results so far, without those of failed operations and of samples that were retried."""

    trained_tokens: int = 0
    """Tokens of model inputs of forward_backward."""
    forward_tokens: int = 0
    """Tokens of model inputs of forward. A custom loss runs a forward and a forward_backward."""
    prompt_tokens: int = 0
    """Tokens of prompts; a prompt counts once for all its samples."""
    cached_prompt_tokens: int = 0
    """Prompt tokens that the server reported as cached."""
    sampled_tokens: int = 0
    """Tokens of all samples."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            trained_tokens=self.trained_tokens + other.trained_tokens,
            forward_tokens=self.forward_tokens + other.forward_tokens,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            cached_prompt_tokens=self.cached_prompt_tokens + other.cached_prompt_tokens,
            sampled_tokens=self.sampled_tokens + other.sampled_tokens,
        )


class UsageCounter:
    """Counter of one client, and of its service as parent. Written on the loop thread, read on any."""

    def __init__(self, parent: UsageCounter | None = None) -> None:
        self.usage = Usage()
        self._parent = parent

    def add(self, usage: Usage) -> None:
        """Add usage to this counter and its parent."""
        self.usage += usage
        if self._parent is not None:
            self._parent.add(usage)

    def add_batch(self, data: Iterable[models.Datum], *, backward: bool, trace: OperationTrace | None = None) -> None:
        """Count a batch, also in the trace of its operation; log an error while counting, and lose no result."""
        try:
            usage = usage_of_batch(data, backward=backward)
            self.add(usage)
            if trace is not None:
                trace.input_tokens += usage.trained_tokens + usage.forward_tokens
        except Exception as error:
            log.warning("usage: a batch could not be counted: %r", error)

    def add_sample(
        self, prompt: models.ModelInput, response: models.SampleResponse, trace: OperationTrace | None = None
    ) -> None:
        """Count a prompt and its samples, also in the trace of the operation; see :meth:`add_batch`."""
        try:
            usage = usage_of_sample(prompt, response)
            self.add(usage)
            if trace is not None:
                trace.input_tokens, trace.cached_tokens = usage.prompt_tokens, usage.cached_prompt_tokens
                trace.output_tokens = usage.sampled_tokens
        except Exception as error:
            log.warning("usage: a sample could not be counted: %r", error)


def usage_of_batch(data: Iterable[models.Datum], *, backward: bool) -> Usage:
    """Return the usage of a batch."""
    tokens = sum(known_length(datum.model_input) for datum in data)
    return Usage(trained_tokens=tokens) if backward else Usage(forward_tokens=tokens)


def usage_of_sample(prompt: models.ModelInput, response: models.SampleResponse) -> Usage:
    """Return the usage of a prompt and its samples."""
    return Usage(
        prompt_tokens=known_length(prompt),
        cached_prompt_tokens=response.prompt_cache_hit_tokens or 0,
        sampled_tokens=sum(stored_length(sequence, "tokens") or 0 for sequence in response.sequences),
    )


def exact_length(prompt: models.ModelInput) -> int | None:
    """Return the number of tokens of a prompt; None if only the server knows the length of an image."""
    try:
        return int(prompt.length)
    except ValueError:
        return None


def known_length(prompt: models.ModelInput) -> int:
    """Return the number of tokens of a prompt; an image counts with its expected length, or as 0 without one."""
    total = 0
    for chunk in prompt.chunks:
        with suppress(ValueError):
            total += chunk.length
    return total
