"""Polls for results: held for the client while the upstream is not ready, and answered in the client's form."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import attrs

from tinkerwire_base.call import JSON, PROTOBUF, WireRequest, WireResponse, default_converter
from tinkerwire_base.collection_pause import without_collections
from tinkerwire_generated import models
from tinkerwire_generated.availability import FIELD_VERSIONS, TYPE_VERSIONS
from tinkerwire_generated.constants import RESULT_TYPES

from .._polling.poller import FIRST_PAUSE_S, MAX_PAUSE_S, MIN_HELD_S, PROTOBUF_REJECTED_STATUSES
from .._polling.result_reader import FAILURE_KEYS
from .._server.http.number_arrays import parse_number_lists
from .._server.http.protobuf import encode_result
from .._server.http.responses import HttpError
from .._wire import codec
from .._wire.dialect import Dialect
from . import memory as kinds
from .front import ClientRequest, json_object
from .memory import Memory
from .relay import TRANSLATED, RelayedExchange, json_headers, read_timeout_s
from .upstream import Upstream, UpstreamTimeout, traffic_of

HOLD_S = 30.0
"""Time for which a poll is held; official clients give up after 45 s."""
HOLD_SHARE = 1 / 3
"""Share of the client's own limit, which :func:`read_timeout_s` doubles, for which a poll is held."""
GRACE_S = 8.0
"""Time that the last poll of the upstream may take beyond the hold."""
ERROR_PAUSE_S = 1.0
"""Pause before an error of the gateway itself: official clients repeat a poll at once after a status of 500 or more."""
MAX_TRY_AGAIN_BYTES = 65_536
MAX_FAILURE_BYTES = 2**20
"""Size of a result that is not a failure; searching it takes time."""
FAILED_STATUSES = frozenset({400, 409, 422})
"""Statuses by which servers report that the work of a future failed."""
METADATA_SINCE = FIELD_VERSIONS["FutureRetrieveRequest"]["allow_metadata_only"]
OPERATION_OF_TYPE = {"".join(part.title() for part in name.split("_")): name for name in RESULT_TYPES}
OPERATION_OF_TYPE["Sample"] = OPERATION_OF_TYPE.pop("Asample")
"""Operations by the kinds of work that polls name."""
PROTOBUF_RESULTS = (models.SampleResponse, models.ForwardBackwardOutput)


class Polls:
    """Answers polls for results.

    Args:
        upstream: the server behind the gateway.
        memory: knows the operations of futures.
    """

    def __init__(self, upstream: Upstream, memory: Memory) -> None:
        self._upstream = upstream
        self._memory = memory
        self._is_draining = False
        self._held: set[asyncio.Future[WireResponse]] = set()

    def drain(self) -> None:
        """Answer all polls that wait, and all later ones after one poll of the upstream at most."""
        self._is_draining = True
        for polling in list(self._held):
            polling.cancel()

    async def poll(self, request: ClientRequest, request_id: str, exchange: RelayedExchange) -> WireResponse:
        """Return the result of a future of the upstream, or 408 if it is not ready.

        Args:
            request: the client's poll.
            request_id: the upstream's id of the future.
            exchange: what is recorded for the trace.
        """
        result_type = self.find_type(request, request_id)
        response = await self.wait(request, request_id, result_type, exchange)
        converted = self.convert(request, response, result_type)
        if converted is not response:
            exchange.form = TRANSLATED
        return converted

    def find_type(self, request: ClientRequest, request_id: str) -> type | None:
        """Return the type of the result of a future, from the submission or from the poll; None if unknown."""
        # The poll comes first: a server that lost its futures may give their ids again.
        operation = OPERATION_OF_TYPE.get(request.headers.get("x-tinker-request-type", ""))
        if operation is None:
            operation = self._memory.get(kinds.FUTURE, request_id)
        return None if operation is None else getattr(models, RESULT_TYPES[operation])

    async def wait(
        self, request: ClientRequest, request_id: str, result_type: type | None, exchange: RelayedExchange
    ) -> WireResponse:
        """Poll the upstream until the result is ready or the time is up; return its last response."""
        started = exchange.started_at
        hold_s = min(HOLD_S, read_timeout_s(request.headers) * HOLD_SHARE)
        pause, number = FIRST_PAUSE_S, 0
        while True:
            dialect = await self._upstream.dialect(request.headers)
            wire = self._encode(request, request_id, result_type, dialect, number)
            number += 1
            exchange.upstream_requests += 1
            sent_at = time.monotonic()
            left_s = started + hold_s - sent_at
            response = await self._send(wire, result_type, max(left_s, 0.0) + GRACE_S, request_id)
            if response.status in PROTOBUF_REJECTED_STATUSES and PROTOBUF in wire.headers["accept"]:
                self._upstream.learn_json_results()
                continue
            if response.status != 408 and not _is_try_again(response):
                return response
            now = time.monotonic()
            if now - sent_at >= MIN_HELD_S:
                pause = FIRST_PAUSE_S
            if now + pause >= started + hold_s or self._is_draining:
                return _unready(response, request_id)
            await asyncio.sleep(pause)
            pause = min(pause * 2, MAX_PAUSE_S)

    def convert(self, request: ClientRequest, response: WireResponse, result_type: type | None) -> WireResponse:
        """Return a response to a poll in the form that the client takes."""
        if response.status in FAILED_STATUSES:
            return self.read_failure(request, response)
        if response.status >= 300:
            return response
        if codec.is_protobuf(response):
            return response if request.wants_protobuf else self._to_json(request, response, result_type)
        # The type of the message, if the client takes one.
        message = result_type if request.takes_protobuf(result_type) else None
        may_have_failed = len(response.content) <= MAX_FAILURE_BYTES and _names_failure(response.content)
        if message is None and not may_have_failed:
            return response
        is_batch = message is models.ForwardBackwardOutput
        value = _parse_batch(response.content) if is_batch else json_object(response.content)
        failure = next((key for key in FAILURE_KEYS if key in value), None)
        if failure is not None:
            return self._failed(request, value[failure], value)
        if message is None or value.get("status") == "complete_metadata":
            return response
        return self._to_protobuf(response, value, message)

    def _to_json(self, request: ClientRequest, response: WireResponse, result_type: type | None) -> WireResponse:
        value = _decode(response.content, result_type)
        content = request.front.encoder.encode_json(value)
        return attrs.evolve(response, headers={**response.headers, "content-type": JSON}, content=content)

    def _to_protobuf(self, response: WireResponse, value: dict[str, Any], result_type: type) -> WireResponse:
        # Some servers send no metrics.
        if result_type is models.ForwardBackwardOutput and value.get("metrics") is None:
            value["metrics"] = {}
        try:
            content = encode_result(default_converter().structure(value, result_type))
        except (ValueError, TypeError, OverflowError) as error:
            text = f"tinkerwire gateway: the upstream's {result_type.__name__} does not fit the contract: {error}"
            raise HttpError(502, text) from None
        return attrs.evolve(response, headers={**response.headers, "content-type": PROTOBUF}, content=content)

    def read_failure(self, request: ClientRequest, response: WireResponse) -> WireResponse:
        """Return the failure that a status reports, or the response itself if it has no reason."""
        value = json_object(response.content)
        reason = value.get("error", value.get("detail"))
        return response if reason is None else self._failed(request, reason, value)

    def _failed(self, request: ClientRequest, reason: Any, value: dict[str, Any]) -> WireResponse:
        if isinstance(reason, dict) and isinstance(reason.get("message"), str):
            reason = reason["message"]
        text = reason if isinstance(reason, str) else default_converter().encode(reason).decode()
        category = value.get("category")
        known = category.lower() if isinstance(category, str) else "unknown"
        return request.json_response(models.RequestFailedResponse(error=text, category=known))

    def _encode(
        self, request: ClientRequest, request_id: str, result_type: type | None, dialect: Dialect, number: int
    ) -> WireRequest:
        sent = json_object(request.content)
        # The first poll may be passed as it came, except for an id of the gateway's own.
        body: dict[str, Any] = {"request_id": request_id}
        if sent.get("allow_metadata_only") is not None and dialect.rules.always_has(METADATA_SINCE):
            body["allow_metadata_only"] = sent["allow_metadata_only"]
        headers = {**json_headers(request), "accept": _accept(request, result_type, dialect)}
        key = headers.get("x-idempotency-key")
        if key is not None and number:
            # A server that honours keys would repeat its first "not yet".
            headers["x-idempotency-key"] = f"{key}-{number}"
        is_same = number == 0 and sent == body
        content = request.content if is_same else default_converter().encode(body)
        return WireRequest(method="POST", path="/api/v1/retrieve_future", headers=headers, content=content)

    async def _send(
        self, wire: WireRequest, result_type: type | None, timeout_s: float, request_id: str
    ) -> WireResponse:
        traffic = traffic_of("retrieve_future", is_sample=result_type is models.SampleResponse)
        polling = asyncio.ensure_future(self._upstream.send(wire, traffic, timeout_s))
        self._held.add(polling)
        try:
            # The wait for a free connection counts, too.
            await asyncio.wait({polling}, timeout=timeout_s)
            if not polling.done():
                return not_ready(request_id)
            return polling.result()
        except UpstreamTimeout:
            # A poll changes nothing: the next one gets the same result.
            return not_ready(request_id)
        except HttpError:
            await asyncio.sleep(ERROR_PAUSE_S)
            raise
        except asyncio.CancelledError:
            if not self._is_draining or not polling.cancelled():
                raise
            return not_ready(request_id)
        finally:
            self._held.discard(polling)
            polling.cancel()


def _accept(request: ClientRequest, result_type: type | None, dialect: Dialect) -> str:
    """Return the Accept header of a poll: what the client takes if the upstream has it, or else what it has."""
    if result_type is None:
        return f"{PROTOBUF}, {JSON}" if request.wants_protobuf and dialect.accepts_protobuf_results else JSON
    if not codec.is_decodable(result_type):
        return JSON
    versions = TYPE_VERSIONS.get(result_type.__name__)
    if not request.wants_protobuf and (versions is None or dialect.rules.always_has(versions)):
        return JSON
    return dialect.accept(result_type)


def _decode(content: bytes, result_type: type | None) -> Any:
    """Return the result of a message; of an unknown type, the first that reads all of it."""
    errors: list[str] = []
    for kind in PROTOBUF_RESULTS if result_type is None else (result_type,):
        try:
            return codec.decode(content, kind)
        except ValueError as error:
            errors.append(str(error))
    raise HttpError(502, f"tinkerwire gateway: the upstream's result cannot be read: {'; '.join(errors)}")


def _parse_batch(content: bytes) -> dict[str, Any]:
    """Return the result of a batch with its tensors as arrays; an empty one if it is not a JSON object."""
    with without_collections():
        value, arrays = parse_number_lists(content, json_object)
        for numbers in arrays:
            numbers.put_array()
        return dict(value)


def _names_failure(content: bytes) -> bool:
    return any(f'"{key}"'.encode() in content for key in FAILURE_KEYS)


def _is_try_again(response: WireResponse) -> bool:
    """Return whether a response asks for another poll; such a response is short, and results may be long."""
    content = response.content
    if response.status >= 300 or len(content) > MAX_TRY_AGAIN_BYTES or b"try_again" not in content:
        return False
    return not codec.is_protobuf(response) and json_object(content).get("type") == "try_again"


def not_ready(request_id: str) -> WireResponse:
    """Return the 408 of a future that is not ready."""
    content = default_converter().encode(models.TryAgainResponse(request_id=request_id, queue_state="active"))
    return WireResponse(status=408, headers={"content-type": JSON}, content=content)


def _unready(response: WireResponse, request_id: str) -> WireResponse:
    """Return the 408 of a future that is not ready, with the upstream's reason."""
    value = json_object(response.content)
    if not isinstance(value.get("queue_state"), str):
        return not_ready(request_id)
    content = default_converter().encode({**value, "type": "try_again"})
    return WireResponse(status=408, headers={"content-type": JSON}, content=content)
