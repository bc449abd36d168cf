"""One operation on its way to the server, in the form of body that this one takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinkerwire_base.call import Call, WireRequest, WireResponse
from tinkerwire_base.errors import APIStatusError, SequenceConflictError, TinkerError
from tinkerwire_generated.models import UntypedAPIFuture

from .._connection.connection import Connection
from .._transport.backpressure import Traffic
from .._wire.dialect import BATCHES, Dialect
from .._wire.server_futures import Submission
from .body_forms import Forms, Read
from .sequence_conflict import sequence_conflict

OnRetry = Callable[[TinkerError, float], Any]


async def submit(
    connection: Connection,
    call: Call[UntypedAPIFuture],
    seq_id: int,
    on_retry: OnRetry,
    raise_immediately: tuple[type[TinkerError], ...],
) -> Submission:
    """Send an operation on a model; a batch that the server refuses in one form is tried in the other.

    Later batches use the form that a batch has shown to be supported. ``on_retry`` and ``not_here`` are those of
    :meth:`Connection.send`.

    Raises:
        SequenceConflictError: the server expects another seq_id than that of the call.
        DialectError: the wire version in use does not have the call or a field of it; nothing was sent.
        TinkerError: what the last attempt met; where both forms were refused, it has both errors in its text.
    """

    def reader(request: WireRequest) -> Read:
        parse = connection.codec.submission_reader(call, request)

        def read(response: WireResponse) -> Submission:
            try:
                return parse(response)
            except APIStatusError as error:
                raise sequence_conflict(error, seq_id) or error from error.__cause__

        return read

    at_once = (*raise_immediately, SequenceConflictError)
    dialect = await connection.dialect()
    if call.operation.name not in BATCHES or dialect.is_given:
        request = connection.codec.encode(call, dialect)
        return await connection.send(
            request, reader(request), Traffic.TRAINING, raise_immediately=at_once, on_retry=on_retry, is_in_line=True
        )

    async def send_batch(dialect: Dialect) -> Submission:
        forms = Forms(connection, call, dialect, reader)
        first = forms.current
        try:
            answer = await connection.send(
                first.request,
                first.read,
                Traffic.TRAINING,
                raise_immediately=at_once,
                on_retry=on_retry,
                replace=forms.after,
            )
        except TinkerError as error:
            raised = forms.refused(error)
            if raised is error:
                raise
            raise raised from None
        forms.accepted()
        return answer

    if not dialect.is_guess:
        return await send_batch(dialect)
    async with connection.dialects.trial():
        return await send_batch(await connection.dialect())
