"""Splitting a batch into requests that a server accepts, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from tinkerwire_base.validators import require_int
from tinkerwire_generated.models import ClientConfigResponse, Datum

from .._usage import known_length
from .request_size import RequestSize, indices_in


@attrs.frozen(kw_only=True)
class ChunkLimits:
    """Limits of one forward or forward_backward request.

    A single example beyond a limit still goes out, in a request of its own: the server decides about it.
    """

    datums: int = 128
    """Examples per request."""
    numbers: int = 500_000
    """Tokens plus stored tensor elements per request."""
    body_bytes: int = 5_000_000
    """Bytes of a request's body in the form in which it is sent, before compression."""

    def __attrs_post_init__(self) -> None:
        for name, limit in attrs.asdict(self).items():
            require_int(f"ChunkLimits.{name}", limit)
            if limit < 1:
                raise ValueError(f"ChunkLimits.{name} must be positive, got {limit}")

    def within(self, config: ClientConfigResponse) -> ChunkLimits:
        """Return these limits, or those that the server wants where they are tighter."""
        return ChunkLimits(
            datums=max(1, min(self.datums, config.fwdbwd_max_chunk_len)),
            numbers=self.numbers,
            body_bytes=max(1, min(self.body_bytes, config.fwdbwd_max_chunk_bytes_count)),
        )


def split(data: Sequence[Datum], limits: ChunkLimits, size: RequestSize, around: int = 0) -> Iterator[list[Datum]]:
    """Yield the chunks of a batch: consecutive, none empty, each as large as the limits allow.

    Args:
        data: the batch.
        limits: what a request may hold.
        size: counts the bytes of examples.
        around: how many bytes a request takes without its examples.
    """
    chunk: list[Datum] = []
    # The bounds of the examples at the end of the chunk that were not measured.
    bounds: list[int] = []
    numbers = held = 0
    for datum in data:
        more, weight, is_bound = numbers_in(datum), size.bound(datum), True
        is_full = len(chunk) >= limits.datums or numbers + more > limits.numbers
        if chunk and not is_full and around + held + weight > limits.body_bytes:
            # Bounds may be far too high: only here is it worth the time to count.
            unmeasured = chunk[len(chunk) - len(bounds) :]
            held += sum(map(size.measure, unmeasured)) - sum(bounds)
            bounds, weight, is_bound = [], size.measure(datum), False
            is_full = around + held + weight > limits.body_bytes
        if chunk and is_full:
            yield chunk
            chunk, numbers, held, bounds = [], 0, 0, []
        if is_bound:
            bounds.append(weight)
        chunk.append(datum)
        numbers, held = numbers + more, held + weight
    if chunk:
        yield chunk


def numbers_in(datum: Datum) -> int:
    """Return how many numbers an example holds: tokens of its input, and elements and indices that tensors store.

    An image of unknown length counts as nothing: the limit is the client's own.
    """
    stored = sum(len(tensor.raw) + indices_in(tensor) for tensor in datum.loss_fn_inputs.values())
    return known_length(datum.model_input) + stored
