"""Requests of one version of the official SDK, and the responses that it accepts."""

from __future__ import annotations

import asyncio
import time
from typing import Any, TypeVar

import attrs
import orjson

from tinkerwire_base.call import PROTOBUF, Call, WireRequest
from tinkerwire_base.conversion.versioning import parse_version
from tinkerwire_generated import models
from tinkerwire_generated.api.auth import auth_token, client_config, client_dynamic_config
from tinkerwire_generated.api.session import create_session
from tinkerwire_generated.constants import RESULT_TYPES

from ..._wire import codec
from ..._wire.dialect import Dialect
from ..client.futures import MAX_PAUSE_S, PAUSE_S, Futures
from ..exchange import Exchange
from ..subject.server import Server
from ..subject.training_model import TrainingModel
from ..violation import Violation

T = TypeVar("T")
SDK_POLL_TIMEOUT_S = 45.0
"""Time after which the SDK gives up a poll and polls again."""
SDK_RESULT_TIMEOUT_S = 60.0
SDK_RETRIED_STATUSES = (408, 409, 429)
MAX_ATTEMPTS = 3
"""Attempts at one request; the SDK makes more, but a server that fails so often is not of much use to it."""
MAX_FAILED_POLLS = 6
"""Polls in a row that are answered with a server error, after which the SDK would go on without an end."""
MAX_BAD_POLLS = 4
"""Polls answered with status 400 until the newer versions raise an error."""
RETRIES_BUSY_POLLS_SINCE = "0.21.0"
"""Older versions raise an error if a poll is answered with status 429."""
DEFAULTS_SINCE = "0.18.0"
"""These versions send the defaults of a request and no null; older ones send each field that is set, even to null."""
SET_FIELDS: dict[str, dict[str, str]] = {
    "create_session": {"project_id": "0.15.0"},
    "optim_step": {},
    "save_weights": {"ttl_seconds": "0.9.0"},
    "save_weights_for_sampler": {"ttl_seconds": "0.9.0"},
}
"""Fields that older versions set to null, with the first version that has each."""
JSON_RESULT = "JSON in place of protobuf"
SEQUENCE_IDS_SINCE = "0.26.0"
"""These versions raise an error unless the response to asample names each sequence."""


@attrs.frozen
class Failure:
    """The error that the SDK raises for work that failed on the server."""

    text: str


class OfficialClient:
    """One version of the official SDK, as a server sees it.

    Args:
        server: the server under test.
        version: version of the SDK.
    """

    def __init__(self, server: Server, version: str) -> None:
        self.version = version
        self.server = server
        self.session_id = ""
        self.is_connected = False
        self.model: TrainingModel | None = None
        """The model of the steps."""
        self.has_gradients = False
        self.has_tried_to_save = False
        self.sampler_id = ""
        self.state_path = ""
        self.sampler_path = ""
        self.sampler_name = ""
        self._models = self._samplers = 0
        self._samples: dict[str, int] = {}
        self.use_dialect(Dialect.for_version(version))

    def use_dialect(self, dialect: Dialect) -> None:
        """Send later requests in a dialect of the version."""
        self.client = self.server.open_client(dialect)
        self.futures = Futures(self.client)

    def is_at_least(self, version: str) -> bool:
        """Check whether the SDK is of a version or newer."""
        return parse_version(self.version) >= parse_version(version)

    def has(self, operation: str) -> bool:
        """Check whether the SDK calls an operation."""
        return self.client.contract.has_operation(operation)

    def knows(self, model: str, field: str) -> bool:
        """Check whether the SDK has a field of a request or response."""
        return self.client.contract.has_field(model, field)

    async def connect(self) -> None:
        """Send what a new client sends.

        Raises:
            Violation: the constructor of the SDK would raise an error.
        """
        if self.is_connected:
            return
        if self.has("client_config"):
            body = models.ClientConfigRequest(sdk_version=self.version)
            config = await self.call(client_config(body=body))
            self.use_dialect(Dialect.for_version(self.version, config))
            if config.pjwt_auth_enabled:
                token = await self.call(auth_token(body=models.AuthTokenRequest()))
                self.client.use_key(token.jwt)
        if self.has("client_dynamic_config"):
            body = models.ClientConfigRequest(sdk_version=self.version)
            await self.call(client_dynamic_config(body=body), absent_status=404)
        session = models.CreateSessionRequest(tags=[], user_metadata={}, sdk_version=self.version)
        created = await self.call(create_session(body=session))
        self.session_id = created.session_id
        self.server.sessions.adopt(self.session_id)
        self.server.sessions.keep_alive(self.session_id)
        self.is_connected = True

    def take_model_seq_id(self) -> int:
        """Return the number of the next model of the session."""
        self._models += 1
        return self._models - 1

    def take_sampler_seq_id(self) -> int:
        """Return the number of the next sampling session of the session."""
        self._samplers += 1
        return self._samplers - 1

    def take_sample_seq_id(self, sampler_id: str) -> int:
        """Return the number of the next sample of a sampling session."""
        number = self._samples.get(sampler_id, 0)
        self._samples[sampler_id] = number + 1
        return number

    async def call(self, call: Call[T], *, absent_status: int = 0) -> T:
        """Send a call and return its result.

        Args:
            call: the call.
            absent_status: status that the SDK takes for the default values of the result.

        Raises:
            Violation: the SDK would raise an error.
        """
        name = call.operation.name
        exchange = await self.send(call)
        if absent_status and exchange.status == absent_status:
            return self.client.structure({}, call.operation.result_type(200))  # type: ignore[no-any-return]
        if exchange.response is None or not exchange.is_success:
            raise self.violation(f"a successful {name}", exchange.describe(), exchange)
        kind = call.operation.result_type(200)
        if kind is None:
            return None  # type: ignore[return-value]
        value = exchange.json()
        errors = self.client.contract.body_errors(name, value)
        if errors:
            raise self.violation(f"a response to {name} that its model takes", "; ".join(errors), exchange)
        return self._structure(value, kind, exchange)  # type: ignore[no-any-return]

    async def send(self, call: Call[Any]) -> Exchange:
        """Send a call, again after errors that the SDK retries; return the last exchange."""
        request = self._as_sent(call.operation.name, self.client.encode(call))
        pause = PAUSE_S
        exchange = await self.client.send(request)
        for _ in range(1, MAX_ATTEMPTS):
            if exchange.response is not None and exchange.status < 500 and exchange.status not in SDK_RETRIED_STATUSES:
                break
            await asyncio.sleep(pause)
            pause *= 10
            exchange = await self.client.send(request)
        return exchange

    def _as_sent(self, operation: str, request: WireRequest) -> WireRequest:
        """Return a request with the fields that the version sends: the older ones send what their own code sets."""
        if self.is_at_least(DEFAULTS_SINCE) or request.content is None or operation not in SET_FIELDS:
            return request
        body = orjson.loads(request.content)
        for field, since in SET_FIELDS[operation].items():
            if self.is_at_least(since):
                body.setdefault(field, None)
        if operation == "optim_step":
            body["adam_params"] = {"learning_rate": body["adam_params"]["learning_rate"]}
        return attrs.evolve(request, content=orjson.dumps(body))

    async def submit(self, call: Call[models.UntypedAPIFuture]) -> models.UntypedAPIFuture:
        """Submit queued work and return its future; raise Violation if the SDK gets none."""
        return self.read_future(call.operation.name, await self.send(call))

    def read_future(self, operation: str, exchange: Exchange) -> models.UntypedAPIFuture:
        """Return the future in the response to an operation; raise Violation if the SDK gets none."""
        if exchange.response is None or not exchange.is_success:
            raise self.violation(f"a future for {operation}", exchange.describe(), exchange)
        # Newer versions send forward as a forward_backward.
        reader = operation if self.has(operation) else "forward_backward"
        errors = self.client.contract.body_errors(reader, exchange.json())
        if errors:
            raise self.violation(f"a future for {operation}", "; ".join(errors), exchange)
        return self._structure(exchange.json(), models.UntypedAPIFuture, exchange)  # type: ignore[no-any-return]

    async def run(self, call: Call[models.UntypedAPIFuture]) -> Any:
        """Submit queued work and return its result.

        Raises:
            Violation: the SDK would raise an error, also one about the work itself.
        """
        future = await self.submit(call)
        value, exchange = await self.wait(future.request_id, RESULT_TYPES[call.operation.name])
        if isinstance(value, Failure):
            raise self.violation(f"the result of {call.operation.name}", f"the error {value.text}", exchange)
        return value

    async def wait(self, request_id: str, result_type: str) -> tuple[Any, Exchange]:
        """Poll as the SDK does and return the result, or a Failure, with the exchange that brought it.

        Raises:
            Violation: the SDK would raise an error about the response, or poll without an end.
        """
        deadline, pause = time.monotonic() + SDK_RESULT_TIMEOUT_S, PAUSE_S
        wants_metadata = self.knows("FutureRetrieveRequest", "allow_metadata_only")
        failed = bad = iteration = 0
        while True:
            request = self.futures.poll_request(request_id, result_type, iteration, allow_metadata_only=wants_metadata)
            exchange = await self.client.send(request, SDK_POLL_TIMEOUT_S)
            iteration += 1
            status = exchange.status
            failed = failed + 1 if exchange.response is None or status >= 500 else 0
            bad = bad + 1 if status == 400 else 0
            if status == 200:
                body = exchange.json()
                if not isinstance(body, dict) or not _asks_for_another_poll(body):
                    return self._read_result(result_type, body, exchange), exchange
                wants_metadata = wants_metadata and body.get("status") != "complete_metadata"
            elif not self._polls_after(status, bad):
                return Failure(exchange.describe()), exchange
            if failed >= MAX_FAILED_POLLS or time.monotonic() > deadline:
                text = f"the result of the work as {result_type}, or its error"
                raise self.violation(text, exchange.describe(), exchange)
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, MAX_PAUSE_S)

    def _polls_after(self, status: int, bad: int) -> bool:
        if status == 400:
            return self.is_at_least("0.16.0") and bad < MAX_BAD_POLLS
        if status == 429:
            return self.is_at_least(RETRIES_BUSY_POLLS_SINCE)
        return status in (0, 408) or status >= 500

    def _read_result(self, result_type: str, body: Any, exchange: Exchange) -> Any:
        kind = getattr(models, result_type)
        accepted = self.client.dialect.accept(kind)
        if exchange.media_type == PROTOBUF:
            if PROTOBUF not in accepted or exchange.response is None:
                raise self.violation(f"a {result_type} as JSON", exchange.describe(), exchange)
            try:
                return codec.decode(exchange.response.content, kind)
            except ValueError as error:
                raise self.violation(f"a {result_type} as protobuf", str(error), exchange) from None
        if isinstance(body, dict) and "error" in body:
            return Failure(str(body["error"]))
        if accepted == PROTOBUF:
            raise self.violation(f"a {result_type} as protobuf", f"{JSON_RESULT}: {exchange.describe()}", exchange)
        errors = self.client.contract.model_errors(result_type, body)
        if errors:
            raise self.violation(f"a {result_type} that its model takes", "; ".join(errors), exchange)
        return self._structure(body, kind, exchange)

    def _structure(self, value: Any, kind: Any, exchange: Exchange) -> Any:
        try:
            return self.client.structure(value, kind)
        except ValueError as error:
            raise self.violation(f"a value for {kind}", str(error), exchange) from None

    def violation(self, expected: str, received: str, exchange: Exchange | None = None) -> Violation:
        """Return a violation of what this version of the SDK needs; by default the last exchange proves it."""
        if exchange is None and self.client.recent:
            exchange = self.client.recent[-1]
        return Violation(f"{expected} for SDK {self.version}", received, exchange)


def _asks_for_another_poll(body: dict[str, Any]) -> bool:
    return body.get("type") == "try_again" or body.get("status") == "complete_metadata"
