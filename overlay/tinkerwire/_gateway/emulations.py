"""Operations that the gateway answers itself, in part or in full, where a wire lacks something."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias
from urllib.parse import urljoin

import attrs
import orjson

from tinkerwire_base.call import Call, WireResponse
from tinkerwire_generated import models
from tinkerwire_generated.availability import OPERATION_VERSIONS
from tinkerwire_generated.constants import RESULT_TYPES
from tinkerwire_generated.operations import OPERATIONS

from .._connection.dialect_resolver import ENDPOINT_MISSING
from .._server.http.responses import HttpError
from .._wire.dialect import Dialect
from .._wire.server_futures import deferred_result, has_immediate_result
from . import memory as kinds
from .flags import dynamic_flags, fixed_flags
from .front import ClientRequest, is_missing_endpoint, json_object
from .loading import PREFIX as LOAD_PREFIX
from .loading import Loading
from .polls import Polls
from .prompt_logprobs import PromptLogprobs
from .relay import Relay, RelayedExchange
from .session_names import SessionNames
from .upstream import Refused

REPLACEMENT_STATUSES = frozenset({400, 404, 405, 415, 422, 501})
"""Statuses of requests that a server has not run, perhaps because it is not the one that they were written for."""
IMMEDIATE_PREFIX = "gw:done:"
Emulate: TypeAlias = Callable[[ClientRequest, RelayedExchange], Awaitable[WireResponse]]


class Emulations:
    """The operations that the gateway handles in ways of its own, by name.

    Args:
        relay: passes requests to the upstream.
        polls: polls the upstream for results.
    """

    def __init__(self, relay: Relay, polls: Polls) -> None:
        self._relay = relay
        self._polls = polls
        self._loading = Loading(relay, polls)
        self._missing: set[tuple[int, str]] = set()
        """Optional operations that the upstream of a number has been found not to have."""
        self._prompt_logprobs = PromptLogprobs(relay.memory)
        names = SessionNames(relay, self._pass)
        self._by_operation: Mapping[str, Emulate] = {
            "create_session": names.create,
            "get_session": names.get,
            "client_config": self._client_config,
            "client_dynamic_config": self._client_dynamic_config,
            "auth_token": self._auth_token,
            "asample": self._asample,
            "retrieve_future": self._retrieve_future,
            "load_weights": self._load_weights,
            "weights_info": self._weights_info,
            "create_sampling_session": self._create_sampling_session,
            "get_sampler": self._get_sampler,
            "list_checkpoints": self._list_checkpoints,
            "list_model_checkpoints": self._list_checkpoints,
            "get_checkpoint_archive_url": self._get_checkpoint_archive_url,
            "telemetry": self._accept_optional,
            "session_heartbeat": self._accept_optional,
            "finish_session": self._accept_optional,
        }

    async def handle(self, request: ClientRequest, exchange: RelayedExchange) -> WireResponse:
        """Return the response to a request; after a rejection, send it again if the upstream was replaced."""
        upstream = self._relay.upstream
        if request.operation.name == "create_session":
            await upstream.check(request.headers)
        number = upstream.number
        try:
            response = await self._answer(request, exchange)
            if not await self._is_replaced(number, response.status, request):
                return response
        except (HttpError, Refused) as rejection:
            if not await self._is_replaced(number, rejection.status, request):
                raise
        # The body may have been read for the form that the former server took.
        return await self._answer(attrs.evolve(request, packs_numbers=False), exchange)

    async def _is_replaced(self, number: int, status: int, request: ClientRequest) -> bool:
        """Return whether a status is a rejection, and the upstream is no longer that of a number."""
        if status not in REPLACEMENT_STATUSES:
            return False
        await self._relay.upstream.check(request.headers)
        return self._relay.upstream.number != number

    async def _answer(self, request: ClientRequest, exchange: RelayedExchange) -> WireResponse:
        name = request.operation.name
        response = await self._by_operation.get(name, self._pass)(request, exchange)
        if response.status in ENDPOINT_MISSING and is_missing_endpoint(response, request.wire.path):
            dialect = await self._relay.upstream.dialect(request.headers)
            if name in OPERATION_VERSIONS and not _always_has(dialect, name):
                raise self._relay.lacks(name, dialect, f"it responded {response.status}")
        return response

    async def _pass(self, request: ClientRequest, exchange: RelayedExchange) -> WireResponse:
        response = await self._relay.relay(request, exchange)
        if response.status >= 300:
            return response
        if request.operation.name in RESULT_TYPES:
            return self._as_future(request, response)
        call: Call[Any] = Call(request.operation)
        deferred = deferred_result(call, response)
        if deferred is None:
            return response
        kind = deferred.result_type
        waited = await self._polls.wait(request, deferred.request_id, kind, exchange)
        return self._polls.convert(request, waited, kind)

    def _as_future(self, request: ClientRequest, response: WireResponse) -> WireResponse:
        """Return a future for a result that the upstream gave at once."""
        if isinstance(json_object(response.content).get("request_id"), str):
            return response
        call: Call[Any] = Call(OPERATIONS[request.operation.name])
        if not has_immediate_result(call, response):
            return response
        request_id = f"{IMMEDIATE_PREFIX}{uuid.uuid4().hex}"
        kept = [response.headers.get("content-type", ""), base64.b64encode(response.content).decode()]
        self._relay.memory.put(kinds.RESULT, request_id, orjson.dumps(kept).decode())
        self._relay.memory.put(kinds.FUTURE, request_id, request.operation.name)
        return request.json_response({"request_id": request_id})

    async def _client_config(self, request: ClientRequest, exchange: RelayedExchange) -> WireResponse:
        flags, dialect, failed = await self._upstream_flags(request, exchange)
        if failed is not None:
            return failed
        has_own_key = self._relay.upstream.has_own_key
        return request.json_response(fixed_flags(request.front.document, flags, dialect, own_key=has_own_key))

    async def _client_dynamic_config(self, request: ClientRequest, exchange: RelayedExchange) -> WireResponse:
        flags, dialect, failed = await self._upstream_flags(request, exchange)
        return failed or request.json_response(dynamic_flags(request.front.document, flags, dialect))

    async def _upstream_flags(
        self, request: ClientRequest, exchange: RelayedExchange
    ) -> tuple[dict[str, Any] | None, Dialect, WireResponse | None]:
        """Return the upstream's flags, None if it has none; its dialect; and its response if that is an error."""
        exchange.form = request.operation.name
        dialect = await self._relay.upstream.dialect(request.headers)
        if not dialect.may_have_operation(request.operation.name):
            _ = request.body
            return None, dialect, None
        response = await self._relay.send(request, request.wire, exchange)
        if response.status in ENDPOINT_MISSING:
            return None, dialect, None
        if response.status >= 300:
            return None, dialect, response
        return json_object(response.content), dialect, None

    async def _auth_token(self, request: ClientRequest, exchange: RelayedExchange) -> WireResponse:
        if self._relay.upstream.has_own_key:
            raise HttpError(404, "tinkerwire gateway: this gateway issues no tokens; send its key itself")
        return await self._relay.relay(request, exchange)

    async def _asample(self, request: ClientRequest, exchange: RelayedExchange) -> WireResponse:
        response = await self._pass(request, exchange)
        self._prompt_logprobs.remember(request, response)
        needs_ids = request.front.has_field("UntypedAPIFuture", "sample_sequence_ids")
        if response.status >= 300 or not needs_ids:
            return response
        value = json_object(response.content)
        if value.get("sample_sequence_ids") is not None or not isinstance(value.get("request_id"), str):
            return response
        number = json_object(request.content).get("num_samples", 1)
        ids = [f"{value['request_id']}:{index}" for index in range(number if isinstance(number, int) else 1)]
        return attrs.evolve(response, content=orjson.dumps({**value, "sample_sequence_ids": ids}))

    async def _retrieve_future(self, request: ClientRequest, exchange: RelayedExchange) -> WireResponse:
        request_id: str = request.body.request_id
        if request_id.startswith(LOAD_PREFIX):
            exchange.form = "load_weights"
            return await self._loading.poll(request, request_id, exchange)
        if request_id.startswith(IMMEDIATE_PREFIX):
            kept = self._relay.memory.get(kinds.RESULT, request_id)
            if kept is None:
                raise HttpError(410, f"tinkerwire gateway: the result of {request_id} is gone; submit the work again")
            media, content = orjson.loads(kept)
            response = WireResponse(status=200, headers={"content-type": media}, content=base64.b64decode(content))
            return self._polls.convert(request, response, self._polls.find_type(request, request_id))
        return self._prompt_logprobs.complete(request_id, await self._polls.poll(request, request_id, exchange))

    async def _load_weights(self, request: ClientRequest, exchange: RelayedExchange) -> WireResponse:
        if request.front.has_field("LoadWeightsRequest", "session_id") and request.body.model_id is None:
            dialect = await self._relay.upstream.dialect(request.headers)
            if not dialect.creates_model_on_load:
                exchange.form = "load_weights"
                return await self._loading.start(request, dialect, exchange)
        return await self._pass(request, exchange)

    async def _weights_info(self, request: ClientRequest, exchange: RelayedExchange) -> WireResponse:
        dialect = await self._relay.upstream.dialect(request.headers)
        if dialect.may_have_operation("weights_info"):
            response = await self._pass(request, exchange)
            if _always_has(dialect, "weights_info") or not is_missing_endpoint(response, request.wire.path):
                return response
        exchange.form = "weights_info"
        info = await self._loading.describe_run(request, request.body.tinker_path, exchange)
        return request.json_response(info)

    async def _create_sampling_session(self, request: ClientRequest, exchange: RelayedExchange) -> WireResponse:
        response = await self._pass(request, exchange)
        dialect = await self._relay.upstream.dialect(request.headers)
        sampler_id = json_object(response.content).get("sampling_session_id")
        if response.status < 300 and isinstance(sampler_id, str) and not _always_has(dialect, "get_sampler"):
            body: models.CreateSamplingSessionRequest = request.body
            self._relay.memory.put(kinds.SAMPLER, sampler_id, orjson.dumps([body.base_model, body.model_path]).decode())
        return response

    async def _get_sampler(self, request: ClientRequest, exchange: RelayedExchange) -> WireResponse:
        dialect = await self._relay.upstream.dialect(request.headers)
        sampler_id = request.path["sampler_id"]
        known = self._relay.memory.get(kinds.SAMPLER, sampler_id)
        if dialect.may_have_operation("get_sampler"):
            response = await self._pass(request, exchange)
            if known is None or response.status not in ENDPOINT_MISSING:
                return response
        exchange.form = "get_sampler"
        if known is None:
            raise self._relay.lacks("get_sampler", dialect, f"{sampler_id} was not created through this gateway")
        base_model, model_path = orjson.loads(known)
        if base_model is None:
            base_model = (await self._loading.find_run(request, model_path, exchange)).base_model
        sampler = models.GetSamplerResponse(sampler_id=sampler_id, base_model=base_model, model_path=model_path)
        return request.json_response(sampler)

    async def _list_checkpoints(self, request: ClientRequest, exchange: RelayedExchange) -> WireResponse:
        dialect = await self._relay.upstream.dialect(request.headers)
        if dialect.may_have_operation(request.operation.name):
            response = await self._pass(request, exchange)
            is_certain = dialect.is_fixed or not is_missing_endpoint(response, request.wire.path)
            if is_certain:
                return response
        exchange.form = request.operation.name
        (run_id,) = request.path.values()
        is_old = request.operation.name == "list_model_checkpoints"
        operation, parameter = (
            ("list_checkpoints", "training_run_id") if is_old else ("list_model_checkpoints", "model_id")
        )
        call: Call[Any] = Call(OPERATIONS[operation], path={parameter: self._relay.resolve_model(run_id)})
        return request.json_response(await self._relay.call(request, call, exchange))

    async def _get_checkpoint_archive_url(self, request: ClientRequest, exchange: RelayedExchange) -> WireResponse:
        response = await self._pass(request, exchange)
        location = response.headers.get("location")
        if location is None:
            return response
        # A relative address is one of the upstream.
        absolute = urljoin(self._relay.upstream.base_url + request.wire.path, location)
        return attrs.evolve(response, headers={**response.headers, "location": absolute})

    async def _accept_optional(self, request: ClientRequest, exchange: RelayedExchange) -> WireResponse:
        name = request.operation.name
        dialect = await self._relay.upstream.dialect(request.headers)
        if (self._relay.upstream.number, name) not in self._missing and dialect.may_have_operation(name):
            response = await self._relay.relay(request, exchange)
            if not is_missing_endpoint(response, request.wire.path):
                return response
            self._missing.add((self._relay.upstream.number, name))
        exchange.form = name
        _ = request.body
        if name == "finish_session":
            return WireResponse(status=204)
        is_telemetry = name == "telemetry"
        return request.json_response(
            models.TelemetryResponse(status="accepted") if is_telemetry else models.SessionHeartbeatResponse()
        )


def _always_has(dialect: Dialect, operation: str) -> bool:
    return dialect.rules.always_has(OPERATION_VERSIONS[operation])
