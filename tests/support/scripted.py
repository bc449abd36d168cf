"""An HTTP server on a thread whose responses a test scripts, and which records its requests."""

from __future__ import annotations

import asyncio
import itertools
import json
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import zstandard
from aiohttp import web
from google.protobuf.json_format import MessageToDict

from tinkerwire_base.call import PROTOBUF
from tinkerwire_generated.protobuf import message_class

PREFIX = "/api/v1/"
ZSTD = b"\x28\xb5\x2f\xfd"
"""First bytes of zstd; some versions of the HTTP library have already decompressed the body."""
TEST_TIMEOUT_S = 30.0
"""Seconds that a test waits for an event; no test asserts a duration."""
SUBMISSIONS = ("forward", "forward_backward", "optim_step", "save_weights", "load_weights", "save_weights_for_sampler")
"""The operations of a model that are numbered."""


@dataclass
class RecordedRequest:
    """Request as it arrived."""

    name: str
    """The path after /api/v1/."""
    method: str
    headers: dict[str, str]
    query: dict[str, str]
    body: Any
    time: float
    peer: tuple[str, int]


@dataclass
class ScriptedResponse:
    """Response to send.

    ``drop`` closes the connection instead; ``gate`` delays the response until the test opens it or the client leaves;
    ``trickle_s`` sends byte by byte with that pause in seconds; ``raw`` is sent unchanged, whether HTTP or not.
    """

    body: Any = field(default_factory=dict)
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    drop: bool = False
    gate: Gate | None = None
    trickle_s: float = 0.0
    raw: bytes | None = None


class Gate:
    """Event that the test opens from its own thread, for all waiters on the server's thread."""

    def __init__(self) -> None:
        self.is_open = False
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
        self._lock = threading.Lock()

    async def wait(self) -> None:
        """Wait until the gate opens."""
        event = asyncio.Event()
        with self._lock:
            if self.is_open:
                return
            self._waiting.append((asyncio.get_running_loop(), event))
        await event.wait()

    def release(self) -> None:
        """Open the gate."""
        with self._lock:
            self.is_open = True
            for loop, event in self._waiting:
                loop.call_soon_threadsafe(event.set)


Rule = Callable[[RecordedRequest], ScriptedResponse]


def in_order(*steps: ScriptedResponse | Rule) -> Rule:
    """Return a rule that gives the responses in order and repeats the last one."""
    responses = itertools.chain(steps, itertools.repeat(steps[-1]))

    def rule(request: RecordedRequest) -> ScriptedResponse:
        step = next(responses)
        return step if isinstance(step, ScriptedResponse) else step(request)

    return rule


class ScriptedServer:
    """Server with ``rules`` by path; a path without a rule gets the response of a healthy server."""

    def __init__(self) -> None:
        self.rules: dict[str, Rule] = {}
        self.requests: list[RecordedRequest] = []
        self.url = ""
        self.active: Counter[str] = Counter()
        """Requests in progress, by path."""
        self.peak: Counter[str] = Counter()
        """Maximum of ``active``, by path."""
        self.created_futures: list[tuple[int, Any]] = []
        """Number and request body of each future that the server created."""
        self._changed = threading.Condition()

    def named(self, name: str) -> list[RecordedRequest]:
        """Return the requests to one path in the order of arrival."""
        return [request for request in self.requests if request.name == name]

    def bodies(self, name: str) -> list[Any]:
        """Return the bodies of the requests to one path."""
        return [request.body for request in self.named(name)]

    def sole_body(self, name: str) -> dict[str, Any]:
        """Return the only body sent to a path, without nulls and the type tag."""
        (body,) = self.bodies(name)
        return {key: value for key, value in body.items() if value is not None and key != "type"}

    def polls(self, kind: str) -> list[RecordedRequest]:
        """Return the polls of one kind of request, such as ``Sample``."""
        return [poll for poll in self.named("retrieve_future") if poll.headers["x-tinker-request-type"] == kind]

    def wait_for(self, condition: Callable[[], bool], description: str = "") -> None:
        """Wait for a condition; fail after a long time. A request wakes the wait, and so do 50 ms without one."""
        end = time.monotonic() + TEST_TIMEOUT_S
        with self._changed:
            while not condition():
                if time.monotonic() > end:
                    names = Counter(request.name for request in self.requests)
                    raise AssertionError(f"did not happen: {description or condition}; requests: {names}")
                # The client may fulfil the condition after its last request: by the end of a future, for example.
                self._changed.wait(0.05)

    def wait_for_requests(self, name: str, number: int = 1) -> list[RecordedRequest]:
        """Wait until a path has received that many requests."""
        self.wait_for(lambda: len(self.named(name)) >= number, f"{number} x {name}")
        return self.named(name)

    def respond(self, request: RecordedRequest) -> ScriptedResponse:
        """Return the scripted response, or that of a healthy server."""
        rule = self.rules.get(request.name)
        return rule(request) if rule else self.healthy_response(request)

    def healthy_response(self, request: RecordedRequest) -> ScriptedResponse:
        """Return the response of a healthy server: every operation has a future that finishes at the first poll."""
        body = request.body if isinstance(request.body, dict) else {}
        values = {
            "create_session": {"session_id": "s1"},
            "session_heartbeat": {},
            "create_sampling_session": {"sampling_session_id": "sampler1"},
            "get_info": {"model_id": body.get("model_id"), "model_data": {"model_name": "base"}},
            "get_server_capabilities": {"supported_models": [{"model_name": "base"}]},
            "weights_info": {"base_model": "base", "is_lora": True, "lora_rank": 8},
            "training_runs": {"training_runs": [], "cursor": {"offset": 0, "limit": 20, "total_count": 0}},
        }
        if request.name in values:
            return ScriptedResponse(values[request.name])
        if request.name == "retrieve_future":
            return ScriptedResponse(self.result(body["request_id"]))
        number = len(self.created_futures) + 1
        self.created_futures.append((number, body))
        return ScriptedResponse({"request_id": f"{request.name}/{number}/{body.get('seq_id')}"})

    def result(self, request_id: str) -> Any:
        """Return the result of a future by the operation that its id names."""
        name, _, suffix = request_id.partition("/")
        number = suffix.partition("/")[0]
        body = {str(number): body for number, body in self.created_futures}.get(number, {})
        samples = body.get("num_samples") or 1
        return {
            "create_model": {"model_id": "m1"},
            "forward": {"loss_fn_output_type": "T", "loss_fn_outputs": [], "metrics": {}},
            "forward_backward": {"loss_fn_output_type": "T", "loss_fn_outputs": [], "metrics": {}},
            "optim_step": {"metrics": {}},
            "save_weights": {"path": "tinker://m1/weights/a"},
            "save_weights_for_sampler": {"path": "tinker://m1/sampler_weights/a", "sampling_session_id": "sampler2"},
            "load_weights": {"path": "tinker://m1/weights/a"},
            "asample": {
                "sequences": [{"stop_reason": "stop", "tokens": [1, 2], "logprobs": [-0.5, -1.0]}] * samples,
                "prompt_logprobs": _prompt_logprobs(body) if body.get("prompt_logprobs") else None,
            },
        }[name]

    def on_poll(self, kind: str, rule: Rule) -> None:
        """Set a rule for the polls of one kind of request."""
        default_rule = self.rules.get("retrieve_future", self.healthy_response)

        def by_kind(request: RecordedRequest) -> ScriptedResponse:
            return rule(request) if request.headers["x-tinker-request-type"] == kind else default_rule(request)

        self.rules["retrieve_future"] = by_kind

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        content = await request.read()
        recorded = RecordedRequest(
            name=request.path.removeprefix(PREFIX),
            method=request.method,
            headers={name.lower(): value for name, value in request.headers.items()},
            query=dict(request.query),
            body=_decode_body(content, request.headers),
            time=time.monotonic(),
            peer=request.transport.get_extra_info("peername") if request.transport else ("", 0),
        )
        with self._changed:
            self.requests.append(recorded)
            self.active[recorded.name] += 1
            self.peak[recorded.name] = max(self.peak[recorded.name], self.active[recorded.name])
            response = self.respond(recorded)
            self._changed.notify_all()
        try:
            return await self._send(request, response)
        finally:
            with self._changed:
                self.active[recorded.name] -= 1
                self._changed.notify_all()

    async def _send(self, request: web.Request, response: ScriptedResponse) -> web.StreamResponse:
        if response.delay_s:
            await asyncio.sleep(response.delay_s)
        if response.gate:
            await response.gate.wait()
        if request.transport is not None and response.raw is not None:
            request.transport.write(response.raw)
            request.transport.close()
        if request.transport is not None and response.drop:
            request.transport.abort()
        content = response.body if isinstance(response.body, bytes) else json.dumps(response.body).encode()
        if response.trickle_s:
            return await self._trickle(request, content, response.trickle_s)
        headers = {"content-type": "application/json", **response.headers}
        return web.Response(body=content, status=response.status, headers=headers)

    async def _trickle(self, request: web.Request, content: Iterable[int], pause_s: float) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for byte in content:
            await response.write(bytes([byte]))
            await asyncio.sleep(pause_s)
        return response


def _prompt_logprobs(body: dict[str, Any]) -> list[float | None]:
    """Return a logprob for each prompt token but the first."""
    tokens = sum(len(chunk["tokens"]) for chunk in body["prompt"]["chunks"])
    return [None, *[-1.0] * (tokens - 1)]


def _decode_body(content: bytes, headers: Mapping[str, str]) -> Any:
    """Return the JSON value of a body; protobuf as its JSON form."""
    if headers.get("content-type") != PROTOBUF:
        return json.loads(content) if content else None
    if content.startswith(ZSTD):
        content = zstandard.ZstdDecompressor().decompress(content)
    return MessageToDict(message_class("ForwardBackwardRequest").FromString(content), preserving_proto_field_name=True)


@contextmanager
def scripted_server(tls: ssl.SSLContext | None = None) -> Iterator[ScriptedServer]:
    """Run a scripted server for the block, over https with ``tls``."""
    server = ScriptedServer()
    loop = asyncio.new_event_loop()
    ready = threading.Event()

    async def start() -> web.AppRunner:
        app = web.Application(client_max_size=2**30)
        app.router.add_route("*", "/{tail:.*}", server._handle)
        runner = web.AppRunner(
            app, auto_decompress=False, access_log=None, shutdown_timeout=0.1, handler_cancellation=True
        )
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=4096, ssl_context=tls)
        await site.start()
        server.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{runner.addresses[0][1]}"
        return runner

    def run() -> None:
        asyncio.set_event_loop(loop)
        runner = loop.run_until_complete(start())
        ready.set()
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        # Connections with encryption need a few more iterations of the loop to end.
        loop.run_until_complete(asyncio.sleep(0.05 if tls else 0))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    thread = threading.Thread(target=run, name="scripted-server", daemon=True)
    thread.start()
    if not ready.wait(TEST_TIMEOUT_S):
        raise RuntimeError("the scripted server did not start")
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(TEST_TIMEOUT_S)


def seq_ids(server: ScriptedServer) -> list[int]:
    """Return the seq_ids of all operations in the order of arrival."""
    return [request.body["seq_id"] for request in server.requests if request.name in SUBMISSIONS]
