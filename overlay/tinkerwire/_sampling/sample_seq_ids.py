"""Seq_ids of samples: each copy of a sampling client counts in its own range, so that no two samples share an id."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Coroutine
from typing import Any

from tinkerwire_base.errors import APIStatusError
from tinkerwire_generated import models
from tinkerwire_generated.api.sampling import join_sampling_session
from tinkerwire_generated.constants import SEQ_IDS_PER_COPY

from .._connection.connection import Connection
from .._connection.dialect_resolver import ENDPOINT_MISSING
from .._transport.backpressure import Traffic


class SampleSeqIds:
    """The seq_ids of one client. Used on the loop thread.

    Args:
        join: returns the number of the copy, before its first sample; None for the original client.
    """

    def __init__(self, join: Callable[[], Coroutine[Any, Any, int]] | None = None) -> None:
        self.copy_number: int | None = None if join else 0
        """Number of the copy; None while it is unknown."""
        self._ids = itertools.count()
        self._join = join

    async def join(self) -> None:
        """Learn the number of the copy, unless it is known.

        Raises:
            TinkerError: the copy could not join the sampling session.
        """
        if self.copy_number is None:
            assert self._join is not None
            copy_number = await self._join()
            self._ids = itertools.count(copy_number * SEQ_IDS_PER_COPY)
            self.copy_number = copy_number

    def next(self) -> int:
        """Return the seq_id of the next sample, after :meth:`join`."""
        assert self.copy_number is not None
        return next(self._ids)


async def join_session(connection: Connection, sampling_session_id: str) -> int:
    """Return the number of a new copy: from the server if it numbers copies, otherwise random in 1..1e9."""
    dialect = await connection.dialect()
    if dialect.config.sample_join_sampling_session and dialect.may_have_operation("join_sampling_session"):
        body = models.JoinSamplingSessionRequest(sampling_session_id=sampling_session_id)
        try:
            return (await connection.call(join_sampling_session(body=body), Traffic.SESSION)).client_counter
        except APIStatusError as error:
            if error.status_code not in ENDPOINT_MISSING:
                raise
    # The module random would not do: forked processes share its state.
    return 1 + secrets.randbelow(SEQ_IDS_PER_COPY)
