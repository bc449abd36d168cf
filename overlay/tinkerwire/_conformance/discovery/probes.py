"""Probes: requests that show which operations, fields and encodings a server has; they create sessions alone."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from tinkerwire_base.call import JSON, PROTOBUF, Operation, WireRequest
from tinkerwire_generated import models
from tinkerwire_generated.api.training import forward_backward
from tinkerwire_generated.availability import (
    BODY_VERSIONS,
    FIELD_VERSIONS,
    NEWEST,
    OPERATION_VERSIONS,
    PARAMETER_VERSIONS,
    PROTOBUF_RESULT_VERSIONS,
    TYPE_VERSIONS,
)
from tinkerwire_generated.operations import OPERATIONS

from ..._wire import codec
from ..._wire.dialect import Dialect
from ..client.futures import is_unready
from ..client.wire_client import WireClient
from ..exchange import Exchange
from ..subject.training_model import make_datum
from .clues import DECISIVE, LIKELY, STRONG, WEAK, Clue, known_and_unknown

UNKNOWN_ID = "no-such-id"
UNKNOWN_FIELD = "no_such_field"
UNKNOWN_PATH = "no_such_operation"
CHECKPOINT_IDS = (f"weights/{UNKNOWN_ID}", UNKNOWN_ID)
"""Ids of no checkpoint: the form that clients send, and the name alone, which some servers take in its place."""
RESPONSE_TIMEOUT_S = 20.0
SESSION_IDS_TIMEOUT_S = 10.0
"""Time for which the end of the discovery waits for the ids of sessions."""
MAX_CONCURRENT = 8
SAMPLE_TIMEOUT_S = 120.0
"""Time limit of a poll for the first sample, for which some servers compile."""
MAX_PROBE_POLLS = 20
MISSING_DETAILS = frozenset({"not found", "method not allowed", "not implemented"})
"""Texts with which web frameworks answer requests for paths that they do not know."""
NEVER_PROBED = frozenset({"delete_own_api_key", "create_api_key", "auth_config", "sample"})
"""Operations whose probe could change something, or that the models do not describe."""

_TEXT = {"chunks": [{"type": "encoded_text", "tokens": [1]}]}
_SAMPLE: Mapping[str, Any] = {
    "prompt": _TEXT,
    "sampling_params": {"max_tokens": 1},
    "num_samples": 1,
    "sampling_session_id": UNKNOWN_ID,
    "seq_id": 0,
}
_SAVE: Mapping[str, Any] = {"model_id": UNKNOWN_ID, "path": UNKNOWN_ID, "seq_id": 1}


@attrs.frozen
class FieldProbe:
    """A request for something that does not exist, with a field that only newer versions have."""

    operation: str
    body: Mapping[str, Any]
    model: str
    field: str
    value: Any
    inside: str = ""
    """The object in the body that has the field; empty for the body itself."""

    def with_field(self, name: str, value: Any) -> dict[str, Any]:
        """Return the body with one more field."""
        if not self.inside:
            return {**self.body, name: value}
        return {**self.body, self.inside: {**self.body[self.inside], name: value}}


_LOAD: Mapping[str, Any] = {"model_id": UNKNOWN_ID, "path": f"tinker://{UNKNOWN_ID}/weights/{UNKNOWN_ID}", "seq_id": 1}
_STEP: Mapping[str, Any] = {"model_id": UNKNOWN_ID, "adam_params": {"learning_rate": 0.0}, "seq_id": 1}
_CREATE: Mapping[str, Any] = {
    "session_id": UNKNOWN_ID,
    "model_seq_id": 0,
    "base_model": UNKNOWN_ID,
    "lora_config": {"rank": 4},
}
FIELD_PROBES = (
    FieldProbe("load_weights", _LOAD, "LoadWeightsRequest", "optimizer", False),
    FieldProbe("optim_step", _STEP, "AdamParams", "weight_decay", 0.0, "adam_params"),
    FieldProbe("save_weights", _SAVE, "SaveWeightsRequest", "ttl_seconds", 3600),
    FieldProbe("retrieve_future", {"request_id": UNKNOWN_ID}, "FutureRetrieveRequest", "allow_metadata_only", False),
    FieldProbe("load_weights", _LOAD, "LoadWeightsRequest", "weights_access_token", None),
    FieldProbe("save_weights", _SAVE, "SaveWeightsRequest", "overwrite", False),
    FieldProbe("load_weights", _LOAD, "LoadWeightsRequest", "session_id", None),
    FieldProbe("asample", _SAMPLE, "SampleRequest", "record_stability_info", False),
    FieldProbe("save_weights", _SAVE, "SaveWeightsRequest", "user_metadata", None),
    FieldProbe("create_model", _CREATE, "CreateModelRequest", "optimizer_config", {"type": "adamw"}),
    FieldProbe("asample", _SAMPLE, "SampleRequest", "topk_sample_logprobs", 0),
    FieldProbe("asample", _SAMPLE, "SampleRequest", "target_prompt_logprobs", None),
    FieldProbe("asample", _SAMPLE, "SampleRequest", "prompt_alt_tokens_k", 0),
    FieldProbe("asample", _SAMPLE, "SampleRequest", "prompt_logprobs_last_n", None),
    FieldProbe("save_weights_for_sampler", _SAVE, "SaveWeightsForSamplerRequest", "kind", "snapshot"),
)
SESSION: Mapping[str, Any] = {"tags": ["conformance"], "user_metadata": {}, "sdk_version": "0.3.0"}
SESSION_PROBES = (
    FieldProbe("create_session", SESSION, "CreateSessionRequest", "project_id", None),
    FieldProbe("create_session", SESSION, "CreateSessionRequest", "display_name", None),
)
"""A server that takes a field creates a session."""


class Probes:
    """Sends probes to one server.

    Args:
        client: sends the requests.
    """

    def __init__(self, client: WireClient) -> None:
        self._client = client
        self._limit = asyncio.Semaphore(MAX_CONCURRENT)
        self._unknown_paths: dict[str, Exchange] = {}
        self.is_uniform = True
        """True until the server answers the path of an operation in another way than unknown paths."""
        self._creations: list[asyncio.Future[Exchange]] = []
        """Requests that may create a session."""

    async def send(self, method: str, path: str, body: Any = None, **headers: str) -> Exchange:
        """Send a request with a short time limit; ``path`` is below ``/api/v1/``."""
        request = self._client.json_request(method, path, body, **headers)
        if path != "create_session":
            return await self._send(request)
        creation = asyncio.ensure_future(self._send(request))
        self._creations.append(creation)
        # A cancelled discovery has to know the session that it created.
        return await asyncio.shield(creation)

    async def _send(self, request: WireRequest) -> Exchange:
        async with self._limit:
            return await self._client.send(request, RESPONSE_TIMEOUT_S)

    async def session_ids(self) -> list[str]:
        """Return the ids of all sessions that probes created; wait some seconds for those that are being created."""
        if not self._creations:
            return []
        ended, running = await asyncio.wait(self._creations, timeout=SESSION_IDS_TIMEOUT_S)
        for creation in running:
            creation.cancel()
        exchanges = [creation.result() for creation in ended if creation.exception() is None]
        ids = [exchange.member("session_id") for exchange in exchanges]
        return [session_id for session_id in ids if isinstance(session_id, str)]

    async def operations(self) -> dict[str, bool]:
        """Return for each operation that can be probed whether the server has it."""
        for method in ("GET", "POST", "PUT", "DELETE"):
            self._unknown_paths[method] = await self.send(method, UNKNOWN_PATH, None if method in "GET DELETE" else {})
        probed = [operation for name, operation in OPERATIONS.items() if name not in NEVER_PROBED]
        found = await asyncio.gather(*map(self._has_operation, probed))
        existing = {operation.name: exists for operation, exists in zip(probed, found, strict=True)}
        # Its path is also one of delete_checkpoint, for another checkpoint.
        existing["unpublish_checkpoint"] = existing["publish_checkpoint"] and existing["unpublish_checkpoint"]
        return existing

    async def operation_clues(self, existing: Mapping[str, bool]) -> list[Clue]:
        """Return what the existence of operations shows."""
        clues: list[Clue] = []
        for name, exists in existing.items():
            if name not in OPERATION_VERSIONS:
                continue
            since, until = OPERATION_VERSIONS[name]
            if exists:
                clues.append(Clue(f"{name} exists", (since, None), STRONG))
            else:
                clues.append(Clue(f"{name} does not exist", (None, since), WEAK))
            if until is not None:
                text = f"{name} {'still exists' if exists else 'does not exist'}"
                clues.append(Clue(text, (None, until) if exists else (until, None), LIKELY if exists else WEAK))
        return clues

    async def field_clues(self) -> list[Clue]:
        """Return what the acceptance and rejection of newer fields shows."""
        found = await asyncio.gather(*map(self._field_clue, (*FIELD_PROBES, *SESSION_PROBES)))
        return [*(clue for clue in found if clue is not None), *await self._chunk_clues()]

    async def encoding_clues(self) -> list[Clue]:
        """Return what the accepted encodings of batches show."""
        batch: dict[str, Any] = {"data": [], "loss_fn": "cross_entropy", "loss_fn_config": None}
        body = {"forward_backward_input": batch, "model_id": UNKNOWN_ID, "seq_id": 1}
        as_json = await self.send("POST", "forward_backward", body)
        clues: list[Clue] = []
        json_end = BODY_VERSIONS["forward_backward"][JSON][1]
        if as_json.status == 415:
            clues.append(Clue("forward_backward rejects JSON", (json_end, None), DECISIVE))
        elif as_json.response is not None and not self._is_unknown_path("POST", "forward_backward", as_json):
            clues.append(Clue("forward_backward takes JSON", (None, json_end), LIKELY))
        clues += await self._protobuf_clues()
        return clues

    async def _protobuf_clues(self) -> list[Clue]:
        protobuf_since = BODY_VERSIONS["forward_backward"][PROTOBUF][0]
        batch = models.ForwardBackwardInput(data=[make_datum()], loss_fn="cross_entropy")
        call = forward_backward(
            body=models.ForwardBackwardRequest(forward_backward_input=batch, model_id=UNKNOWN_ID, seq_id=1)
        )
        plain = self._client.prepare(codec.encode(call, Dialect.for_version(NEWEST)))
        as_protobuf = await self._client.send(plain, RESPONSE_TIMEOUT_S)
        if as_protobuf.status in (400, 415, 422):
            return [Clue("forward_backward rejects protobuf", (None, protobuf_since), LIKELY)]
        if as_protobuf.status not in (200, 404, 409, 410):
            return []
        clues = [Clue("forward_backward takes protobuf", (protobuf_since, None), STRONG)]
        config = models.ClientConfigResponse(proto_compress_fwdbwd=True)
        packed = self._client.prepare(codec.encode(call, Dialect.for_version(NEWEST, config)))
        as_zstd = await self._client.send(packed, RESPONSE_TIMEOUT_S)
        is_known = as_zstd.status == as_protobuf.status
        versions = PARAMETER_VERSIONS["forward_backward"]["Content-Encoding"]
        text = f"forward_backward {'takes' if is_known else 'rejects'} zstd"
        return [*clues, known_and_unknown(text, versions, is_known=is_known, weight=LIKELY)]

    def config_clues(self, flags: Sequence[str]) -> list[Clue]:
        """Return what the flags of client/config show; none of them shows nothing."""
        versions = FIELD_VERSIONS["ClientConfigResponse"]
        present = [name for name in flags if name in versions]
        clues = [Clue(f"client/config has {name}", versions[name], LIKELY) for name in present]
        if flags:
            absent = [name for name in versions if name not in flags]
            clues += [Clue(f"client/config has no {name}", (None, versions[name][0]), WEAK) for name in absent]
        return clues

    async def sample_clues(self) -> list[Clue]:
        """Return what the forms of a sample show; nothing if the server does not sample at once."""
        capabilities = await self.send("GET", "get_server_capabilities")
        supported = capabilities.member("supported_models")
        first = supported[0] if isinstance(supported, list) and supported else {}
        clues: list[Clue] = []
        length_versions = FIELD_VERSIONS["SupportedModel"]["max_context_length"]
        has_length = isinstance(first, dict) and first.get("max_context_length") is not None
        clues.append(
            known_and_unknown(
                f"get_server_capabilities has {'' if has_length else 'no '}max_context_length",
                length_versions,
                is_known=has_length,
                weight=LIKELY if has_length else WEAK,
            )
        )
        name = first.get("model_name") if isinstance(first, dict) else None
        session_id = await self._create_session()
        if not isinstance(name, str) or session_id is None:
            return clues
        opened = await self.send(
            "POST",
            "create_sampling_session",
            {"session_id": session_id, "sampling_session_seq_id": 0, "base_model": name},
        )
        sampler_id = opened.member("sampling_session_id")
        promise = await self.send("POST", "asample", {**_SAMPLE, "sampling_session_id": sampler_id})
        request_id = promise.member("request_id")
        if not isinstance(request_id, str):
            return clues
        has_ids = isinstance(promise.member("sample_sequence_ids"), list)
        ids_versions = FIELD_VERSIONS["UntypedAPIFuture"]["sample_sequence_ids"]
        text = f"asample returns {'' if has_ids else 'no '}sample_sequence_ids"
        clues.append(known_and_unknown(text, ids_versions, is_known=has_ids, weight=STRONG))
        return clues + await self._result_clues(request_id)

    async def _result_clues(self, request_id: str) -> list[Clue]:
        request = self._client.json_request("POST", "retrieve_future", {"request_id": request_id})
        request = attrs.evolve(request, headers={**request.headers, "accept": f"{PROTOBUF}, {JSON}"})
        exchange = await self._client.send(request, SAMPLE_TIMEOUT_S)
        for _ in range(MAX_PROBE_POLLS):
            if not is_unready(exchange):
                break
            await asyncio.sleep(0.2)
            exchange = await self._client.send(request, SAMPLE_TIMEOUT_S)
        if exchange.status != 200:
            return []
        if exchange.media_type == PROTOBUF:
            since = PROTOBUF_RESULT_VERSIONS["SampleResponse"][0]
            return [Clue("the result of asample is protobuf", (since, None), STRONG)]
        if isinstance(exchange.member("sequences"), list):
            return [Clue("the result of asample is JSON", (None, TYPE_VERSIONS["SampleResponse"][1]), LIKELY)]
        return []

    async def _create_session(self) -> str | None:
        session_id = (await self.send("POST", "create_session", dict(SESSION))).member("session_id")
        return session_id if isinstance(session_id, str) else None

    async def _has_operation(self, operation: Operation) -> bool:
        # One path without a checkpoint, else one for each form of its id.
        for template in dict.fromkeys(operation.path.replace("{checkpoint_id}", name) for name in CHECKPOINT_IDS):
            if await self._has_path(operation.method, template):
                return True
        return False

    async def _has_path(self, method: str, template: str) -> bool:
        path = re.sub(r"\{\w+\}", UNKNOWN_ID, template).removeprefix("/api/v1/")
        body: dict[str, Any] | None = None if method in ("GET", "DELETE") else {}
        exchange = await self.send(method, path, body)
        self.is_uniform = self.is_uniform and self._resembles_unknown_path(method, path, exchange)
        return not self._is_unknown_path(method, path, exchange)

    def _is_unknown_path(self, method: str, path: str, exchange: Exchange) -> bool:
        """Check whether a response is that to any unknown path, and not one about an unknown id."""
        if exchange.status in (405, 501):
            return True
        if exchange.status != 404:
            return False
        detail = exchange.member("detail")
        if isinstance(detail, str) and detail.strip().rstrip(".").lower() in MISSING_DETAILS:
            return True
        return self._resembles_unknown_path(method, path, exchange)

    def _resembles_unknown_path(self, method: str, path: str, exchange: Exchange) -> bool:
        unknown = self._unknown_paths.get(method)
        if unknown is None or unknown.status != exchange.status:
            return False
        return exchange.content.replace(path.encode(), UNKNOWN_PATH.encode()) == unknown.content

    async def _field_clue(self, probe: FieldProbe) -> Clue | None:
        """Return whether a server knows a field; None if its responses show nothing."""
        versions = FIELD_VERSIONS[probe.model][probe.field]
        # Some servers save even for a model that does not exist, and reject the second request because of the first.
        await self._send_field(probe, probe.body)
        plain = await self._send_field(probe, probe.body)
        unknown = await self._send_field(probe, probe.with_field(UNKNOWN_FIELD, 1))
        if plain.response is None or unknown.response is None or self._is_unknown_path("POST", probe.operation, plain):
            return None
        name = f"{probe.operation} %s {probe.field}"
        if names_field(unknown, UNKNOWN_FIELD) or unknown.status != plain.status:
            known = await self._send_field(probe, probe.with_field(probe.field, probe.value))
            if names_field(unknown, UNKNOWN_FIELD):
                is_known = not names_field(known, probe.field)
            else:
                is_known = known.status != unknown.status
            verb = "takes" if is_known else "rejects"
            return known_and_unknown(name % verb, versions, is_known=is_known, weight=STRONG)
        # The server ignores unknown fields: it knows this one if it rejects a wrong type.
        wrong = await self._send_field(probe, probe.with_field(probe.field, {"wrong": []}))
        is_known = wrong.status >= 400 and (wrong.status != plain.status or names_field(wrong, probe.field))
        verb = "checks" if is_known else "ignores"
        return known_and_unknown(name % verb, versions, is_known=is_known, weight=STRONG if is_known else LIKELY)

    async def _send_field(self, probe: FieldProbe, body: Mapping[str, Any]) -> Exchange:
        return await self.send("POST", probe.operation, dict(body))

    async def _chunk_clues(self) -> list[Clue]:
        def with_chunk(chunk: Mapping[str, Any]) -> dict[str, Any]:
            return {**_SAMPLE, "prompt": {"chunks": [*_TEXT["chunks"], chunk]}}

        plain = await self.send("POST", "asample", dict(_SAMPLE))
        unknown = await self.send("POST", "asample", with_chunk({"type": UNKNOWN_FIELD, "dmel": "AAAA"}))
        if unknown.status == plain.status or self._is_unknown_path("POST", "asample", plain):
            return []
        dmel = await self.send("POST", "asample", with_chunk({"type": "dmel", "dmel": "AAAA"}))
        is_known = dmel.status != unknown.status
        text = f"asample {'takes' if is_known else 'rejects'} chunks of the type dmel"
        return [known_and_unknown(text, TYPE_VERSIONS["DmelChunk"], is_known=is_known, weight=LIKELY)]


def names_field(exchange: Exchange, field: str) -> bool:
    """Check whether a rejection names a field, in its locations if it has them, else in its text."""
    if exchange.status < 400:
        return False
    detail = exchange.member("detail")
    if isinstance(detail, list) and all(isinstance(item, dict) and "loc" in item for item in detail):
        # Messages of some servers name unknown fields, which are not in the location.
        places = [(item["loc"], item.get("msg", "")) for item in detail]
        return any(field in map(str, loc) or _has_word(str(message), field) for loc, message in places)
    return _has_word(exchange.content.decode("utf-8", "replace"), field)


def _has_word(text: str, word: str) -> bool:
    return re.search(rf"\b{re.escape(word)}\b", text) is not None
