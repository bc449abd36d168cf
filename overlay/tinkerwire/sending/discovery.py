"""What a server speaks, when nobody says so: one request finds out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinkerwire_base.errors import APIStatusError
from tinkerwire_generated.api.auth import client_config
from tinkerwire_generated.models import ClientConfigRequest
from tinkerwire_generated.times import NEWEST

from ..wire.dialect import Dialect, found, given
from .backpressure import Traffic

if TYPE_CHECKING:
    from .connection import Connection

ABSENT = (404, 405)
"""What a server answers to a call that it does not have."""


async def discovered(connection: Connection) -> Dialect:
    """The dialect by which a server answers client/config, or that of those without it.

    Raises:
        TinkerError: what the request met.
    """
    call = client_config(body=ClientConfigRequest(sdk_version=NEWEST))
    request = connection.encode(call, given(NEWEST))
    try:
        config = await connection.send(request, connection.reader(call, request), Traffic.SESSION)
    except APIStatusError as fault:
        if fault.status_code not in ABSENT:
            raise
        return found(None)
    return found(config)
