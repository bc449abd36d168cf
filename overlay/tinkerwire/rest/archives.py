"""Where a checkpoint can be fetched as one archive: the address that a server redirects to, which is not fetched."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime

from tinkerwire_base.call import WireResponse, response_info
from tinkerwire_base.errors import APIResponseValidationError, APIStatusError
from tinkerwire_base.vocabulary import dialect_error
from tinkerwire_generated.api.runs import get_checkpoint_archive_url
from tinkerwire_generated.models import CheckpointArchiveUrlResponse
from tinkerwire_generated.times import OPERATION_TIMES

from ..sending.backpressure import Traffic
from ..sending.connection import Connection

ARCHIVE_LIFE = timedelta(minutes=15)
"""How long an address lasts when the server does not say."""

NOT_SO = 405
"""What a server answers that has something else at the address: deleting, since there are no archives."""


async def archive_url(connection: Connection, training_run_id: str, checkpoint_id: str) -> CheckpointArchiveUrlResponse:
    """The address, and until when it lasts; wire versions before 0.36.0.

    Raises:
        DialectError: the server has no such call, by its wire version or by what it answers.
    """
    call = get_checkpoint_archive_url(training_run_id, checkpoint_id)
    request = connection.encode(call, await connection.dialect())
    in_body = connection.reader(call, request)

    def read(answer: WireResponse) -> CheckpointArchiveUrlResponse:
        return (None if answer.status == 302 else in_body(answer)) or _moved_to(answer)

    try:
        return await connection.send(request, read, Traffic.REST)
    except APIStatusError as fault:
        if fault.status_code != NOT_SO:
            raise
        name, dialect = call.operation.name, await connection.dialect()
        odd = dialect_error(
            f"the call {name}, which the server answers with HTTP {NOT_SO},",
            dialect.ceiling,
            *OPERATION_TIMES[name],
            name="the wire of this server",
        )
        odd.dialect = dialect
        raise odd from fault


def _moved_to(answer: WireResponse) -> CheckpointArchiveUrlResponse:
    location = answer.headers.get("location")
    if not location:
        raise APIResponseValidationError(
            response_info(answer), message=f"get_checkpoint_archive_url: HTTP {answer.status} names no Location"
        )
    return CheckpointArchiveUrlResponse(url=location, expires=_expires(answer.headers.get("expires")))


def _expires(text: str | None) -> datetime:
    try:
        found = parsedate_to_datetime(text or "")
    except ValueError:
        return datetime.now(timezone.utc) + ARCHIVE_LIFE
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)
