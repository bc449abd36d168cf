"""Emulation of other servers: applies Quirks at each stage of a request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import attrs
import orjson

from tinkerwire._server.bounded_table import BoundedTable
from tinkerwire._server.emulation.fault_injection import ConnectionDropped
from tinkerwire._server.emulation.middleware import CallNext
from tinkerwire._server.emulation.quirks import Quirks
from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import HttpError, Response, conflict_error
from tinkerwire._server.storage.checkpoint_paths import SAMPLER_WEIGHTS
from tinkerwire._wire.dialect import BATCH_OPERATIONS
from tinkerwire_base.call import JSON, PROTOBUF, WireRequest, WireResponse
from tinkerwire_generated.constants import TINKER_SCHEME
from tinkerwire_generated.models import ForwardBackwardOutput, OptimStepResponse, SampleResponse

CONFLICT = 409
TABLE_BYTES = 8 * 2**20
"""Maximum size of each table of requests."""
RESPONSE_BYTES = 1024
MEDIA_TYPES: Mapping[str, str] = {"json": JSON, "protobuf": PROTOBUF}
NOT_READY = b'{"type":"try_again","request_id":%s,"queue_state":"active"}'


class ServerEmulation:
    """Middleware that applies quirks.

    Args:
        quirks: the quirks to apply.
        long_poll_s: seconds for which the server holds a poll for a result.
    """

    def __init__(self, quirks: Quirks, long_poll_s: float) -> None:
        self._quirks = quirks
        self._long_poll_s = long_poll_s
        self._first_polled_at: BoundedTable[str, float] = BoundedTable(TABLE_BYTES)
        self._consumed_seq_ids: BoundedTable[tuple[str, int], bool] = BoundedTable(TABLE_BYTES)
        self._has_rejected_batch = False
        self._executed_batches: BoundedTable[tuple[str, int | None], Response] = BoundedTable(TABLE_BYTES)

    async def handle(self, operation: str, request: WireRequest, call_next: CallNext) -> WireResponse:
        """Handle a request as the emulated server would; see Middleware."""
        request = self._transform_request(operation, request)
        not_ready = await self._hold_poll(operation, request)
        if not_ready is not None:
            return not_ready
        rejection = self._reject_encoding(operation, request)
        if rejection is not None and not self._quirks.executes_rejected:
            raise rejection
        response = await call_next(request)
        if rejection is not None:
            raise rejection
        return self._transform_response(operation, response)

    def ignores_idempotency_key(self, operation: str) -> bool:
        """Return whether the server recognises resent requests of an operation by seq_id alone."""
        return self._quirks.executes_rejected and operation in BATCH_OPERATIONS

    def find_executed(self, request: Request) -> Response | None:
        """Return the response to an earlier batch with the same seq_id, where only the seq_id counts."""
        if not self.ignores_idempotency_key(request.operation):
            return None
        return self._executed_batches.get((request.body.model_id, request.body.seq_id))

    def record_executed(self, request: Request, response: Response) -> None:
        """Keep the response to a batch for :meth:`find_executed`."""
        if self.ignores_idempotency_key(request.operation):
            self._executed_batches.put((request.body.model_id, request.body.seq_id), response, RESPONSE_BYTES)

    def validate(self, request: Request) -> None:
        """Reject a request that fits the contract but not the emulated server.

        Raises:
            HttpError: 400 for unsupported options, 409 for a seq_id that a rejected operation consumed.
        """
        body = request.body
        seq_id = getattr(body, "seq_id", None)
        if (getattr(body, "model_id", None), seq_id) in self._consumed_seq_ids:
            raise conflict_error("Training request sequence number was reused")
        if request.operation == "load_weights" and self._quirks.load_first and seq_id not in (None, 1):
            raise HttpError(400, f"LoadWeights is not permitted with seq_id {seq_id}")
        if request.operation == "asample" and self._quirks.topk == "rejected":
            for name in ("topk_prompt_logprobs", "topk_sample_logprobs"):
                if getattr(body, name):
                    raise HttpError(400, f"{name} is not supported by this backend")

    def on_rejected(self, request: Request, status: int) -> None:
        """Record a rejected operation. After a conflict the seq_id belongs to another operation and stays valid."""
        model_id, seq_id = getattr(request.body, "model_id", None), getattr(request.body, "seq_id", None)
        if status != CONFLICT and self._quirks.counts_rejected and model_id is not None and seq_id is not None:
            self._consumed_seq_ids.put((model_id, seq_id), True)

    def transform_result(self, result: Any) -> Any:
        """Return a result of queued work as the emulated server would compute it."""
        quirks = self._quirks
        if isinstance(result, ForwardBackwardOutput | OptimStepResponse) and quirks.metrics != "full":
            return attrs.evolve(result, metrics={})
        if not isinstance(result, SampleResponse):
            return result
        changes: dict[str, Any] = {}
        if quirks.prompt_logprobs != "full" and result.prompt_logprobs is not None:
            changes["prompt_logprobs"] = result.prompt_logprobs[1:] if quirks.prompt_logprobs == "short" else None
        if quirks.topk == "ignored":
            changes["topk_prompt_logprobs"] = None
            changes["sequences"] = [attrs.evolve(sequence, topk_logprobs=None) for sequence in result.sequences]
        return attrs.evolve(result, **changes) if changes else result

    def _transform_request(self, operation: str, request: WireRequest) -> WireRequest:
        quirks = self._quirks
        if operation in quirks.missing:
            text = "Not Found" if quirks.missing_status == "404" else "Method Not Allowed"
            raise HttpError(int(quirks.missing_status), text)
        if operation == "retrieve_future" and quirks.results != "requested":
            return attrs.evolve(request, headers={**request.headers, "accept": MEDIA_TYPES[quirks.results]})
        if operation == "create_sampling_session" and quirks.short_paths:
            return attrs.evolve(request, content=_expand_model_path(request.content or b""))
        return request

    async def _hold_poll(self, operation: str, request: WireRequest) -> WireResponse | None:
        """Hold a poll for a result that is delayed; return the "not ready" response, or None to go on."""
        if operation != "retrieve_future" or not self._quirks.result_delay_s:
            return None
        request_id = _parse_object(request.content or b"").get("request_id")
        now = time.monotonic()
        first_polled_at = self._first_polled_at.get(str(request_id))
        if first_polled_at is None:
            first_polled_at = now
            self._first_polled_at.put(str(request_id), now)
        remaining = first_polled_at + self._quirks.result_delay_s - now
        await asyncio.sleep(min(max(remaining, 0.0), self._long_poll_s))
        if remaining <= self._long_poll_s:
            return None
        content = NOT_READY % orjson.dumps(request_id)
        response = WireResponse(status=408, headers={"content-type": JSON}, content=content)
        return self._transform_response(operation, response)

    def _reject_encoding(self, operation: str, request: WireRequest) -> HttpError | ConnectionDropped | None:
        """Return the rejection of a batch in an unsupported encoding; None for any other request."""
        quirks = self._quirks
        if operation not in BATCH_OPERATIONS:
            return None
        if quirks.batches == "any":
            if self._has_rejected_batch or not quirks.executes_rejected:
                return None
        elif request.headers.get("content-type", JSON).partition(";")[0] == MEDIA_TYPES[quirks.batches]:
            return None
        self._has_rejected_batch = True
        text = f"{operation} is not accepted in this encoding"
        return ConnectionDropped(text) if quirks.rejection == "dropped" else HttpError(int(quirks.rejection), text)

    def _transform_response(self, operation: str, response: WireResponse) -> WireResponse:
        quirks = self._quirks
        if operation == "client_config" and quirks.flags == "absent" and response.status == 200:
            return _json_response(200, {})
        if operation != "retrieve_future" or response.headers.get("content-type") != JSON:
            return response
        if response.status == 408:
            return attrs.evolve(response, status=200) if quirks.not_ready == "try_again" else response
        if response.status != 200:
            return response
        body = _parse_object(response.content)
        if "error" in body and "category" in body:
            return self._transform_failure(body, response)
        if quirks.metrics == "null" and "metrics" in body:
            return _json_response(200, {**body, "metrics": None})
        if quirks.short_paths and body.get("type") == "save_weights_for_sampler" and body.get("path"):
            return _json_response(200, {**body, "path": body["path"].replace(f"/{SAMPLER_WEIGHTS}/", "/")})
        return response

    def _transform_failure(self, body: dict[str, Any], response: WireResponse) -> WireResponse:
        text = body["error"]
        if self._quirks.failure == "500":
            headers = {"content-type": "text/plain; charset=utf-8"}
            return WireResponse(status=500, headers=headers, content=b"Internal Server Error")
        if self._quirks.failure.isdecimal():
            return _json_response(int(self._quirks.failure), {"detail": text})
        bodies: Mapping[str, Any] = {
            "detail": {"detail": text},
            "object": {"error": {"code": 17, "message": text}, "type": "engine_error"},
            "category": {**body, "category": "engine_overheated"},
        }
        transformed = bodies.get(self._quirks.failure)
        return response if transformed is None else _json_response(200, transformed)


def _json_response(status: int, body: Any) -> WireResponse:
    return WireResponse(status=status, headers={"content-type": JSON}, content=orjson.dumps(body))


def _parse_object(content: bytes) -> dict[str, Any]:
    """Return the JSON object of a body; an empty one for any other content."""
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def _expand_model_path(content: bytes) -> bytes:
    """Return the body with a short model_path replaced by the full path."""
    body = _parse_object(content)
    path = body.get("model_path")
    if not isinstance(path, str) or not path.startswith(TINKER_SCHEME):
        return content
    model_id, slash, name = path.removeprefix(TINKER_SCHEME).partition("/")
    if not slash or "/" in name:
        return content
    return orjson.dumps({**body, "model_path": f"{TINKER_SCHEME}{model_id}/{SAMPLER_WEIGHTS}/{name}"})
