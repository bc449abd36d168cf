"""Creation of a model from saved weights, for an upstream that creates and loads in two steps.

The id of the future holds what the second step needs, so that another gateway can finish what one has begun.
"""

from __future__ import annotations

import asyncio
import base64
import uuid
from collections import OrderedDict

import attrs
import orjson

from tinkerwire_base.call import Call, WireResponse
from tinkerwire_generated import models
from tinkerwire_generated.operations import OPERATIONS

from .._server.http.responses import HttpError
from .._wire.dialect import Dialect
from . import memory as kinds
from .attempts import CONFLICT_STATUS
from .front import ClientRequest, is_missing_endpoint, json_object
from .polls import ERROR_PAUSE_S, Polls, not_ready
from .relay import Relay, RelayedExchange
from .upstream import Refused

PREFIX = "gw:load:"
REJECTED_STATUSES = frozenset({400, 404, 410, 422})
"""Statuses by which a server rejects the second step."""
MAX_LOCKS = 10_000
NOT_LOADED = ""
"""Value of an id in the memory until the load is submitted."""


@attrs.frozen
class PendingLoad:
    """A creation that was submitted, and the load that follows it."""

    create_id: str
    """The upstream's future of the creation."""
    path: str
    optimizer: bool
    alias: str
    """The id under which the client may know the model before it exists."""

    def to_id(self) -> str:
        """Return the id of the future of both steps."""
        return PREFIX + base64.urlsafe_b64encode(orjson.dumps(attrs.astuple(self))).decode().rstrip("=")

    @classmethod
    def from_id(cls, request_id: str) -> PendingLoad:
        """Read an id.

        Raises:
            HttpError: 404 if the id is not one of the gateway.
        """
        text = request_id.removeprefix(PREFIX)
        try:
            create_id, path, optimizer, alias = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        except (ValueError, TypeError):
            raise HttpError(404, f"tinkerwire gateway: {request_id!r} is not a request of this gateway") from None
        return cls(str(create_id), str(path), bool(optimizer), str(alias))


class Loading:
    """Creates models from saved weights in two steps.

    Args:
        relay: sends the requests.
        polls: waits for the results.
    """

    def __init__(self, relay: Relay, polls: Polls) -> None:
        self._relay = relay
        self._polls = polls
        self._locks: OrderedDict[str, asyncio.Lock] = OrderedDict()

    async def start(self, request: ClientRequest, dialect: Dialect, exchange: RelayedExchange) -> WireResponse:
        """Submit the creation of a model like the saved one, and return the future of creation and load."""
        body: models.LoadWeightsRequest = request.body
        if body.session_id is None or body.model_seq_id is None:
            raise HttpError(400, "model_id: pass model_id, or session_id and model_seq_id for a new model")
        if body.weights_access_token is not None:
            raise self._relay.lacks("load_weights that creates a model with weights_access_token", dialect, status=400)
        alias = f"{body.session_id}:train:{body.model_seq_id}"
        self._relay.require(_load_call(alias, body.path, optimizer=bool(body.optimizer)), dialect)
        info = await self.describe(request, body.path, dialect, exchange)
        create = models.CreateModelRequest(
            session_id=body.session_id,
            model_seq_id=body.model_seq_id,
            base_model=body.base_model or info.base_model,
            user_metadata=body.user_metadata,
            lora_config=_lora_config(info),
            optimizer_config=body.optimizer_config or info.optimizer_config,
        )
        call: Call[models.UntypedAPIFuture] = Call(OPERATIONS["create_model"], body=create)
        future = await self._relay.call(request, call, exchange)
        self._relay.memory.put(kinds.FUTURE, future.request_id, "create_model")
        pending = PendingLoad(future.request_id, body.path, bool(body.optimizer), alias)
        # Only an id that was issued may name an alias: a client could write one with the id of another's model.
        self._relay.memory.put(kinds.LOAD, pending.to_id(), NOT_LOADED)
        return request.json_response({"request_id": pending.to_id(), "model_id": alias})

    async def describe(
        self, request: ClientRequest, path: str, dialect: Dialect, exchange: RelayedExchange
    ) -> models.WeightsInfoResponse:
        """Return the base model and the adapter of saved weights, from their training run if need be."""
        if dialect.may_have_operation("weights_info"):
            body = models.WeightsInfoRequest(tinker_path=path)
            call: Call[models.WeightsInfoResponse] = Call(OPERATIONS["weights_info"], body=body)
            try:
                return await self._relay.call(request, call, exchange)
            except Refused as error:
                if not is_missing_endpoint(error.response, call.operation.path):
                    raise
        return await self.describe_run(request, path, exchange)

    async def describe_run(
        self, request: ClientRequest, path: str, exchange: RelayedExchange
    ) -> models.WeightsInfoResponse:
        """Return the base model and the adapter of the training run that saved weights are of."""
        run = await self.find_run(request, path, exchange)
        return models.WeightsInfoResponse(base_model=run.base_model, is_lora=run.is_lora, lora_rank=run.lora_rank)

    async def find_run(self, request: ClientRequest, path: str, exchange: RelayedExchange) -> models.TrainingRun:
        """Return the training run of saved weights."""
        run_id = path.removeprefix("tinker://").partition("/")[0]
        call: Call[models.TrainingRun] = Call(OPERATIONS["get_training_run"], path={"training_run_id": run_id})
        return await self._relay.call(request, call, exchange)

    async def poll(self, request: ClientRequest, request_id: str, exchange: RelayedExchange) -> WireResponse:
        """Return the result of both steps, or that of the first one that is not ready or has failed."""
        pending = PendingLoad.from_id(request_id)
        created = await self._polls.wait(request, pending.create_id, models.CreateModelResponse, exchange)
        model_id = json_object(created.content).get("model_id")
        if created.status >= 300 or not isinstance(model_id, str):
            return self._polls.convert(request, created, models.CreateModelResponse)
        if model_id != pending.alias and self._relay.memory.get(kinds.LOAD, request_id) is not None:
            self._relay.memory.put(kinds.MODEL, pending.alias, model_id)
        try:
            load_id = await self._submit(request, request_id, pending, model_id, exchange)
        except Refused as refused:
            status = refused.response.status
            if status == CONFLICT_STATUS:
                # Clients repeat a submission after a conflict, but not a poll.
                await asyncio.sleep(ERROR_PAUSE_S)
                return not_ready(request_id)
            if status not in REJECTED_STATUSES:
                raise
            # As the status of a poll, it would be about the future, or repeated.
            return self._polls.read_failure(request, refused.response)
        loaded = await self._polls.wait(request, load_id, models.LoadWeightsResponse, exchange)
        response = self._polls.convert(request, loaded, models.LoadWeightsResponse)
        value = json_object(response.content)
        if response.status >= 300 or "error" in value:
            return response
        return request.json_response({**value, "model_id": model_id, "path": value.get("path") or pending.path})

    async def _submit(
        self, request: ClientRequest, request_id: str, pending: PendingLoad, model_id: str, exchange: RelayedExchange
    ) -> str:
        """Submit the load once, and return the upstream's future."""
        memory = self._relay.memory
        lock = self._locks.setdefault(request_id, asyncio.Lock())
        if len(self._locks) > MAX_LOCKS:
            self._locks.popitem(last=False)
        async with lock:
            load_id = memory.get(kinds.LOAD, request_id)
            if not load_id:
                call = _load_call(model_id, pending.path, optimizer=pending.optimizer)
                # Another process, or this one before a restart, may have submitted it.
                key = str(uuid.uuid5(uuid.NAMESPACE_OID, request_id))
                load_id = (await self._relay.call(request, call, exchange, idempotency_key=key)).request_id
                memory.put(kinds.LOAD, request_id, load_id)
                memory.put(kinds.FUTURE, load_id, "load_weights")
        return load_id


def _load_call(model_id: str, path: str, *, optimizer: bool) -> Call[models.UntypedAPIFuture]:
    # Without a seq_id, which the client's own operations take from 1.
    body = models.LoadWeightsRequest(model_id=model_id, path=path, optimizer=optimizer)
    return Call(OPERATIONS["load_weights"], body=body)


def _lora_config(info: models.WeightsInfoResponse) -> models.LoraConfig | None:
    if info.lora_rank is None:
        return None
    parts = {name: getattr(info, name) for name in ("train_unembed", "train_mlp", "train_attn")}
    return models.LoraConfig(rank=info.lora_rank, **{name: value for name, value in parts.items() if value is not None})
