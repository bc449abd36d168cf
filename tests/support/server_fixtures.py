"""Fixtures of an embedded server in this process, and of a caller that sends requests to it without a client."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar, Protocol

import attrs
import jsonschema_rs
import orjson
import pytest

from tinkerwire._server.engine import LoraModel
from tinkerwire._server.http.openapi import load_contract
from tinkerwire._server.http.responses import HttpError
from tinkerwire._server.http.routing import Router
from tinkerwire._wire.protobuf import decode_output, encode_request
from tinkerwire.local import EmbeddedServer
from tinkerwire_base.call import JSON, PROTOBUF, WireRequest
from tinkerwire_base.conversion.converter import Converter
from tinkerwire_generated.models import ForwardBackwardInput, ForwardBackwardRequest, ForwardRequest

NANO = "tinkerwire/byte-nano"
CONVERTER = Converter()
ACCEPT = f"{PROTOBUF}, {JSON}"


@cache
def create_router(version: str) -> Router:
    """Return the router of a wire version."""
    return Router(load_contract(version))


@cache
def _create_response_validator(version: str, operation: str, status: int) -> jsonschema_rs.Validator | None:
    """Return the validator of the JSON body of an operation's response; None for an empty body."""
    document = load_contract(version)
    row = next(op for item in document["paths"].values() for op in item.values() if op["operationId"] == operation)
    response = row["responses"].get(str(status)) or row["responses"]["default"]
    content = response.get("content")
    if content is None:
        return None
    schema = {**content[JSON]["schema"], "components": document["components"]}
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True)


def check_response(version: str, request: WireRequest, status: int, body: Any) -> None:
    """Check that a response fits the contract."""
    try:
        operation, _ = create_router(version).find(request.method, request.path)
    except HttpError:
        return
    validator = _create_response_validator(version, operation.name, status)
    if validator is None:
        assert body is None, f"{operation.name} {status}: {body}"
    elif not isinstance(body, bytes):
        validator.validate(body)


@attrs.frozen
class Reply:
    """A response with a parsed body: a JSON value, bytes, or None."""

    status: int
    body: Any
    headers: Mapping[str, str]


@attrs.frozen
class Caller:
    """Sends requests to one server; paths are relative to /api/v1/ unless they begin with a slash.

    Args:
        server: the server.
        checks_contract: check that each response fits the contract.
    """

    server: EmbeddedServer
    checks_contract: bool = True

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Sequence[tuple[str, str]] = (),
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a request; ``key`` is its idempotency key."""
        request_headers = {"content-type": JSON, **(headers or {})}
        if key is not None:
            request_headers["x-idempotency-key"] = key
        content = body if isinstance(body, bytes) else None if body is None else orjson.dumps(body)
        request = WireRequest(
            method=method,
            path=path if path.startswith("/") else f"/api/v1/{path}",
            query=tuple(query),
            headers=request_headers,
            content=content,
        )
        response = await self.server.handle(request)
        is_json = response.headers.get("content-type") == JSON
        value: Any = orjson.loads(response.content) if is_json else response.content or None
        if self.checks_contract:
            check_response(self.server.wire_version, request, response.status, value)
        return Reply(response.status, value, response.headers)

    def __call__(self, method: str, path: str, body: Any = None, **options: Any) -> Reply:
        """Send a request and wait for the response; see :meth:`send`."""
        return asyncio.run(self.send(method, path, body, **options))

    def post(self, path: str, body: Any, **options: Any) -> Reply:
        """Send a POST request."""
        return self("POST", path, body, **options)

    def post_protobuf(self, model_id: str, seq_id: int = 0, *, forward: bool = False, **headers: str) -> Reply:
        """Send a forward_backward of :func:`create_batch` as protobuf."""
        loss_input = CONVERTER.structure(create_batch(), ForwardBackwardInput)
        request: ForwardRequest | ForwardBackwardRequest
        if forward:
            request = ForwardRequest(forward_input=loss_input, model_id=model_id, seq_id=seq_id or None)
        else:
            request = ForwardBackwardRequest(
                forward_backward_input=loss_input, model_id=model_id, seq_id=seq_id or None
            )
        content = encode_request(request, self.server.wire_version)
        further_headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.post("forward_backward", content, headers={"content-type": PROTOBUF, **further_headers})

    def submit(self, path: str, body: Any, **options: Any) -> str:
        """Submit work and return its request id."""
        reply = self.post(path, body, **options)
        assert reply.status == 200, reply
        request_id: str = reply.body["request_id"]
        return request_id

    def poll(self, request_id: str, accept: str = JSON) -> Reply:
        """Poll for a result once."""
        return self.post("retrieve_future", {"request_id": request_id}, headers={"accept": accept})

    def result(self, request_id: str) -> Any:
        """Return a result; a protobuf result as bytes."""
        reply = self.poll(request_id, ACCEPT)
        assert reply.status == 200, reply
        return reply.body

    def run(self, path: str, body: Any, **options: Any) -> Any:
        """Submit work and return its result."""
        return self.result(self.submit(path, body, **options))

    def create_session(self) -> str:
        """Create a session and return its id."""
        body = {"tags": [], "user_metadata": None, "sdk_version": "0.16.1"}
        session_id: str = self.post("create_session", body).body["session_id"]
        return session_id

    def create_sampler(self) -> str:
        """Create a sampling session on the base model and return its id."""
        body = {"session_id": self.create_session(), "sampling_session_seq_id": 0, "base_model": NANO}
        sampler_id: str = self.post("create_sampling_session", body).body["sampling_session_id"]
        return sampler_id

    def create_model(self, session_id: str | None = None, number: int = 0, **lora: Any) -> str:
        """Create a model of rank 4 and return its id."""
        body = {
            "session_id": session_id or self.create_session(),
            "model_seq_id": number,
            "base_model": NANO,
            "lora_config": {"rank": 4, "seed": 1, **lora},
        }
        model_id: str = self.run("create_model", body)["model_id"]
        return model_id

    def train_step(self, model_id: str) -> None:
        """Change the weights of a model."""
        self.run("forward_backward", {"model_id": model_id, "forward_backward_input": create_batch()})
        self.run("optim_step", {"model_id": model_id, "adam_params": {"learning_rate": 0.01}})

    def loss(self, model_id: str) -> float:
        """Return the loss of :func:`create_batch`."""
        output = self.run("forward", {"model_id": model_id, "forward_input": create_batch()})
        value: float = output["metrics"]["loss:sum"]
        return value

    def protobuf_loss(self, model_id: str) -> float:
        """Return the loss of :func:`create_batch`, sent and received as protobuf."""
        output = decode_output(self.result(self.post_protobuf(model_id, forward=True).body["request_id"]))
        return output.metrics["loss:sum"]


class ServerFactory(Protocol):
    """Starts a server that is closed after the test."""

    def __call__(self, **settings: Any) -> Caller:
        """Start a server with settings of EmbeddedServer and return a caller of it."""


class BatchFactory(Protocol):
    """Creates forward_backward inputs; see :func:`create_batch`."""

    def __call__(self, tokens: Sequence[int] = ..., loss_fn: str = ...) -> dict[str, Any]:
        """Create a forward_backward_input."""


def create_batch(tokens: Sequence[int] = (72, 101, 108, 108, 111), loss_fn: str = "cross_entropy") -> dict[str, Any]:
    """Create a forward_backward_input with one datum."""
    targets = {"data": list(tokens[1:]), "dtype": "int64", "shape": [len(tokens) - 1]}
    datum = {"model_input": {"chunks": [{"tokens": list(tokens[:-1])}]}, "loss_fn_inputs": {"target_tokens": targets}}
    return {"data": [datum], "loss_fn": loss_fn}


@pytest.fixture
def batch() -> BatchFactory:
    """Return a factory of batches."""
    return create_batch


@pytest.fixture
def serve() -> Iterator[ServerFactory]:
    """Start servers, and close them after the test."""
    servers: list[EmbeddedServer] = []

    def start(**settings: Any) -> Caller:
        servers.append(EmbeddedServer(**settings))
        return Caller(servers[-1])

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def call(serve: ServerFactory, tmp_path: Path) -> Caller:
    """Return a caller of a server with its own folder."""
    return serve(folder=tmp_path / "data", long_poll_s=10.0)


@pytest.fixture
def sampler_id(call: Caller) -> str:
    """Return the id of a sampling session on a base model."""
    return call.create_sampler()


@attrs.define
class Clock:
    """A clock that only moves when a test sets it."""

    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """Return a clock that only moves when the test sets it."""
    return Clock()


class Timer:
    """A replacement of threading.Timer that a test ends."""

    waiting: ClassVar[list[Timer]] = []

    def __init__(self, seconds: float, function: Callable[..., None], arguments: list[Any]) -> None:
        self.seconds = seconds
        self.end = partial(function, *arguments)

    def start(self) -> None:
        """Add the timer to the waiting ones."""
        self.waiting.append(self)

    def cancel(self) -> None:
        """Remove the timer from the waiting ones."""
        if self in self.waiting:
            self.waiting.remove(self)


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> list[Timer]:
    """Replace the timers of all gaps and return the waiting ones."""
    monkeypatch.setattr(threading, "Timer", Timer)
    monkeypatch.setattr(Timer, "waiting", [])
    return Timer.waiting


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Block the forward pass of every model until the test sets this event."""
    opened = threading.Event()
    original = LoraModel.forward

    def forward(self: LoraModel, *arguments: Any) -> Any:
        assert opened.wait(20)
        return original(self, *arguments)

    monkeypatch.setattr(LoraModel, "forward", forward)
    yield opened
    opened.set()
