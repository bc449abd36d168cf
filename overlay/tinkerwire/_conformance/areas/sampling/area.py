"""The area of samples, with what its requirements share."""

from __future__ import annotations

import string

from ...requirement import Area
from ...subject.sampler import OpenSampler
from ...subject.server import Server
from ...violation import expect

AREA = Area("SMP", "sampling", "Samples: their number, length and end, and the parameters of sampling")
LENGTH = 16
"""Tokens of samples that have to differ, or to be equal."""
STOP_TEXTS = [*string.ascii_letters, *string.digits, *string.punctuation, " ", "\n"]
"""Stop texts of which any model soon samples one."""


async def greedy_tokens(sampler: OpenSampler) -> list[int]:
    """Return the tokens of a sample at temperature 0."""
    response = await sampler.sample(temperature=0, max_tokens=LENGTH)
    return list(response.sequences[0].tokens)


async def expect_greedy(server: Server, **settings: object) -> None:
    """Raise Violation unless a sample with some settings has the tokens of temperature 0."""
    sampler = await server.base_sampler()
    expected = await greedy_tokens(sampler)
    result = await server.futures.run(sampler.sample_call(max_tokens=LENGTH, **settings))  # type: ignore[arg-type]
    tokens = list(result.value.sequences[0].tokens)
    expect(tokens == expected, f"{expected}, as with temperature 0", f"{tokens}", result.exchange)
