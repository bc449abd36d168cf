"""A server in this process, and a caller that speaks to it as a client would, without a client."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar

import attrs
import jsonschema_rs
import orjson
import pytest

from tinkerwire._server.engine import LoraModel
from tinkerwire._server.http.openapi import contract
from tinkerwire._server.http.responses import HttpError
from tinkerwire._server.http.routing import Router
from tinkerwire._wire.protobuf import decode_output, encode_request
from tinkerwire.local import EmbeddedServer
from tinkerwire_base.call import PROTOBUF, WireRequest
from tinkerwire_base.conversion.converter import Converter
from tinkerwire_generated.models import ForwardBackwardInput, ForwardBackwardRequest, ForwardRequest

NANO = "tinkerwire/byte-nano"
CONVERTER = Converter()
ACCEPT = "application/x-protobuf, application/json"


@cache
def router(version: str) -> Router:
    return Router(contract(version))


@cache
def _answer_validator(version: str, operation: str, status: int) -> jsonschema_rs.Validator | None:
    """For the JSON body that the contract gives the operation at a status; None for no body."""
    document = contract(version)
    row = next(op for item in document["paths"].values() for op in item.values() if op["operationId"] == operation)
    response = row["responses"].get(str(status)) or row["responses"]["default"]
    content = response.get("content")
    if content is None:
        return None
    schema = {**content["application/json"]["schema"], "components": document["components"]}
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True)


def check_answer(version: str, request: WireRequest, status: int, body: Any) -> None:
    """Every answer that any test gets fits the contract."""
    try:
        operation, _ = router(version).find(request.method, request.path)
    except HttpError:
        return
    validator = _answer_validator(version, operation.name, status)
    if validator is None:
        assert body is None, f"{operation.name} {status}: {body}"
    elif not isinstance(body, bytes):
        validator.validate(body)


@attrs.frozen
class Reply:
    status: int
    body: Any
    headers: Mapping[str, str]


@attrs.frozen
class Caller:
    """Calls one server; paths are relative to /api/v1/ unless they begin with a slash."""

    server: EmbeddedServer
    checks: bool = True
    """Whether each answer must fit the contract."""

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
        sent = {"content-type": "application/json", **(headers or {})}
        if key is not None:
            sent["x-idempotency-key"] = key
        content = body if isinstance(body, bytes) else None if body is None else orjson.dumps(body)
        request = WireRequest(
            method=method,
            path=path if path.startswith("/") else f"/api/v1/{path}",
            query=tuple(query),
            headers=sent,
            content=content,
        )
        answer = await self.server.handle(request)
        is_json = answer.headers.get("content-type") == "application/json"
        value: Any = orjson.loads(answer.content) if is_json else answer.content or None
        if self.checks:
            check_answer(self.server.wire_version, request, answer.status, value)
        return Reply(answer.status, value, answer.headers)

    def __call__(self, method: str, path: str, body: Any = None, **more: Any) -> Reply:
        return asyncio.run(self.send(method, path, body, **more))

    def post(self, path: str, body: Any, **more: Any) -> Reply:
        return self("POST", path, body, **more)

    def binary(self, model_id: str, seq_id: int = 0, *, forward: bool = False, **headers: str) -> Reply:
        """The answer to a binary forward_backward of :func:`batch`."""
        given = CONVERTER.structure(batch(), ForwardBackwardInput)
        about: Any = {"model_id": model_id, "seq_id": seq_id or None}
        request: Any = ForwardRequest(forward_input=given, **about)
        if not forward:
            request = ForwardBackwardRequest(forward_backward_input=given, **about)
        content = encode_request(request, self.server.wire_version)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.post("forward_backward", content, headers={"content-type": PROTOBUF, **sent})

    def submit(self, path: str, body: Any, **more: Any) -> str:
        """The request_id of queued work."""
        reply = self.post(path, body, **more)
        assert reply.status == 200, reply
        found: str = reply.body["request_id"]
        return found

    def result(self, request_id: str) -> Any:
        """The result; a binary one as it came."""
        reply = self.post("retrieve_future", {"request_id": request_id}, headers={"accept": ACCEPT})
        assert reply.status == 200, reply
        return reply.body

    def do(self, path: str, body: Any, **more: Any) -> Any:
        """The result of queued work."""
        return self.result(self.submit(path, body, **more))

    def session(self) -> str:
        body = {"tags": [], "user_metadata": None, "sdk_version": "0.16.1"}
        found: str = self.post("create_session", body).body["session_id"]
        return found

    def sampler(self) -> str:
        """A new sampling session on the base model."""
        body = {"session_id": self.session(), "sampling_session_seq_id": 0, "base_model": NANO}
        found: str = self.post("create_sampling_session", body).body["sampling_session_id"]
        return found

    def model(self, session_id: str | None = None, number: int = 0, **lora: Any) -> str:
        """A new model of rank 4."""
        body = {
            "session_id": session_id or self.session(),
            "model_seq_id": number,
            "base_model": NANO,
            "lora_config": {"rank": 4, "seed": 1, **lora},
        }
        found: str = self.do("create_model", body)["model_id"]
        return found

    def step(self, model_id: str) -> None:
        """Change the model's weights."""
        self.do("forward_backward", {"model_id": model_id, "forward_backward_input": batch()})
        self.do("optim_step", {"model_id": model_id, "adam_params": {"learning_rate": 0.01}})

    def binary_loss(self, model_id: str) -> float:
        """The same by binary messages."""
        found = decode_output(self.result(self.binary(model_id, forward=True).body["request_id"]))
        return found.metrics["loss:sum"]

    def loss(self, model_id: str) -> float:
        output = self.do("forward", {"model_id": model_id, "forward_input": batch()})
        found: float = output["metrics"]["loss:sum"]
        return found


def batch(tokens: Sequence[int] = (72, 101, 108, 108, 111), loss_fn: str = "cross_entropy") -> dict[str, Any]:
    """A forward_backward_input of one datum."""
    targets = {"data": list(tokens[1:]), "dtype": "int64", "shape": [len(tokens) - 1]}
    datum = {"model_input": {"chunks": [{"tokens": list(tokens[:-1])}]}, "loss_fn_inputs": {"target_tokens": targets}}
    return {"data": [datum], "loss_fn": loss_fn}


@pytest.fixture(name="batch")
def _batch() -> Callable[..., dict[str, Any]]:
    return batch


@pytest.fixture
def serve() -> Iterator[Callable[..., Caller]]:
    """Makes servers, and closes them after the test."""
    servers: list[EmbeddedServer] = []

    def make(**settings: Any) -> Caller:
        servers.append(EmbeddedServer(**settings))
        return Caller(servers[-1])

    yield make
    for server in servers:
        server.close()


@pytest.fixture
def call(serve: Callable[..., Caller], tmp_path: Path) -> Caller:
    """A caller of a server with a folder of its own."""
    return serve(folder=tmp_path / "data", long_poll_s=10.0)


@pytest.fixture
def sampler_id(call: Caller) -> str:
    """A sampler of a base model."""
    return call.sampler()


@attrs.define
class Clock:
    """A clock that stands still until it is told to move."""

    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


class Timer:
    """In place of a thread that waits: the test says when its time is over."""

    waiting: ClassVar[list[Timer]] = []

    def __init__(self, seconds: float, function: Callable[..., None], arguments: list[Any]) -> None:
        self.seconds = seconds
        self.end = partial(function, *arguments)

    def start(self) -> None:
        self.waiting.append(self)

    def cancel(self) -> None:
        if self in self.waiting:
            self.waiting.remove(self)


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> list[Timer]:
    """Those that wait, in place of the threads of all gaps."""
    monkeypatch.setattr(threading, "Timer", Timer)
    monkeypatch.setattr(Timer, "waiting", [])
    return Timer.waiting


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Every forward of every model waits until this is set."""
    opened = threading.Event()
    plain = LoraModel.forward

    def forward(self: LoraModel, *arguments: Any) -> Any:
        assert opened.wait(20)
        return plain(self, *arguments)

    monkeypatch.setattr(LoraModel, "forward", forward)
    yield opened
    opened.set()
