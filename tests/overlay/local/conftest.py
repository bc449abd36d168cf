"""A server in this process, and a caller that speaks to it as a client would, without a client."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import orjson
import pytest

from tinkerwire.local import EmbeddedServer
from tinkerwire.local.engine import LoraModel
from tinkerwire_base.call import WireRequest

NANO = "tinkerwire/byte-nano"


@attrs.frozen
class Reply:
    status: int
    body: Any
    headers: Mapping[str, str]


@attrs.frozen
class Caller:
    """Calls one server; paths are relative to /api/v1/."""

    server: EmbeddedServer

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
        request = WireRequest(method=method, path="/api/v1/" + path, query=tuple(query), headers=sent, content=content)
        answer = await self.server.handle(request)
        value = orjson.loads(answer.content) if answer.content else None
        return Reply(answer.status, value, answer.headers)

    def __call__(self, method: str, path: str, body: Any = None, **more: Any) -> Reply:
        return asyncio.run(self.send(method, path, body, **more))

    def post(self, path: str, body: Any, **more: Any) -> Reply:
        return self("POST", path, body, **more)

    def submit(self, path: str, body: Any, **more: Any) -> str:
        """The request_id of queued work."""
        reply = self.post(path, body, **more)
        assert reply.status == 200, reply
        found: str = reply.body["request_id"]
        return found

    def result(self, request_id: str) -> Any:
        reply = self.post("retrieve_future", {"request_id": request_id})
        assert reply.status == 200, reply
        return reply.body

    def do(self, path: str, body: Any, **more: Any) -> Any:
        """The result of queued work."""
        return self.result(self.submit(path, body, **more))

    def session(self) -> str:
        body = {"tags": [], "user_metadata": None, "sdk_version": "0.16.1"}
        found: str = self.post("create_session", body).body["session_id"]
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
    return serve(folder=tmp_path / "data", hold_s=10.0)


@attrs.define
class Clock:
    """A clock that stands still until it is told to move."""

    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


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
