"""Rejected work: a 4xx for its submission, or a future that fails."""

from __future__ import annotations

from typing import Any

import attrs

from tinkerwire_base.call import Call, WireRequest
from tinkerwire_generated import models

from ..client.futures import RESULT_TIMEOUT_S, QueuedWork, is_final_rejection
from ..exchange import Exchange
from ..subject.server import Server
from ..violation import Violation, expect


@attrs.frozen
class Rejection:
    """Work that the server rejected.

    Args:
        exchange: the response that rejects it.
        at_submission: the submission was rejected, not the future.
    """

    exchange: Exchange
    at_submission: bool


async def submit_or_reject(
    server: Server, call: Call[models.UntypedAPIFuture], request: WireRequest | None = None
) -> QueuedWork | Rejection:
    """Submit work, and return its future or the 4xx that rejects it.

    Args:
        server: the server.
        call: the work.
        request: the request to send in place of that of the call.

    Raises:
        Violation: the status is neither 200 nor a 4xx that rejects the content.
    """
    exchange = await server.client.send(request or server.client.encode(call))
    if is_final_rejection(exchange):
        return Rejection(exchange, at_submission=True)
    name = call.operation.name
    if exchange.status != 200:
        raise Violation(f"a future for {name} or a 4xx", exchange.describe(), exchange)
    return QueuedWork(name, server.client.read(call, exchange), exchange)


async def find_rejection(
    server: Server, submission: QueuedWork | Rejection, timeout_s: float = RESULT_TIMEOUT_S
) -> Rejection | None:
    """Wait for the end of work, and return its rejection; None if it succeeded.

    The form of a failure does not matter here; requirements on futures test it.

    Raises:
        Violation: the work does not end in time, or a poll is answered with a 5xx.
    """
    if isinstance(submission, Rejection):
        return submission
    exchange, _ = await server.futures.poll_to_end(submission, timeout_s)
    is_rejected = is_final_rejection(exchange) or server.futures.read(submission, exchange).failure is not None
    return Rejection(exchange, at_submission=False) if is_rejected else None


async def require_rejection(
    server: Server, call: Call[models.UntypedAPIFuture], what: str, request: WireRequest | None = None
) -> Rejection:
    """Submit work that must be rejected, by a 4xx for the submission or by a future that fails.

    Args:
        server: the server.
        call: the work.
        what: the reason to reject it, such as ``an unknown model``.
        request: the request to send in place of that of the call.

    Raises:
        Violation: the work succeeds, does not end, or is answered with a 5xx.
    """
    expected = f"a 4xx or a failed future for {call.operation.name} with {what}"
    try:
        submission = await submit_or_reject(server, call, request)
        rejection = await find_rejection(server, submission)
    except Violation as error:
        raise Violation(expected, error.received, error.exchange) from error
    if rejection is None:
        raise Violation(expected, "a result", submission.exchange)
    return rejection


async def require_rejected_call(server: Server, call: Call[Any]) -> None:
    """Raise Violation unless the server answers a call without queued work with a 4xx of the contract."""
    exchange = await server.client.send_call(call)
    expect(is_final_rejection(exchange), "a rejection with a 4xx", exchange.describe(), exchange)
    server.client.require_contract(call.operation.name, exchange)
