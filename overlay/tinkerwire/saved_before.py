"""A save that the server refuses because it has one of that name: this client's own, where an earlier try arrived."""

from __future__ import annotations

import asyncio
import time
from typing import Literal

from tinkerwire_base.errors import APIStatusError, ConflictError
from tinkerwire_generated.api.runs import list_checkpoints

from .backpressure import Traffic
from .connection import ABSENT, Connection

Kind = Literal["weights", "sampler_weights"]
TYPES = {"weights": "training", "sampler_weights": "sampler"}


class Saves:
    """The names under which one client has saved. Nobody else saves on its model, so any other name that the server
    has is from a try of which this client does not know that it arrived."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: set[tuple[Kind, str]] = set()

    def note(self, kind: Kind, name: str) -> None:
        """Remember a save that succeeded."""
        self._known.add((kind, name))

    async def path_of(self, model_id: str, kind: Kind, name: str, fault: ConflictError) -> str:
        """The path of the save that an earlier try of the same request made.

        Raises:
            ConflictError: the given one, where an earlier save of this client has the name, or nothing appears under
                it within RetryConfig.max_elapsed.
        """
        if (kind, name) in self._known:
            raise fault
        policy, started, attempt = self._connection.retry, time.monotonic(), 0
        while True:
            attempt += 1
            try:
                found = await self._connection.call(list_checkpoints(model_id), Traffic.REST)
            except APIStatusError as missing:
                if missing.status_code in ABSENT:
                    return f"tinker://{model_id}/{kind}/{name}"
                raise
            for each in found.checkpoints:
                if each.checkpoint_type == TYPES[kind] and each.tinker_path.rpartition("/")[2] == name:
                    return each.tinker_path
            # It may still be on its way to the disk.
            wait = policy.delay(attempt)
            if time.monotonic() + wait - started > policy.max_elapsed:
                raise fault
            await asyncio.sleep(wait)
