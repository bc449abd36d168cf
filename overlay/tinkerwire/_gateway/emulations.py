"""Operations that the gateway answers itself, in part or in full, where a wire lacks something.

:data:`EMULATIONS` describes each, for the documentation.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TypeAlias
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
from .front import ClientRequest, json_object
from .loading import PREFIX as LOAD_PREFIX
from .loading import Loading
from .polls import Polls
from .prompt_logprobs import PromptLogprobs
from .relay import Relay, RelayedExchange
from .session_names import SessionNames

IMMEDIATE_PREFIX = "gw:done:"
Emulate: TypeAlias = Callable[[ClientRequest, RelayedExchange], Awaitable[WireResponse]]


class Emulation(NamedTuple):
    """One row of the table of emulations."""

    feature: str
    clients: str
    upstreams: str
    how: str
    why: str


EMULATIONS: tuple[Emulation, ...] = (
    Emulation(
        "client/config, client/dynamic_config",
        "0.18.2 on, 0.25.0 on",
        "any",
        "The flags of the upstream, or else the defaults of the client's version, as far as they are true of both.",
        "A flag only makes clients use what it names; a flag that is off keeps them from it.",
    ),
    Emulation(
        "auth/token",
        "0.18.2 on",
        "without tokens, or with --api-key",
        "Flag pjwt_auth_enabled is off, so that clients send their key itself.",
        "The key and the token name the same user.",
    ),
    Emulation(
        "sample_sequence_ids",
        "0.26.2 on",
        "before 0.26.2, or without them",
        "The ids REQUEST:0, REQUEST:1 and so on.",
        "The ids only have to be distinct; no request sends them back to such an upstream.",
    ),
    Emulation(
        "prompt_logprobs",
        "any",
        "that omit the null of the first token",
        "null, then the values of the upstream.",
        "The first token has no logprob; the gateway remembers the number of tokens.",
    ),
    Emulation(
        "load_weights that creates a model",
        "0.24.1 on",
        "that cannot",
        "weights_info (before 0.6.0 get_training_run), create_model, then load_weights, as one future.",
        "Clients before 0.24.1 make these requests themselves.",
    ),
    Emulation(
        "forward and forward_backward",
        "any",
        "any",
        "forward is forward_backward with forward_only in protobuf, and an operation of its own in JSON.",
        "The contract has both forms of one operation.",
    ),
    Emulation(
        "results that are not ready",
        "any",
        "any",
        "The gateway polls the upstream for up to 30 s and then responds with 408.",
        "A poll changes nothing.",
    ),
    Emulation(
        "failures",
        "any",
        "that report them as status 400, 409 or 422, or as detail",
        "Status 200 with error and category.",
        "Official clients take other forms for errors of the poll itself.",
    ),
    Emulation(
        "values in place of futures, and futures in place of values",
        "any",
        "that do so",
        "The gateway keeps the value under an id of its own, or polls for the value.",
        "The client gets the same value in the form of the contract.",
    ),
    Emulation(
        "weights_info",
        "0.6.0 on",
        "before 0.6.0",
        "get_training_run of the run that the path names.",
        "Both describe the base model and the rank of the run.",
    ),
    Emulation(
        "get_sampler",
        "0.6.0 on",
        "before 0.6.0",
        "The base model and path of create_sampling_session, which the gateway remembers.",
        "A sampling session never changes either of them.",
    ),
    Emulation(
        "list_checkpoints and list_model_checkpoints",
        "any",
        "that have the other one",
        "One in place of the other.",
        "A model and its training run have the same id.",
    ),
    Emulation(
        "telemetry, session_heartbeat, finish_session",
        "any",
        "without them",
        "Accepted, and not passed on.",
        "No response or result depends on them; such an upstream ends sessions by itself.",
    ),
    Emulation(
        "display_name of sessions",
        "0.34.0 on",
        "before 0.34.0",
        "Not passed on; the gateway remembers it and adds it to get_session.",
        "It is a name for people, and no other response has it.",
    ),
    Emulation(
        "provenance spans of datums",
        "0.26.2 on",
        "before 0.26.2, or with JSON batches",
        "Not passed on.",
        "They record where tokens came from, and change no loss.",
    ),
    Emulation(
        "optimizer of load_weights",
        "before 0.6.0",
        "0.6.0 on",
        "false; and false is not sent to upstreams before 0.6.0.",
        "Without the field, a server loads the weights alone.",
    ),
    Emulation(
        "optimizer_config of AdamW, record_stability_info false",
        "0.29.1 on, 0.26.2 on",
        "before",
        "Not sent.",
        "Such an upstream has no other optimizer, and records nothing.",
    ),
    Emulation(
        "process_uuid of telemetry",
        "before 0.24.1",
        "0.24.1 on",
        "A UUID that is derived from the session; and none is sent to upstreams before 0.24.1.",
        "Such a client has one process for each session, and no result depends on telemetry.",
    ),
    Emulation(
        "tokens of images",
        "before 0.6.0",
        "0.6.0 on",
        "tokens is sent as expected_tokens; height and width are those of the image itself.",
        "The field was renamed.",
    ),
)


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
        self._missing: set[str] = set()
        """Optional operations that the upstream has been found not to have."""
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
        """Return the response to a request."""
        name = request.operation.name
        response = await self._by_operation.get(name, self._pass)(request, exchange)
        if response.status in ENDPOINT_MISSING and _is_missing_endpoint(request, response):
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
        number = json_object(request.wire.content or b"").get("num_samples", 1)
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
        if _always_has(dialect, "weights_info"):
            return await self._pass(request, exchange)
        exchange.form = "weights_info"
        info = await self._loading.describe(request, request.body.tinker_path, dialect, exchange)
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
            is_certain = dialect.is_fixed or not _is_missing_endpoint(request, response)
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
        if name not in self._missing and dialect.may_have_operation(name):
            response = await self._relay.relay(request, exchange)
            if not _is_missing_endpoint(request, response):
                return response
            self._missing.add(name)
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


def _is_missing_endpoint(request: ClientRequest, response: WireResponse) -> bool:
    """Return whether a response is about the path, and not about a thing that the request names."""
    if response.status == 404:
        detail = json_object(response.content).get("detail")
        # Frameworks give this text, or none, for a path that they do not know.
        return detail is None or str(detail).strip(" .").lower() == "not found" or request.wire.path in str(detail)
    return response.status == 405
