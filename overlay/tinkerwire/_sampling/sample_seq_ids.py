"""The numbers of samples: each copy of a sampling client counts in a range of its own, so that none collide."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Coroutine
from typing import Any

from tinkerwire_base.errors import APIStatusError
from tinkerwire_generated.api.sampling import join_sampling_session
from tinkerwire_generated.models import JoinSamplingSessionRequest

from .._connection.connection import Connection
from .._connection.dialect_resolver import ENDPOINT_MISSING
from .._futures.single_flight import SingleFlight
from .._transport.backpressure import Traffic

RANGE = 1_000_000_000
"""Seq_ids of one copy: copy 3 counts from 3 times this; the client itself is copy 0."""


class SampleSeqIds:
    """The seq_ids of one client. Used on the loop thread.

    Args:
        ask: finds out which copy the client is, before its first sample; None for the client that is no copy.
    """

    def __init__(self, ask: Callable[[], Coroutine[Any, Any, int]] | None = None) -> None:
        self.clone_id: int | None = None if ask else 0
        """Which copy the client is; None while that is not known."""
        self._ids = itertools.count()
        self._ask = ask
        self._known = SingleFlight(self._find_out)

    async def next(self) -> int:
        """The number of the next sample."""
        if self.clone_id is None:
            await self._known.get()
        return next(self._ids)

    async def _find_out(self) -> None:
        assert self._ask is not None
        clone_id = await self._ask()
        self._ids = itertools.count(clone_id * RANGE)
        self.clone_id = clone_id


async def join(connection: Connection, sampling_session_id: str) -> int:
    """The number of a new copy: the server's where it gives numbers, by chance from a thousand million elsewhere."""
    dialect = await connection.dialect()
    if dialect.config.sample_join_sampling_session and dialect.may_have_operation("join_sampling_session"):
        body = JoinSamplingSessionRequest(sampling_session_id=sampling_session_id)
        try:
            return (await connection.call(join_sampling_session(body=body), Traffic.SESSION)).client_counter
        except APIStatusError as error:
            if error.status_code not in ENDPOINT_MISSING:
                raise
    # Not of the module random, whose state forked processes have in common.
    return 1 + secrets.randbelow(RANGE)
