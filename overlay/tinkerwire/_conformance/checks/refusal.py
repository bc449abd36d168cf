"""Refused work: responses that reject a request, or report that its work failed."""

from __future__ import annotations

from typing import Any

from tinkerwire_base.call import Call
from tinkerwire_generated import models

from ..exchange import Exchange
from ..subject.server import Server
from ..violation import Violation, expect


async def attempt(server: Server, call: Call[models.UntypedAPIFuture]) -> Exchange:
    """Return the response that rejects work, or the poll with its result or failure."""
    exchange = await server.client.send(server.client.encode(call))
    if exchange.status != 200:
        return exchange
    submission = server.futures.read_submission(call.operation.name, exchange)
    try:
        return (await server.futures.wait(submission)).exchange
    except Violation as error:
        # The form of a failure is another requirement.
        if error.exchange is None or error.exchange.status < 400:
            raise
        return error.exchange


def is_refused(exchange: Exchange) -> bool:
    """Check whether a response refuses work; raise Violation for a response that a client would retry."""
    body = exchange.json()
    if exchange.status == 200:
        return isinstance(body, dict) and "error" in body
    is_final = 400 <= exchange.status < 500 and exchange.status not in (408, 429)
    expect(is_final, "a refusal with a 4xx, or a failure", exchange.describe(), exchange)
    return True


async def expect_refusal(server: Server, call: Call[models.UntypedAPIFuture]) -> None:
    """Raise Violation unless the server refuses work, when it is submitted or later."""
    exchange = await attempt(server, call)
    expect(is_refused(exchange), "a refusal with a 4xx, or a failure", exchange.describe(), exchange)


async def expect_rejection(server: Server, call: Call[Any]) -> None:
    """Raise Violation unless the server answers a call with a 4xx as the contract has it."""
    exchange = await server.client.send(server.client.encode(call))
    expect(exchange.status >= 400 and is_refused(exchange), "a rejection with a 4xx", exchange.describe(), exchange)
    server.client.require_contract(call.operation.name, exchange)
