"""Futures: the submission of queued work, polls for its result, and the result itself."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import attrs

from tinkerwire_base.call import PROTOBUF, Call, WireRequest
from tinkerwire_generated import models
from tinkerwire_generated.api.futures import retrieve_future
from tinkerwire_generated.constants import RESULT_TYPES

from ..._wire import codec
from ..exchange import Exchange
from ..violation import Violation
from .wire_client import WireClient

RESULT_TIMEOUT_S = 100.0
"""Time for which a test waits for a result."""
HELD_POLL_TIMEOUT_S = 330.0
"""Time for which a server may hold a poll; some hold it for 300 s."""
MIN_POLL_TIMEOUT_S = 5.0
"""Time for the response to a poll that is sent shortly before the deadline of its result."""
PAUSE_S = 0.02
MAX_PAUSE_S = 0.5
RETRIED_REJECTIONS = (408, 429)
"""Statuses within 4xx that do not reject the content of a request."""


@attrs.frozen
class QueuedWork:
    """Queued work: its future, and the exchange that created it."""

    operation: str
    future: models.UntypedAPIFuture
    exchange: Exchange

    @property
    def request_id(self) -> str:
        """Id of the future."""
        return self.future.request_id

    @property
    def result_type(self) -> str:
        """Name of the model of the result."""
        return RESULT_TYPES[self.operation]


@attrs.frozen
class Result:
    """The end of queued work."""

    submission: QueuedWork
    exchange: Exchange
    """The poll that returned the result."""
    value: Any
    """The result; None if the work failed."""
    failure: str | None
    """The error text if the work failed."""
    unready: tuple[Exchange, ...]
    """The polls before it."""


class Futures:
    """Submits work and waits for its results.

    Args:
        client: sends the requests.
    """

    def __init__(self, client: WireClient) -> None:
        self._client = client

    async def submit(self, call: Call[models.UntypedAPIFuture]) -> QueuedWork:
        """Submit the work of a call.

        Raises:
            Violation: the server does not respond with a future.
        """
        future, exchange = await self._client.call(call)
        return QueuedWork(call.operation.name, future, exchange)

    async def submit_request(self, operation: str, request: WireRequest) -> QueuedWork:
        """Submit a request of any content as an operation; raise Violation without a future."""
        return self.read_submission(operation, await self._client.send(request))

    def read_submission(self, operation: str, exchange: Exchange) -> QueuedWork:
        """Return the submission that a response acknowledges; raise Violation without a future."""
        if exchange.status != 200:
            raise Violation(f"a future for {operation}", exchange.describe(), exchange)
        self._client.require_contract(operation, exchange)
        return QueuedWork(operation, self._client.structure(exchange.json(), models.UntypedAPIFuture), exchange)

    def poll_request(
        self, request_id: str, result_type: str, iteration: int = 0, *, allow_metadata_only: bool = False
    ) -> WireRequest:
        """Return the request of one poll."""
        body = models.FutureRetrieveRequest(request_id=request_id, allow_metadata_only=allow_metadata_only)
        request = self._client.encode(retrieve_future(body=body))
        accept = self._client.dialect.accept(getattr(models, result_type))
        headers = {**request.headers, "accept": accept, "x-tinker-request-iteration": str(iteration)}
        return attrs.evolve(request, headers=headers)

    async def poll(
        self, submission: QueuedWork, iteration: int = 0, *, timeout_s: float = HELD_POLL_TIMEOUT_S
    ) -> Exchange:
        """Poll once for a result."""
        request = self.poll_request(submission.request_id, submission.result_type, iteration)
        return await self._client.send(request, timeout_s)

    async def wait(self, submission: QueuedWork, timeout_s: float = RESULT_TIMEOUT_S) -> Result:
        """Poll until the work has ended, and return its result or failure, read strictly.

        Raises:
            Violation: a poll is rejected, the result does not come, or it does not fit the contract.
        """
        exchange, unready = await self.poll_to_end(submission, timeout_s)
        return self.read(submission, exchange, unready)

    async def poll_to_end(
        self, submission: QueuedWork, timeout_s: float = RESULT_TIMEOUT_S
    ) -> tuple[Exchange, tuple[Exchange, ...]]:
        """Poll until the work has ended; return the last poll, whatever its response is, and those before it.

        Raises:
            Violation: the work does not end in time.
        """
        deadline, pause = time.monotonic() + timeout_s, PAUSE_S
        unready: list[Exchange] = []
        while True:
            # A server that holds a poll until the work ends holds that for work that never ends, too.
            left_s = max(deadline - time.monotonic(), MIN_POLL_TIMEOUT_S)
            exchange = await self.poll(submission, len(unready), timeout_s=min(left_s, HELD_POLL_TIMEOUT_S))
            is_late = time.monotonic() > deadline
            if not is_unready(exchange) and not (is_late and exchange.response is None):
                return exchange, tuple(unready)
            unready.append(exchange)
            if is_late:
                raise Violation(f"the result of {submission.operation} within {timeout_s:g} s", "none", exchange)
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, MAX_PAUSE_S)

    def read(self, submission: QueuedWork, exchange: Exchange, unready: tuple[Exchange, ...] = ()) -> Result:
        """Return the result or failure in the response to a poll; see :meth:`wait`."""
        name = submission.operation
        if exchange.response is None or exchange.status != 200:
            raise Violation(f"the result of {name}", exchange.describe(), exchange)
        failure = find_failure(exchange)
        if failure is not None:
            return Result(submission, exchange, None, failure, unready)
        errors = self._client.contract.result_errors(submission.result_type, exchange)
        if errors:
            raise Violation(f"a {submission.result_type} as in the contract", "; ".join(errors), exchange)
        kind = getattr(models, submission.result_type)
        try:
            if exchange.media_type == PROTOBUF:
                value = codec.decode(exchange.response.content, kind)
            else:
                value = self._client.structure(exchange.json(), kind)
        except ValueError as error:
            raise Violation(f"a {submission.result_type} as in the contract", str(error), exchange) from None
        return Result(submission, exchange, value, None, unready)

    async def run(self, call: Call[models.UntypedAPIFuture], timeout_s: float = RESULT_TIMEOUT_S) -> Result:
        """Submit the work of a call and wait for its result.

        Raises:
            Violation: as for :meth:`wait`, or the work failed.
        """
        result = await self.wait(await self.submit(call), timeout_s)
        if result.failure is not None:
            raise Violation(f"the result of {call.operation.name}", f"the failure {result.failure!r}", result.exchange)
        return result

    async def attempt(self, call: Call[models.UntypedAPIFuture]) -> tuple[Result | None, Exchange]:
        """Submit work that the server may reject, by a 4xx for the submission or a poll, or by a failure.

        Returns:
            The result, or None if the work was rejected; and the exchange with the result or the rejection.

        Raises:
            Violation: the server responds with a 5xx, or not at all.
        """
        exchange = await self._client.send_call(call)
        if is_final_rejection(exchange):
            return None, exchange
        submission = QueuedWork(call.operation.name, self._client.read(call, exchange), exchange)
        exchange, unready = await self.poll_to_end(submission)
        if is_final_rejection(exchange):
            return None, exchange
        result = self.read(submission, exchange, unready)
        return (result if result.failure is None else None), exchange


def is_final_rejection(exchange: Exchange) -> bool:
    """Check whether a response rejects the content of a request: a 4xx that clients do not retry."""
    return exchange.is_client_error and exchange.status not in RETRIED_REJECTIONS


def find_failure(exchange: Exchange) -> str | None:
    """Return the error text in the response to a poll; None for a response that reports no failure."""
    body = exchange.json()
    return str(body["error"]) if isinstance(body, dict) and "error" in body else None


def is_unready(exchange: Exchange) -> bool:
    """Check whether the response to a poll requests another poll."""
    if exchange.status == 408:
        return True
    return exchange.status == 200 and exchange.member("type") == "try_again"
