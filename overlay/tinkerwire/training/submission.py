"""One operation on its way to the server, in the form of body that this one takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinkerwire_base.call import Call, WireResponse
from tinkerwire_base.errors import APIStatusError, SequenceConflictError, TinkerError
from tinkerwire_generated.models import UntypedAPIFuture

from ..sending.backpressure import Traffic
from ..sending.connection import Connection
from ..wire.dialect import BATCHES, Dialect
from ..wire.server_futures import Submission
from .sequence_conflict import sequence_conflict

OnFault = Callable[[TinkerError, float], Any]


async def submit(
    connection: Connection,
    call: Call[UntypedAPIFuture],
    seq_id: int,
    on_fault: OnFault,
    not_here: tuple[type[TinkerError], ...],
) -> Submission:
    """Send an operation on a model; one that may have another form is tried in that, if the server refuses it.

    What the first batch tells of the server's forms is kept for all that follow. ``on_fault`` and ``not_here`` are
    those of :meth:`Connection.send`.

    Raises:
        SequenceConflictError: the server expects another seq_id than that of the call.
        DialectError: the wire version in use does not have the call or a field of it; nothing was sent.
        TinkerError: what the last attempt met.
    """
    dialect = await connection.dialect()
    try:
        answer = await _sent(connection, call, dialect, seq_id, on_fault, not_here)
    except APIStatusError as refusal:
        other = dialect.other_bodies(call, refusal.status_code)
        if other is None:
            raise
        try:
            answer = await _sent(connection, call, other, seq_id, on_fault, not_here)
        except (TinkerError, ValueError, TypeError) as fault:
            if isinstance(fault, APIStatusError) and fault.status_code == 415:
                connection.dialects.known = dialect.confirmed()
            raise refusal from fault
        dialect = other
    if call.operation.name in BATCHES:
        connection.dialects.known = dialect.confirmed()
    return answer


async def _sent(
    connection: Connection,
    call: Call[UntypedAPIFuture],
    dialect: Dialect,
    seq_id: int,
    on_fault: OnFault,
    not_here: tuple[type[TinkerError], ...],
) -> Submission:
    request = connection.encode(call, dialect)
    parse = connection.submission_reader(call, request)

    def read(response: WireResponse) -> Submission:
        try:
            return parse(response)
        except APIStatusError as error:
            raise sequence_conflict(error, seq_id) or error from error.__cause__

    at_once = (*not_here, SequenceConflictError)
    return await connection.send(request, read, Traffic.TRAINING, not_here=at_once, on_fault=on_fault)
