"""Submission of a batch in chunks, and the merged result of its chunks."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

import attrs

from tinkerwire_base.call import Call
from tinkerwire_generated import models

from .._connection.connection import Connection
from .._futures.operation_record import current_operation
from .._usage import UsageCounter
from .._wire.server_futures import Submission
from .chunking import ChunkLimits, mark_split, split_batch
from .metrics import MetricWarnings
from .request_size import request_size, size_around
from .result_merging import check_all_or_none, check_outputs, merge_results
from .result_polling import PollTasks, poll_training_result
from .submitter import OperationSubmitter

ChunkRequestBuilder = Callable[[str, int, "models.ForwardBackwardInput"], Call["models.UntypedAPIFuture"]]
"""Builds the request of a chunk from the model's id, the chunk's seq_id and the chunk."""
CALL_NAMES: Mapping[str, str] = {"Forward": "forward", "ForwardBackward": "forward_backward"}
"""The contract's call for each kind of operation on a batch."""
NO_METRICS: Mapping[str, Any] = {"metrics": {}}
"""Some servers send null instead of metrics."""


class BatchSubmitter:
    """Submits batches in as many requests as the limits require, in order.

    Args:
        connection: the connection to the server.
        limits: limits of one request.
        submitter: submits each chunk.
        usage: counts the tokens of results.
        warnings: collects warnings about metrics.
    """

    def __init__(
        self,
        connection: Connection,
        limits: ChunkLimits,
        submitter: OperationSubmitter,
        usage: UsageCounter,
        warnings: MetricWarnings,
    ) -> None:
        self._connection = connection
        self._limits = limits
        self._submitter = submitter
        self._usage = usage
        self._warnings = warnings

    async def submit(
        self,
        model_id: str,
        kind: str,
        build: ChunkRequestBuilder,
        batch: models.ForwardBackwardInput,
        polls: PollTasks[models.ForwardBackwardOutput],
    ) -> list[list[models.Datum]]:
        """Send a batch and add the polls of its chunks to ``polls``; return the chunks. Only while holding the turn."""
        name, around = CALL_NAMES[kind], size_around(model_id, batch)
        dialect, remaining = None, batch.data
        planned: list[list[models.Datum]] = []
        chunks: list[list[models.Datum]] = []
        first = 0
        trace = current_operation().trace
        while remaining:
            current_dialect = await self._connection.dialect()
            if current_dialect is not dialect:
                # The first chunk may have shown which body form the server accepts for the others.
                dialect, size = current_dialect, request_size(current_dialect, name, batch.data)
                limits = self._limits.within(current_dialect.config)
                planned = list(split_batch(remaining, limits, size, around))
                current_operation().total = len(chunks) + len(planned)
                if trace is not None:
                    mark_split(trace, batch, current_operation().total, limits, current_dialect.config)
            chunk = planned.pop(0)
            remaining = remaining[len(chunk) :]
            chunks.append(chunk)
            part = attrs.evolve(batch, data=chunk)

            def build_chunk(
                model_id: str, seq_id: int, part: models.ForwardBackwardInput = part
            ) -> Call[models.UntypedAPIFuture]:
                return build(model_id, seq_id, part)

            def poll(
                submission: Submission, chunk: list[models.Datum] = chunk, first: int = first
            ) -> Coroutine[Any, Any, models.ForwardBackwardOutput]:
                return self._poll_chunk(submission, kind, chunk, first)

            polls.append(await self._submitter.start(model_id, build_chunk, poll))
            first += len(chunk)
        return chunks

    def merge(
        self, chunks: Sequence[Sequence[models.Datum]], results: Sequence[models.ForwardBackwardOutput]
    ) -> models.ForwardBackwardOutput:
        """Merge the results of a batch's chunks.

        Raises:
            APIResponseValidationError: some chunks have outputs and some do not.
        """
        check_all_or_none(chunks, results)
        return merge_results(results, [len(chunk) for chunk in chunks], self._warnings.warn)

    async def _poll_chunk(
        self, submission: Submission, kind: str, chunk: list[models.Datum], first: int
    ) -> models.ForwardBackwardOutput:
        output = await poll_training_result(
            self._connection, submission, kind, models.ForwardBackwardOutput, self._warnings, NO_METRICS
        )
        check_outputs(chunk, first, output)
        if kind == "Forward" and not output.loss_fn_outputs:
            self._connection.throttled_log.warn(
                "no outputs", "Forward: the server returned no outputs for %d datums", len(chunk)
            )
        self._usage.add_batch(chunk, backward=kind == "ForwardBackward", trace=current_operation().trace)
        return output
