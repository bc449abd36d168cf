"""Splitting a batch into requests that a server accepts, in order."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

import attrs

from tinkerwire_base.validators import require_int
from tinkerwire_generated import models

from .._futures.operation_trace import OperationTrace
from .._usage import known_length
from .request_size import RequestSize, count_indices


@attrs.frozen(kw_only=True)
class ChunkLimits:
    """Limits of one forward or forward_backward request.

    A single datum beyond a limit is sent alone in a request: the server decides about it.

    Raises:
        TypeError: a limit is not an int.
        ValueError: a limit is below 1.
    """

    max_datums: int = 128
    """Maximum number of datums."""
    max_values: int = 500_000
    """Maximum number of values: tokens of the inputs plus stored tensor elements."""
    max_body_bytes: int = 5_000_000
    """Maximum number of bytes of the body in the form in which it is sent, before compression."""

    def __attrs_post_init__(self) -> None:
        for name, limit in attrs.asdict(self).items():
            require_int(f"ChunkLimits.{name}", limit)
            if limit < 1:
                raise ValueError(f"ChunkLimits.{name} must be at least 1, got {limit}")

    def within(self, config: models.ClientConfigResponse) -> ChunkLimits:
        """Return the tighter of these limits and those in the server's client/config."""
        return ChunkLimits(
            max_datums=max(1, min(self.max_datums, config.fwdbwd_max_chunk_len)),
            max_values=self.max_values,
            max_body_bytes=max(1, min(self.max_body_bytes, config.fwdbwd_max_chunk_bytes_count)),
        )


def split_batch(
    data: Sequence[models.Datum], limits: ChunkLimits, size: RequestSize, around: int = 0
) -> Iterator[list[models.Datum]]:
    """Yield the chunks of a batch: consecutive, not empty, each as large as the limits allow.

    Args:
        data: the batch.
        limits: the limits of one request.
        size: counts the bytes of datums.
        around: number of bytes of a request without its datums.
    """
    chunk: list[models.Datum] = []
    # Upper bounds of the datums at the end of the chunk that were not measured.
    bounds: list[int] = []
    chunk_values = chunk_bytes = 0
    for datum in data:
        values, weight, is_bound = count_values(datum), size.bound(datum), True
        is_full = len(chunk) >= limits.max_datums or chunk_values + values > limits.max_values
        if chunk and not is_full and around + chunk_bytes + weight > limits.max_body_bytes:
            # Bounds may be far too high: only here is it worth the time to count.
            unmeasured = chunk[len(chunk) - len(bounds) :]
            chunk_bytes += sum(map(size.measure, unmeasured)) - sum(bounds)
            bounds, weight, is_bound = [], size.measure(datum), False
            is_full = around + chunk_bytes + weight > limits.max_body_bytes
        if chunk and is_full:
            yield chunk
            chunk, chunk_values, chunk_bytes, bounds = [], 0, 0, []
        if is_bound:
            bounds.append(weight)
        chunk.append(datum)
        chunk_values, chunk_bytes = chunk_values + values, chunk_bytes + weight
    if chunk:
        yield chunk


def count_values(datum: models.Datum) -> int:
    """Return the number of values in a datum: tokens of its input, and elements and indices that its tensors store.

    An image of unknown length counts as 0 tokens: the limit is the client's own.
    """
    stored = sum(len(tensor.raw) + count_indices(tensor) for tensor in datum.loss_fn_inputs.values())
    return known_length(datum.model_input) + stored


def mark_split(
    trace: OperationTrace,
    batch: models.ForwardBackwardInput,
    chunks: int,
    limits: ChunkLimits,
    config: models.ClientConfigResponse,
) -> None:
    """Record how large a batch is, in how many chunks it goes out, and why.

    Args:
        trace: the trace of its operation.
        batch: the batch.
        chunks: number of its chunks.
        limits: the limits in use.
        config: the server's client/config, with its own limits.
    """
    loss = str(batch.loss_fn)
    if batch.loss_fn_config:  # only whether two calls have the same one matters
        loss += f"#{zlib.crc32(repr(sorted(batch.loss_fn_config.items())).encode()):08x}"
    sizes = len(batch.data), sum(map(count_values, batch.data)), chunks
    trace.add(
        "split",
        *sizes,
        *attrs.astuple(limits),
        config.fwdbwd_max_chunk_len,
        config.fwdbwd_max_chunk_bytes_count,
        loss,
    )
