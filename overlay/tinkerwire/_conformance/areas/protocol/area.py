"""The area of the protocol, and requests that its tests share."""

from typing import Any

from tinkerwire_base.call import WireRequest
from tinkerwire_generated import models
from tinkerwire_generated.api.session import create_session

from ...exchange import Exchange
from ...requirement import Area
from ...subject.server import Server

AREA = Area("PRO", "protocol", "The protocol: HTTP, media types, bodies, errors and idempotency keys")


def session_body(server: Server, **fields: Any) -> dict[str, Any]:
    """Return the JSON body of a request to create a session."""
    return {"tags": ["conformance"], "user_metadata": {}, "sdk_version": server.wire, **fields}


def session_request(server: Server) -> WireRequest:
    """Return a request to create a session, as clients send it."""
    body = models.CreateSessionRequest(tags=["conformance"], user_metadata={}, sdk_version=server.wire)
    return server.client.encode(create_session(body=body))


def adopt_session(server: Server, exchange: Exchange) -> None:
    """Finish the session of a response at the end of the run."""
    body = exchange.json()
    if exchange.status < 300 and isinstance(body, dict) and isinstance(body.get("session_id"), str):
        server.adopt_sessions([body["session_id"]])
