"""A real HTTP server on a thread whose answers a test writes down, and that remembers what it was asked."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

PREFIX = "/api/v1/"


@dataclass
class Asked:
    """One request as it came."""

    name: str
    """The path after /api/v1/."""
    method: str
    headers: dict[str, str]
    query: dict[str, str]
    body: Any
    time: float
    peer: tuple[str, int]


@dataclass
class Answer:
    """One answer to give; ``drop`` closes the connection in its place."""

    body: Any = field(default_factory=dict)
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    drop: bool = False


Rule = Callable[[Asked], Answer]


class Scripted:
    """The server: ``rules`` by path; what has no rule gets the answers of a server where all goes well."""

    def __init__(self) -> None:
        self.rules: dict[str, Rule] = {}
        self.asked: list[Asked] = []
        self.url = ""
        self._promises = 0

    def named(self, name: str) -> list[Asked]:
        """The requests to one path, in the order in which they came."""
        return [asked for asked in self.asked if asked.name == name]

    def answer(self, asked: Asked) -> Answer:
        """The answer by rule, or the one of the happy path."""
        rule = self.rules.get(asked.name)
        return rule(asked) if rule else self.happy(asked)

    def happy(self, asked: Asked) -> Answer:
        """What a server says when all goes well: every operation is a promise that is kept at the first poll."""
        body = asked.body if isinstance(asked.body, dict) else {}
        plain = {
            "create_session": {"session_id": "s1"},
            "session_heartbeat": {},
            "create_sampling_session": {"sampling_session_id": "sampler1"},
            "get_info": {"model_id": body.get("model_id"), "model_data": {"model_name": "base"}},
            "get_server_capabilities": {"supported_models": [{"model_name": "base"}]},
        }
        if asked.name in plain:
            return Answer(plain[asked.name])
        if asked.name == "retrieve_future":
            return Answer(self.result(body["request_id"]))
        self._promises += 1
        return Answer({"request_id": f"{asked.name}/{self._promises}/{body.get('seq_id')}"})

    def result(self, request_id: str) -> Any:
        """The result of a promise, by the operation that its id names."""
        return {
            "create_model": {"model_id": "m1"},
            "forward": {"loss_fn_output_type": "T", "loss_fn_outputs": [], "metrics": {}},
            "forward_backward": {"loss_fn_output_type": "T", "loss_fn_outputs": [], "metrics": {}},
            "optim_step": {"metrics": {}},
            "save_weights": {"path": "tinker://m1/weights/a"},
            "save_weights_for_sampler": {"path": "tinker://m1/sampler_weights/a", "sampling_session_id": "sampler2"},
            "load_weights": {"path": "tinker://m1/weights/a"},
            "asample": {"sequences": [{"stop_reason": "stop", "tokens": [1, 2], "logprobs": [-0.5, -1.0]}]},
        }[request_id.split("/")[0]]

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        text = await request.text()
        asked = Asked(
            name=request.path.removeprefix(PREFIX),
            method=request.method,
            headers={name.lower(): value for name, value in request.headers.items()},
            query=dict(request.query),
            body=json.loads(text) if text else None,
            time=asyncio.get_running_loop().time(),
            peer=request.transport.get_extra_info("peername") if request.transport else ("", 0),
        )
        self.asked.append(asked)
        answer = self.answer(asked)
        if answer.delay_s:
            await asyncio.sleep(answer.delay_s)
        if answer.drop and request.transport is not None:
            request.transport.abort()
        if isinstance(answer.body, str | bytes):
            return web.Response(body=answer.body, status=answer.status, headers=answer.headers)
        return web.json_response(answer.body, status=answer.status, headers=answer.headers)


@contextmanager
def scripted_server() -> Iterator[Scripted]:
    """A scripted server that runs for the block."""
    server = Scripted()
    loop = asyncio.new_event_loop()
    ready = threading.Event()

    async def start() -> web.AppRunner:
        app = web.Application(client_max_size=2**30)
        app.router.add_route("*", "/{tail:.*}", server._handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=4096)
        await site.start()
        server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        return runner

    def run() -> None:
        asyncio.set_event_loop(loop)
        runner = loop.run_until_complete(start())
        ready.set()
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    if not ready.wait(30):
        raise RuntimeError("the scripted server did not start")
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
