"""Abandoned operations: the client cancels or unloads them on the server, or logs them."""

from __future__ import annotations

import asyncio

from tinkerwire_base.call import WireResponse
from tinkerwire_base.conversion.json_text import parse_json
from tinkerwire_base.errors import APIConnectionError, RequestFailedError, TinkerError
from tinkerwire_generated import models
from tinkerwire_generated.api.futures import cancel_future
from tinkerwire_generated.api.training import unload_model

from .._connection.connection import Connection
from .._connection.retry import SINGLE_ATTEMPT
from .._connection.retry_rules import UNCERTAIN_STATUSES
from .._futures.build_request import BuildRequest
from .._futures.logger import log
from .._futures.timeout import wait_for
from .._transport.backpressure import Traffic
from .pending_result import PendingResult
from .poller import Poller

ABANDON_S = 5.0
"""Time limit for ending an abandoned operation on the server."""


async def abandon(connection: Connection, build: BuildRequest) -> None:
    """End an abandoned operation, or log what the server may keep; raise no error."""
    abandoned = Abandoned(connection, build)
    try:
        is_ended = await wait_for(abandoned.end(), ABANDON_S)
    except asyncio.TimeoutError:
        is_ended, abandoned.reason = False, f"the server gave no result within {ABANDON_S:g} s"
    except asyncio.CancelledError:
        abandoned.reason = "the client was closed"
        abandoned.log()
        raise
    except Exception as error:  # the caller has already received its own error
        is_ended, abandoned.reason = False, f"{error!s:.300}"
    if not is_ended:
        abandoned.log()


class Abandoned:
    """One operation that no caller waits for."""

    def __init__(self, connection: Connection, build: BuildRequest) -> None:
        self._connection = connection
        self._build = build
        self.reason = "the server cannot cancel it"
        """Reason why the client could not end the operation."""

    async def end(self) -> bool:
        """Cancel the operation or unload its model; return False if the server may keep something.

        Raises:
            TinkerError: a request failed.
        """
        build = self._build
        await self._finish_sending()
        if not (build.request_id or build.model_id or build.may_be_accepted):
            return True
        dialect = await self._connection.dialect()
        if build.request_id and dialect.may_have_operation("cancel_future") and await self._cancel():
            return True
        if not build.creates_model or not dialect.may_have_operation("unload_model"):
            return False
        if not build.model_id and build.request_id:
            try:
                await self._wait_for_model()
            except RequestFailedError:
                return True
        if not build.model_id:
            return False
        await self._unload()
        return True

    def log(self) -> None:
        """Log what the server may keep."""
        build = self._build
        details = self._connection.redact(build.details)
        named = ", ".join(f"{key} {value}" for key, value in details.items())
        log.warning(
            "%s was abandoned, and the server may still build and keep it%s: %s",
            " ".join(part for part in (build.kind, build.request_id) if part),
            f" ({named})" if named else "",
            self.reason,
        )

    async def _finish_sending(self) -> None:
        """Read the response to a request that was sent when its caller gave up."""
        build = self._build
        if build.response is None or build.request_id:
            return
        try:
            response = await build.response
        except TinkerError as error:
            is_unsent = isinstance(error, APIConnectionError) and error.may_have_been_sent is False
            build.may_be_accepted = build.may_be_accepted or not is_unsent
            self.reason = str(error)
            return
        if response.status < 300:
            build.may_be_accepted = True
            self._read(response)
        elif response.status >= 500 or response.status in UNCERTAIN_STATUSES:
            build.may_be_accepted = True
            self.reason = f"the server returned HTTP {response.status}"

    def _read(self, response: WireResponse) -> None:
        try:
            value = parse_json(response.content)
        except ValueError:
            return
        if isinstance(value, dict):
            build = self._build
            build.result = value
            build.request_id = str(value.get("request_id") or "")
            if build.creates_model and not build.request_id:
                build.model_id = str(value.get("model_id") or "")

    async def _cancel(self) -> bool:
        call = cancel_future(body=models.CancelFutureRequest(request_id=self._build.request_id))
        try:
            await self._connection.call(call, Traffic.TRAINING_FUTURES, retry=SINGLE_ATTEMPT, timeout_s=ABANDON_S)
        except TinkerError as error:
            self.reason = str(error)
            return False
        return True

    async def _wait_for_model(self) -> None:
        build, connection = self._build, self._connection
        pending: PendingResult[models.CreateModelResponse | models.LoadWeightsResponse] = PendingResult(
            submission=models.UntypedAPIFuture(request_id=build.request_id),
            request_type=build.kind,
            result_type=models.CreateModelResponse if build.kind == "CreateModel" else models.LoadWeightsResponse,
            traffic=Traffic.TRAINING_FUTURES,
        )
        created = await Poller(connection, pending, SINGLE_ATTEMPT).result()
        build.model_id = created.model_id or f"{build.body.get('session_id')}:train:{build.body.get('model_seq_id')}"

    async def _unload(self) -> None:
        call = unload_model(body=models.UnloadModelRequest(model_id=self._build.model_id))
        request = self._connection.codec.encode(call, await self._connection.dialect())
        read = self._connection.codec.submission_reader(call, request)
        await self._connection.send(request, read, Traffic.TRAINING, SINGLE_ATTEMPT, ABANDON_S)
