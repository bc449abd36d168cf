"""Submission of one operation, in a body form that the server accepts."""

from __future__ import annotations

from tinkerwire_base.call import Call, WireRequest, WireResponse
from tinkerwire_base.errors import APIStatusError, SequenceConflictError, TinkerError
from tinkerwire_generated import models

from .._connection.connection import Connection
from .._connection.send_options import OnRetry
from .._transport.backpressure import Traffic
from .._wire.dialect import BATCH_OPERATIONS, Dialect
from .._wire.server_futures import Submission
from .body_forms import BodyForms, ResponseReader
from .sequence_conflict import sequence_conflict


async def submit(
    connection: Connection,
    call: Call[models.UntypedAPIFuture],
    seq_id: int,
    on_retry: OnRetry,
    raise_immediately: tuple[type[TinkerError], ...],
) -> Submission:
    """Send an operation on a model; resend a batch in its other body form if the server rejects one form.

    Later batches use the form that the server accepted.

    Args:
        connection: the connection to the server.
        call: the operation.
        seq_id: the seq_id of the call.
        on_retry: called with each error that is retried, see :meth:`Connection.send`.
        raise_immediately: errors that are not retried.

    Raises:
        SequenceConflictError: the server expects another seq_id.
        DialectError: the wire version in use does not have the call or one of its fields; nothing was sent.
        TinkerError: the last attempt failed; if the server rejected both forms, the text has both errors.
    """

    def create_reader(request: WireRequest) -> ResponseReader:
        parse = connection.codec.submission_reader(call, request)

        def read(response: WireResponse) -> Submission:
            try:
                return parse(response)
            except APIStatusError as error:
                raise sequence_conflict(error, seq_id) or error from error.__cause__

        return read

    immediate = (*raise_immediately, SequenceConflictError)
    dialect = await connection.dialect()
    if call.operation.name not in BATCH_OPERATIONS or dialect.is_fixed:
        request = connection.codec.encode(call, dialect)
        return await connection.send(
            request,
            create_reader(request),
            Traffic.TRAINING,
            raise_immediately=immediate,
            on_retry=on_retry,
            is_in_line=True,
        )

    async def send_batch(dialect: Dialect) -> Submission:
        forms = BodyForms(connection, call, dialect, create_reader)
        first = forms.current
        try:
            submission = await connection.send(
                first.request,
                first.read,
                Traffic.TRAINING,
                raise_immediately=immediate,
                on_retry=on_retry,
                replace=forms.next_request,
            )
        except TinkerError as error:
            raised = forms.final_error(error)
            if raised is error:
                raise
            raise raised from None
        forms.mark_accepted()
        return submission

    if not dialect.is_provisional:
        return await send_batch(dialect)
    async with connection.dialects.trial():
        return await send_batch(await connection.dialect())
