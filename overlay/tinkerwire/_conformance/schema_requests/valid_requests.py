"""Valid requests with the ids of a run's own session, model and samplers, to derive others from."""

from __future__ import annotations

import json
from typing import Any

import attrs
import orjson

from tinkerwire_base.call import Call
from tinkerwire_generated import models
from tinkerwire_generated.api.auth import client_config, client_dynamic_config
from tinkerwire_generated.api.futures import cancel_future, retrieve_future, retrieve_futures
from tinkerwire_generated.api.runs import set_checkpoint_ttl
from tinkerwire_generated.api.sampling import create_sampling_session, join_sampling_session
from tinkerwire_generated.api.session import create_session, search_sessions, session_heartbeat
from tinkerwire_generated.api.telemetry import telemetry
from tinkerwire_generated.api.training import create_model, get_info
from tinkerwire_generated.api.weights import (
    copy_weights,
    save_weights,
    save_weights_external,
    save_weights_for_sampler,
    weights_info,
)
from tinkerwire_generated.constants import RESULT_TYPES

from ..._checkpoints.paths import parse_checkpoint_address
from ..client.futures import QueuedWork, Result
from ..exchange import Exchange
from ..subject.sampler import OpenSampler
from ..subject.server import Server
from ..subject.training_model import TrainingModel, make_datum
from ..violation import NotApplicable, Violation

FAMILIES: dict[str, tuple[str, ...]] = {
    "session": (
        "create_session",
        "session_heartbeat",
        "client_config",
        "client_dynamic_config",
        "telemetry",
        "search_sessions",
    ),
    "training": ("create_model", "get_info", "forward", "forward_backward", "optim_step"),
    "sampling": ("create_sampling_session", "asample", "join_sampling_session"),
    "futures": ("retrieve_future", "retrieve_futures", "cancel_future"),
    "weights": (
        "save_weights",
        "save_weights_for_sampler",
        "load_weights",
        "weights_info",
        "save_weights_external",
        "copy_weights",
        "set_checkpoint_ttl",
    ),
}
"""Operations with a JSON body that tests vary; requests of others would change what is not the run's own."""


@attrs.define
class Scene:
    """Objects that the requests of one test name: a session, and a model, a sampler and a checkpoint in it."""

    server: Server
    session_id: str
    model: TrainingModel
    sampler: OpenSampler
    path: str
    """A checkpoint of the model for training."""
    request_id: str
    """A finished sample of the sampler."""

    @classmethod
    async def create(cls, server: Server) -> Scene:
        """Create a scene; its model is unloaded after the test."""
        model, sampler = await server.new_model(), await server.new_sampler()
        path = await model.save_weights(server.new_name())
        submission = await sampler.submit()
        await server.futures.wait(submission)
        return cls(server, await server.session(), model, sampler, path, submission.request_id)

    def operations(self, family: str) -> list[str]:
        """Return the operations of a family that the server has, with a JSON body.

        Raises:
            NotApplicable: the server has no such operation.
        """
        contract = self.server.contract
        names = [
            name
            for name in FAMILIES[family]
            if name in contract.operations and name not in self.server.missing and contract.request_schema(name)
        ]
        if not names:
            raise NotApplicable(f"wire {self.server.wire} has no such operation with a JSON body")
        return names

    async def call(self, operation: str) -> Call[Any]:
        """Return a valid call of an operation, under the next number of the model or sampler."""
        server, model, sampler = self.server, self.model, self.sampler
        seq_id = model.next_seq_id
        if operation == "create_session":
            return create_session(
                body=models.CreateSessionRequest(tags=["conformance"], user_metadata=None, sdk_version=server.wire)
            )
        if operation == "session_heartbeat":
            return session_heartbeat(body=models.SessionHeartbeatRequest(session_id=self.session_id))
        if operation == "client_config":
            return client_config(body=models.ClientConfigRequest(sdk_version=server.wire))
        if operation == "client_dynamic_config":
            return client_dynamic_config(body=models.ClientConfigRequest(sdk_version=server.wire))
        if operation == "telemetry":
            has_process = server.contract.has_field("TelemetrySendRequest", "process_uuid")
            body = models.TelemetrySendRequest(
                events=[],
                platform="Linux",
                sdk_version=server.wire,
                session_id=self.session_id,
                process_uuid="1" if has_process else None,
            )
            return telemetry(body=body)
        if operation == "search_sessions":
            return search_sessions(body=models.SessionSearchRequest(session_id=self.session_id))
        if operation == "create_model":
            return create_model(body=await server.create_model_request())
        if operation == "get_info":
            return get_info(body=models.GetInfoRequest(model_id=model.id))
        if operation == "forward":
            return model.forward_call([make_datum()], seq_id=seq_id)
        if operation == "forward_backward":
            return model.forward_backward_call([make_datum()], seq_id=seq_id)
        if operation == "optim_step":
            return model.optim_step_call(seq_id=seq_id)
        if operation == "create_sampling_session":
            return create_sampling_session(
                body=models.CreateSamplingSessionRequest(
                    session_id=self.session_id,
                    sampling_session_seq_id=server.take_sampler_seq_id(self.session_id),
                    base_model=await server.base_model(),
                )
            )
        if operation == "asample":
            return sampler.sample_call()
        if operation == "join_sampling_session":
            return join_sampling_session(body=models.JoinSamplingSessionRequest(sampling_session_id=sampler.id))
        if operation == "retrieve_future":
            return retrieve_future(body=models.FutureRetrieveRequest(request_id=self.request_id))
        if operation == "retrieve_futures":
            target = models.SamplingSessionFuturesTarget(sampling_session_id=sampler.id)
            return retrieve_futures(body=models.FuturesRetrieveRequest(target=target, timeout=0.0))
        if operation == "cancel_future":
            return cancel_future(body=models.CancelFutureRequest(request_id=self.request_id))
        return self._weights_call(operation, seq_id)

    def _weights_call(self, operation: str, seq_id: int) -> Call[Any]:
        server, model, name = self.server, self.model, self.server.new_name()
        if operation == "save_weights":
            return save_weights(body=models.SaveWeightsRequest(model_id=model.id, path=name, seq_id=seq_id))
        if operation == "save_weights_for_sampler":
            return save_weights_for_sampler(
                body=models.SaveWeightsForSamplerRequest(model_id=model.id, path=name, seq_id=seq_id)
            )
        if operation == "load_weights":
            call = model.load_weights_call(self.path)
            model.next_seq_id = seq_id
            return call
        if operation == "weights_info":
            return weights_info(body=models.WeightsInfoRequest(tinker_path=self.path))
        if operation == "save_weights_external":
            return save_weights_external(
                body=models.SaveWeightsExternalRequest(model_id=model.id, path=name, seq_id=seq_id)
            )
        if operation == "copy_weights":
            body = models.CopyWeightsRequest(
                session_id=self.session_id,
                model_seq_id=server.take_model_seq_id(self.session_id),
                source_path=self.path,
            )
            return copy_weights(body=body)
        if operation == "set_checkpoint_ttl":
            ttl = models.SetCheckpointTtlRequest(ttl_seconds=7200)
            return set_checkpoint_ttl(*parse_checkpoint_address(self.path), body=ttl)
        raise ValueError(f"no valid request of {operation} is known")

    async def body(self, operation: str) -> tuple[str, str, dict[str, Any]]:
        """Return method, path and JSON body of a valid request."""
        request = self.server.client.encode_json(await self.call(operation))
        return request.method, request.path.removeprefix("/api/v1/"), orjson.loads(request.content or b"{}")

    async def send(self, operation: str, method: str, path: str, body: Any) -> tuple[Exchange, Result | None]:
        """Send a request of any body, and wait for the work that it started.

        Returns:
            The response that ended it, and the result or failure of work; None for an error status.
        """
        # orjson rejects integers of more than 64 bits, which free JSON may have.
        content = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        exchange = await self.server.client.send(self.server.client.json_request(method, path, content))
        if exchange.status != 200 or operation not in RESULT_TYPES:
            self._adopt(operation, exchange, None)
            return exchange, None
        submission: QueuedWork = self.server.futures.read_submission(operation, exchange)
        if isinstance(body, dict) and (body.get("model_id"), body.get("seq_id")) == (
            self.model.id,
            self.model.next_seq_id,
        ):
            self.model.take_seq_id()
        try:
            result = await self.server.futures.wait(submission)
        except Violation as error:
            # The form of a failure is another requirement.
            if error.exchange is None or error.exchange.status < 400:
                raise
            return error.exchange, None
        self._adopt(operation, exchange, result)
        return result.exchange, result

    def _adopt(self, operation: str, exchange: Exchange, result: Result | None) -> None:
        """Note what a request created, so that it is deleted at the end."""
        body = exchange.json() if exchange.status == 200 else None
        value = result.value if result else None
        if operation == "create_session" and isinstance(body, dict):
            self.server.sessions.adopt(str(body.get("session_id")))
        if operation == "copy_weights" and isinstance(body, dict):
            self.server.saved_paths.append(str(body.get("tinker_path")))
        if isinstance(value, models.CreateModelResponse):
            self.server.adopt(value.model_id)
        if isinstance(value, models.LoadWeightsResponse) and value.model_id not in (None, self.model.id):
            self.server.adopt(str(value.model_id))
        path = getattr(value, "path", None)
        if operation.startswith("save_weights") and path:
            self.server.saved_paths.append(path)
