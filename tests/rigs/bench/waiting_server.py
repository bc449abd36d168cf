"""Server whose samples take time: holds polls, refuses to hold them, or offers batched polling.

python -m tests.rigs.bench.waiting_server PORT held|fast|batched SECONDS [START]

SECONDS are the times that samples take, such as ``1,1,12``: one of them is drawn for each sample, by a fixed seed, and
any time between two numbers for a part such as ``5-10``. The only token of a sample is the moment at which it was
ready, in microseconds of the monotonic clock modulo 2**31; all processes of a machine share that clock. With START, a
moment of that clock in seconds, samples are submitted before it and start at it, so that all are in flight at once.
Such servers hold polls, and several processes can share the port.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import struct
import sys
import time
from collections.abc import Awaitable
from typing import Any

HOLD_S = 45.0
CLOCK_US = 2**31
PROTOBUF = "application/x-protobuf"
BATCHED_HOLD_S = 30.0
FIXED: dict[bytes, Any] = {
    b"create_session": {"type": "create_session", "session_id": "session-1"},
    b"create_sampling_session": {
        "type": "create_sampling_session",
        "sampling_session_id": "session-1:sample:0",
    },
    b"session_heartbeat": {"type": "session_heartbeat"},
    b"get_server_capabilities": {"supported_models": [{"model_name": "stub/model"}]},
    b"telemetry": {"status": "accepted"},
    b"healthz": {"status": "ok"},
    b"session_dynamic_config": {},
}
NOT_FOUND = {"detail": "the server has no such path"}


class Times:
    """The times that samples take, drawn one after the other.

    Args:
        seconds: numbers and ranges, such as ``1,1,5-10``.
        seed: the seed of the draws.
    """

    def __init__(self, seconds: str, seed: int) -> None:
        self._ranges = [tuple(map(float, part.split("-"))) for part in seconds.split(",")]
        self._random = random.Random(seed)

    def draw(self) -> float:
        """Return the time of the next sample."""
        times = self._random.choice(self._ranges)
        return self._random.uniform(times[0], times[-1])


class Samples:
    """The samples of the server, and the clients that wait for them."""

    def __init__(self, mode: str, times: Times) -> None:
        self.mode = mode
        self._times = times
        self._ready_at: list[float] = []
        self._finished: list[int] = []
        self._polls: dict[int, list[asyncio.Future[None]]] = {}
        self._batched: list[asyncio.Future[None]] = []

    def add(self) -> str:
        """Start a sample and return its id."""
        number, duration = len(self._ready_at), self._times.draw()
        self._ready_at.append(time.monotonic() + duration)
        asyncio.get_running_loop().call_later(duration, self._finish, number)
        return f"s-{number}"

    def _finish(self, number: int) -> None:
        self._ready_at[number] = time.monotonic()
        self._finished.append(number)
        for waiter in (*self._polls.pop(number, ()), *self._batched):
            if not waiter.done():
                waiter.set_result(None)
        self._batched.clear()

    async def result(self, request_id: str) -> tuple[int, Any]:
        """Return the status of a poll, and the moment at which the sample was ready."""
        number = int(request_id.removeprefix("s-"))
        if not self._is_finished(number) and self.mode == "held":
            waiter = asyncio.get_running_loop().create_future()
            self._polls.setdefault(number, []).append(waiter)
            await asyncio.wait({waiter}, timeout=HOLD_S)
        if not self._is_finished(number):
            return 408, {"type": "try_again", "queue_state": "active"}
        return 200, int(self._ready_at[number] * 1e6) % CLOCK_US

    def _is_finished(self, number: int) -> bool:
        return self._ready_at[number] <= time.monotonic()

    async def completions(self, cursor: int, timeout: float | None) -> Any:
        """Return the samples that finished after a cursor."""
        if cursor == len(self._finished):
            waiter = asyncio.get_running_loop().create_future()
            self._batched.append(waiter)
            await asyncio.wait({waiter}, timeout=BATCHED_HOLD_S if timeout is None else timeout)
        completions = [{"request_id": f"s-{n}", "state": "finished"} for n in self._finished[cursor:]]
        return {"completions": completions, "cursor": len(self._finished)}


class SimultaneousSamples:
    """Samples that all start at one moment; their ids have the time, so that any process can answer their polls."""

    mode = "held"

    def __init__(self, times: Times, start_s: float) -> None:
        self._times = times
        self._start_s = start_s
        self._numbers = itertools.count()

    def add(self) -> str:
        """Return the id of a sample; end the process if the samples have started."""
        if time.monotonic() >= self._start_s:
            raise SystemExit("a sample was submitted after the start of the samples")
        ready_us = int((self._start_s + self._times.draw()) * 1e6)
        return f"{ready_us}-{os.getpid()}-{next(self._numbers)}"

    async def result(self, request_id: str) -> tuple[int, Any]:
        """Return the status of a poll, and the moment at which the sample was ready."""
        ready_us = int(request_id.partition("-")[0])
        await asyncio.sleep(min(max(0.0, ready_us / 1e6 - time.monotonic()), HOLD_S))
        if ready_us / 1e6 > time.monotonic():
            return 408, {"type": "try_again", "queue_state": "active"}
        return 200, ready_us % CLOCK_US


class Connection(asyncio.Protocol):
    """One connection of HTTP/1.1; it responds to requests in order."""

    samples: Samples | SimultaneousSamples

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._buffer = bytearray()

    def data_received(self, data: bytes) -> None:
        """Respond to a request once it is complete."""
        self._buffer += data
        head, separator, content = self._buffer.partition(b"\r\n\r\n")
        if not separator:
            return
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
            elif name.lower() == b"transfer-encoding":
                raise SystemExit("the server cannot read chunked requests")
        if len(content) < length:
            return
        self._buffer.clear()
        path = bytes(head).split(b" ", 2)[1].partition(b"?")[0].removeprefix(b"/api/v1/").strip(b"/")
        self._respond(path, bytes(content), PROTOBUF.encode() in head)

    def _respond(self, path: bytes, body: bytes, accepts_protobuf: bool) -> None:
        if path == b"asample":
            request_id = self.samples.add()
            self._send(200, {"request_id": request_id, "sample_sequence_ids": [f"{request_id}-0"]})
        elif path == b"retrieve_future":
            self._spawn(self._send_result(json.loads(body)["request_id"], accepts_protobuf))
        elif path == b"retrieve_futures" and isinstance(self.samples, Samples) and self.samples.mode == "batched":
            request = json.loads(body)
            completions = self.samples.completions(request.get("prev_cursor") or 0, request.get("timeout"))
            self._spawn(self._send_completions(completions))
        elif path == b"client/config":
            self._send(200, {"sample_use_retrieve_futures": self.samples.mode == "batched"})
        elif path.startswith(b"samplers/"):
            sampler = {"sampler_id": "session-1:sample:0", "base_model": "stub/model", "model_path": None}
            self._send(200, sampler)
        else:
            self._send(200 if path in FIXED else 404, FIXED.get(path, NOT_FOUND))

    def _spawn(self, coroutine: Any) -> None:
        # The transport keeps the task alive as long as the connection is open.
        self._task = asyncio.ensure_future(coroutine)

    async def _send_result(self, request_id: str, accepts_protobuf: bool) -> None:
        status, result = await self.samples.result(request_id)
        if status != 200:
            self._send(status, result)
        elif accepts_protobuf:
            # SampleResponse.sequences = [SampledSequence(stop_reason=1, tokens=..., logprobs=[-0.5])]
            sequence = b"\x08\x01\x12\x04" + struct.pack("<i", result) + b"\x1a\x04" + struct.pack("<f", -0.5)
            self._send_content(200, b"\x0a" + bytes([len(sequence)]) + sequence, PROTOBUF)
        else:
            sequence_json = {"stop_reason": "stop", "tokens": [result], "logprobs": [-0.5]}
            self._send(200, {"type": "sample", "sequences": [sequence_json]})

    async def _send_completions(self, completions: Awaitable[Any]) -> None:
        self._send(200, await completions)

    def _send(self, status: int, body: Any) -> None:
        self._send_content(status, json.dumps(body).encode(), "application/json")

    def _send_content(self, status: int, content: bytes, kind: str) -> None:
        head = f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len(content)}\r\n\r\n"
        self._transport.write(head.encode() + content)


async def serve(port: int, samples: Samples | SimultaneousSamples) -> None:
    """Serve until the process ends."""
    Connection.samples = samples
    is_shared = isinstance(samples, SimultaneousSamples)
    server = await asyncio.get_running_loop().create_server(
        Connection, "127.0.0.1", port, backlog=4096, reuse_port=is_shared
    )
    await server.serve_forever()


def main() -> None:
    """Serve on the port of the command line."""
    port, mode, seconds, *start_s = sys.argv[1:]
    if start_s:
        samples: Samples | SimultaneousSamples = SimultaneousSamples(Times(seconds, os.getpid()), float(start_s[0]))
    else:
        samples = Samples(mode, Times(seconds, 1))
    asyncio.run(serve(int(port), samples))


if __name__ == "__main__":
    main()
