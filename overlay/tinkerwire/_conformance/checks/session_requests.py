"""Requests to create a session in any form; the sessions that they create are finished at the end of the run."""

from __future__ import annotations

from typing import Any

from tinkerwire_base.call import WireRequest
from tinkerwire_generated import models
from tinkerwire_generated.api.session import create_session

from ..exchange import Exchange
from ..subject.server import Server
from ..violation import expect


def session_body(server: Server, **fields: Any) -> dict[str, Any]:
    """Return the JSON body of a request to create a session."""
    return {"tags": ["conformance"], "user_metadata": {}, "sdk_version": server.wire, **fields}


def session_request(server: Server) -> WireRequest:
    """Return a request to create a session, as clients send it."""
    return server.client.encode(create_session(body=models.CreateSessionRequest(**session_body(server))))


def plain_session_request(server: Server, body: Any) -> WireRequest:
    """Return a request to create a session with any JSON body, valid or not."""
    return server.client.json_request("POST", "create_session", body)


async def try_session(server: Server, request: WireRequest, *, is_chunked: bool = False) -> Exchange:
    """Send a request to create a session, and return what came back, whatever it is."""
    exchange = await server.client.send(request, is_chunked=is_chunked)
    session_id = exchange.member("session_id")
    if exchange.is_success and isinstance(session_id, str):
        server.sessions.adopt(session_id)
    return exchange


async def expect_session(server: Server, request: WireRequest, *, is_chunked: bool = False) -> str:
    """Send a request to create a session, and return its id; raise Violation without one."""
    exchange = await try_session(server, request, is_chunked=is_chunked)
    expect(exchange.is_success, "a session", exchange.describe(), exchange)
    session_id = exchange.member("session_id")
    expect(isinstance(session_id, str), "a session_id", exchange.describe(), exchange)
    return str(session_id)
