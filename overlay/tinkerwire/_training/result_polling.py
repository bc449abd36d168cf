"""Polling of the results of operations on one model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from tinkerwire_generated import models

from .._connection.connection import Connection
from .._polling.pending_result import PendingResult
from .._polling.poller import Poller
from .._transport.backpressure import Traffic
from .._wire.server_futures import Submission
from .metrics import MetricWarnings, read_metrics

T = TypeVar("T")
PollTasks = list[asyncio.Task[T]]


async def poll_training_result(
    connection: Connection,
    submission: Submission,
    kind: str,
    result_type: type[T],
    warnings: MetricWarnings,
    null_defaults: Mapping[str, Any] | None = None,
) -> T:
    """Return the result of a submitted operation.

    Args:
        connection: the connection to the server.
        submission: the submitted operation.
        kind: its name in the server's metrics.
        result_type: type of the result.
        warnings: collects warnings about metrics that are not numbers.
        null_defaults: values for fields that the server sends as null.
    """
    pending = PendingResult(
        submission=submission,
        request_type=kind,
        result_type=result_type,
        traffic=Traffic.TRAINING_FUTURES,
        null_defaults=null_defaults or {},
    )
    result = await Poller(connection, pending, connection.retry).result()
    if isinstance(result, models.OptimStepResponse) and result.metrics:
        return result.model_copy(update={"metrics": read_metrics(result.metrics, warnings.warn)})
    return result


@asynccontextmanager
async def cancel_polls_at_exit() -> AsyncIterator[PollTasks[Any]]:
    """Collect the poll tasks of an operation, and cancel those that are not done when the block ends."""
    tasks: PollTasks[Any] = []
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
