"""Splitting a batch into requests that a server accepts, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import attrs

from tinkerwire_base.checks import is_int
from tinkerwire_generated.models import ClientConfigResponse, Datum, TensorData

MOST_BYTES_A_NUMBER = 8
"""As a binary message."""


@attrs.frozen(kw_only=True)
class ChunkLimits:
    """How large one forward or forward_backward request may be."""

    datums: int = 128
    """Examples per request."""
    numbers: int = 500_000
    """Tokens plus tensor elements per request; a single larger example still goes out, alone."""

    def __attrs_post_init__(self) -> None:
        is_int("ChunkLimits.datums", self.datums)
        is_int("ChunkLimits.numbers", self.numbers)
        if self.datums < 1 or self.numbers < 1:
            raise ValueError(f"ChunkLimits: {self.datums} datums and {self.numbers} numbers; both must be positive")

    def within(self, config: ClientConfigResponse) -> ChunkLimits:
        """These limits, or those that the server wants where they are tighter."""
        return ChunkLimits(
            datums=max(1, min(self.datums, config.fwdbwd_max_chunk_len)),
            numbers=max(1, min(self.numbers, config.fwdbwd_max_chunk_bytes_count // MOST_BYTES_A_NUMBER)),
        )


def split(data: Sequence[Datum], limits: ChunkLimits) -> Iterator[list[Datum]]:
    """The chunks of a batch: consecutive, none empty, each as large as the limits allow."""
    chunk: list[Datum] = []
    held = 0
    for datum in data:
        size = numbers_in(datum)
        if chunk and (len(chunk) >= limits.datums or held + size > limits.numbers):
            yield chunk
            chunk, held = [], 0
        chunk.append(datum)
        held += size
    if chunk:
        yield chunk


def numbers_in(datum: Datum) -> int:
    """How many numbers an example holds: the tokens of its input and the elements of its tensors."""
    return _input_length(datum) + sum(map(_elements, datum.loss_fn_inputs.values()))


def _input_length(datum: Datum) -> int:
    try:
        return datum.model_input.length
    except ValueError:
        # An image of unknown length counts as nothing rather than as an error: the limit is the client's own.
        return sum(len(getattr(chunk, "tokens", None) or ()) for chunk in datum.model_input.chunks)


def _elements(tensor: TensorData) -> int:
    return len(tensor.raw) if tensor.shape is None else prod(tensor.shape)
