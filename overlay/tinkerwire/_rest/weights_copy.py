"""Copies of saved weights of other users."""

from __future__ import annotations

from tinkerwire_generated import models
from tinkerwire_generated.api.weights import copy_weights
from tinkerwire_generated.availability import PARAMETER_VERSIONS

from .._connection.connection import Connection
from .._session.session import Session
from .._transport.backpressure import Traffic

TOKEN_HEADER = "X-Tinker-Weights-Access-Token"


async def copy_weights_to_project(
    connection: Connection,
    path: str,
    project_id: str | None,
    ttl_seconds: int | None,
    token: str | None,
    *,
    session: Session | None = None,
) -> str:
    """Copy the weights at ``path`` into a project, and return the path of the copy.

    Before wire 0.34.0 the copy belongs to a session, whose project it is in, and the token is part of the body.

    Raises:
        ValueError: the wire version requires a project, and none is set; nothing was sent.
        DialectError: the wire version has no such call, or needs a session.
    """
    dialect = await connection.dialect()
    if dialect.may_have(PARAMETER_VERSIONS["copy_weights"][TOKEN_HEADER]):
        if not project_id:
            raise ValueError("copy_weights: the destination project is missing; give its id, or set TINKER_PROJECT_ID")
        body = models.CopyWeightsRequest(source_path=path, destination_project_id=project_id, ttl_seconds=ttl_seconds)
        headers = {TOKEN_HEADER.lower(): token} if token else {}
    else:
        body = models.CopyWeightsRequest(
            source_path=path,
            session_id=await session.id() if session else None,
            model_seq_id=session.next_model_seq_id() if session else None,
            ttl_seconds=ttl_seconds,
            weights_access_token=token,
        )
        headers = {}
    call = copy_weights(body=body)
    request = connection.codec.encode(call, dialect, headers)
    return (await connection.send(request, connection.codec.reader(call, request), Traffic.REST)).tinker_path
