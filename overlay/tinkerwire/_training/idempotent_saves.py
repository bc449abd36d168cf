"""Named saves that are safe to retry: a 409 caused by an earlier attempt of the same save counts as success."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from tinkerwire_base.call import default_converter
from tinkerwire_base.errors import TinkerError
from tinkerwire_generated.api.runs import list_checkpoints

from .._connection.connection import Connection
from .._connection.retry_rules import Decision, Loop, error_types, find_rule
from .._futures.operation_record import current_operation
from .._transport.backpressure import Traffic
from .operations import Operations
from .submitter import RequestBuilder

T = TypeVar("T")


class NamedSaves:
    """Named saves of one model. Used on the loop thread."""

    def __init__(self, connection: Connection, operations: Operations) -> None:
        self._connection = connection
        self._operations = operations
        self._names: set[tuple[str, str]] = set()

    async def run(self, kind: str, segment: str, name: str, call: RequestBuilder, result_type: type[T]) -> T:
        """Save the model under a name. A result that is read from the list of checkpoints has only a path.

        Raises:
            ConflictError: another save has the name.
        """
        was_used = (segment, name) in self._names
        self._names.add((segment, name))
        try:
            return await self._operations.run(
                kind, call, result_type, raise_immediately=error_types(Loop.NAMED_SAVE, Decision.LOOK_UP)
            )
        except TinkerError as error:
            # No other client saves this model: a name that was free now belongs to the attempt whose response was lost.
            if current_operation().may_be_accepted:
                path = None
                if find_rule(Loop.NAMED_SAVE, error).decision is Decision.LOOK_UP and not was_used:
                    path = await self._find(f"{segment}/{name}")
                if path is not None:
                    result: T = default_converter().structure({"path": path}, result_type)
                    return result
            elif not was_used:
                self._names.discard((segment, name))
            raise

    def is_used(self, segment: str, name: str) -> bool:
        """Return True if this model was saved under the name before, or is being saved under it."""
        return (segment, name) in self._names

    async def _find(self, checkpoint_id: str) -> str | None:
        """Return the path of a checkpoint of the model; wait for a checkpoint that may still be written."""
        retry = self._connection.retry
        call = list_checkpoints(await self._operations.creation.watch())
        for attempt in range(1, retry.max_attempts + 1):
            try:
                response = await self._connection.call(call, Traffic.REST)
            except TinkerError:
                return None
            for checkpoint in response.checkpoints:
                if checkpoint.checkpoint_id == checkpoint_id:
                    return checkpoint.tinker_path
            await asyncio.sleep(retry.delay(attempt))
        return None
