"""Makes the embedded server look like others: what they refuse, how they answer. The switches are Quirks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import attrs
import orjson

from tinkerwire._server.emulation.fault_injection import ConnectionDropped
from tinkerwire._server.emulation.quirks import Quirks
from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import HttpError, Response, conflict
from tinkerwire._server.storage.bounded import BoundedTable
from tinkerwire._server.storage.checkpoint_paths import SAMPLER_WEIGHTS
from tinkerwire_base.call import JSON, PROTOBUF, WireRequest, WireResponse
from tinkerwire_base.mixins.checkpoints import TINKER_SCHEME
from tinkerwire_generated.models import ForwardBackwardOutput, OptimStepResponse, SampleResponse

CONFLICT = 409
TABLE_BYTES = 8 * 2**20
"""Largest size in bytes of each table of requests."""
ANSWER_BYTES = 1024
BATCHES = frozenset({"forward", "forward_backward"})
FORMS: Mapping[str, str] = {"json": JSON, "messages": PROTOBUF}
NOT_READY = b'{"type":"try_again","request_id":%s,"queue_state":"active"}'


class ServerEmulation:
    """What one server does in another's way, at each step of a request.

    Args:
        ways: the switches.
        long_poll_s: seconds that a request for a result is held.
    """

    def __init__(self, ways: Quirks, long_poll_s: float) -> None:
        self._ways = ways
        self._long_poll_s = long_poll_s
        self._first_asked: BoundedTable[str, float] = BoundedTable(TABLE_BYTES)
        self._used_up: BoundedTable[tuple[str, int], bool] = BoundedTable(TABLE_BYTES)
        self._has_refused = False
        self._batches: BoundedTable[tuple[str, int | None], Response] = BoundedTable(TABLE_BYTES)

    def incoming(self, operation: str, request: WireRequest) -> WireRequest:
        """The request as the server is to see it.

        Raises:
            Refusal: an operation that is lacking.
        """
        ways = self._ways
        if operation in ways.lacks:
            raise HttpError(int(ways.missing), "Not Found" if ways.missing == "404" else "Method Not Allowed")
        headers = {name.lower(): value for name, value in request.headers.items()}
        if operation == "retrieve_future" and ways.results != "asked":
            return attrs.evolve(request, headers={**headers, "accept": FORMS[ways.results]})
        if operation == "create_sampling_session" and ways.short_paths:
            return attrs.evolve(request, content=_with_whole_path(request.content or b""))
        return request

    def refusal_of_form(self, operation: str, request: WireRequest) -> HttpError | ConnectionDropped | None:
        """Return the rejection of a batch in an unsupported form; None for any other request."""
        ways = self._ways
        if operation not in BATCHES:
            return None
        if ways.batches == "any":
            if self._has_refused or not ways.applies_refused:
                return None
        else:
            headers = {name.lower(): value for name, value in request.headers.items()}
            if headers.get("content-type", JSON).partition(";")[0] == FORMS[ways.batches]:
                return None
        self._has_refused = True
        text = f"{operation} is not taken in this form"
        return ConnectionDropped(text) if ways.refusal == "dropped" else HttpError(int(ways.refusal), text)

    @property
    def applies_refused(self) -> bool:
        """True if a batch in an unsupported form is executed before it is rejected."""
        return self._ways.applies_refused

    def first_answer(self, request: Request) -> Response | None:
        """The answer to a batch that was done before, where batches are known by their seq_id alone."""
        return self._batches.get((request.body.model_id, request.body.seq_id)) if self._is_by_number(request) else None

    def keep(self, request: Request, answer: Response) -> None:
        """Keep the answer to a batch, for :meth:`first_answer`."""
        if self._is_by_number(request):
            self._batches.put((request.body.model_id, request.body.seq_id), answer, ANSWER_BYTES)

    def _is_by_number(self, request: Request) -> bool:
        return self._ways.applies_refused and request.operation in BATCHES

    async def early(self, operation: str, request: WireRequest) -> WireResponse | None:
        """The answer to a question for a result that comes too early, once it was held; None for any other."""
        if operation != "retrieve_future" or not self._ways.result_delay_s:
            return None
        request_id = _object(request.content or b"").get("request_id")
        now = time.monotonic()
        first_asked = self._first_asked.get(str(request_id))
        if first_asked is None:
            first_asked = now
            self._first_asked.put(str(request_id), now)
        left = first_asked + self._ways.result_delay_s - now
        await asyncio.sleep(min(max(left, 0.0), self._long_poll_s))
        if left <= self._long_poll_s:
            return None
        content = NOT_READY % orjson.dumps(request_id)
        return self.outgoing(operation, WireResponse(status=408, headers={"content-type": JSON}, content=content))

    def check(self, request: Request) -> None:
        """Refuse what the contract has and this server will not do."""
        body = request.body
        seq_id = getattr(body, "seq_id", None)
        if (getattr(body, "model_id", None), seq_id) in self._used_up:
            raise conflict("Training request sequence number was reused")
        if request.operation == "load_weights" and self._ways.load_first and seq_id not in (None, 1):
            raise HttpError(400, f"LoadWeights is not permitted with seq_id {seq_id}")
        if request.operation == "asample" and self._ways.topk == "refused":
            for name in ("topk_prompt_logprobs", "topk_sample_logprobs"):
                if getattr(body, name):
                    raise HttpError(400, f"{name} is not supported by this backend")

    def refused(self, request: Request, status: int) -> None:
        """Note that an operation was refused, unless its number was another's: that one may be sent again."""
        model_id, seq_id = getattr(request.body, "model_id", None), getattr(request.body, "seq_id", None)
        if status != CONFLICT and self._ways.counts_refused and model_id is not None and seq_id is not None:
            self._used_up.put((model_id, seq_id), True)

    def result(self, value: Any) -> Any:
        """A result of work, before it is encoded."""
        ways = self._ways
        if isinstance(value, ForwardBackwardOutput | OptimStepResponse) and ways.metrics != "given":
            return attrs.evolve(value, metrics={})
        if not isinstance(value, SampleResponse):
            return value
        changes: dict[str, Any] = {}
        if ways.prompt_logprobs != "whole" and value.prompt_logprobs is not None:
            changes["prompt_logprobs"] = value.prompt_logprobs[1:] if ways.prompt_logprobs == "short" else None
        if ways.topk == "ignored":
            changes["topk_prompt_logprobs"] = None
            changes["sequences"] = [attrs.evolve(each, topk_logprobs=None) for each in value.sequences]
        return attrs.evolve(value, **changes) if changes else value

    def outgoing(self, operation: str, response: WireResponse) -> WireResponse:
        """The answer as the client is to see it."""
        ways = self._ways
        if operation == "client_config" and ways.flags == "absent" and response.status == 200:
            return _json(200, {})
        if operation != "retrieve_future" or response.headers.get("content-type") != JSON:
            return response
        found = _object(response.content)
        if response.status == 408:
            return attrs.evolve(response, status=200) if ways.not_ready == "try_again" else response
        if response.status != 200:
            return response
        if "error" in found and "category" in found:
            return self._failed(found, response)
        if ways.metrics == "null" and "metrics" in found:
            return _json(200, {**found, "metrics": None})
        if ways.short_paths and found.get("type") == "save_weights_for_sampler" and found.get("path"):
            return _json(200, {**found, "path": found["path"].replace(f"/{SAMPLER_WEIGHTS}/", "/")})
        return response

    def _failed(self, found: dict[str, Any], response: WireResponse) -> WireResponse:
        text = found["error"]
        if self._ways.failure == "500":
            plain = {"content-type": "text/plain; charset=utf-8"}
            return WireResponse(status=500, headers=plain, content=b"Internal Server Error")
        if self._ways.failure.isdecimal():
            return _json(int(self._ways.failure), {"detail": text})
        others: Mapping[str, Any] = {
            "detail": {"detail": text},
            "object": {"error": {"code": 17, "message": text}, "type": "engine_error"},
            "category": {**found, "category": "engine_overheated"},
        }
        other = others.get(self._ways.failure)
        return response if other is None else _json(200, other)


def _json(status: int, body: Any) -> WireResponse:
    return WireResponse(status=status, headers={"content-type": JSON}, content=orjson.dumps(body))


def _object(content: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _with_whole_path(content: bytes) -> bytes:
    """A body whose model_path, if it is a short one, is the whole one."""
    body = _object(content)
    path = body.get("model_path")
    if not isinstance(path, str) or not path.startswith(TINKER_SCHEME):
        return content
    model_id, slash, name = path.removeprefix(TINKER_SCHEME).partition("/")
    if not slash or "/" in name:
        return content
    return orjson.dumps({**body, "model_path": f"{TINKER_SCHEME}{model_id}/{SAMPLER_WEIGHTS}/{name}"})
