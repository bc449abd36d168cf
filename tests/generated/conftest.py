"""A real HTTP server of a few fixed answers, for stubs that nothing else stands behind."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import attrs
import pytest

TRY_AGAIN = {"type": "try_again", "request_id": "r-1", "queue_state": "active"}
SAMPLES = {"type": "sample", "sequences": [{"stop_reason": "stop", "tokens": [3, 4], "logprobs": [-0.5, -0.25]}]}
ANSWERS: dict[str, tuple[int, Any]] = {
    "POST /api/v1/create_session": (200, {"type": "create_session", "session_id": "s-1"}),
    "POST /api/v1/create_sampling_session": (200, {"sampling_session_id": "s-1:sample:0"}),
    "POST /api/v1/asample": (200, {"request_id": "r-1"}),
    "GET /api/v1/training_runs/run-1": (404, {"detail": "no run-1 here"}),
    "GET /api/v1/healthz": (500, {"detail": "out of order"}),
    "DELETE /api/v1/training_runs/run-1/checkpoints/weights/0001": (204, None),
}


@attrs.define
class FixedServer:
    """Server with fixed responses: its address, and the requests with their bodies."""

    url: str
    asked: list[str] = attrs.field(factory=list)
    bodies: list[Any] = attrs.field(factory=list)
    headers: list[dict[str, str]] = attrs.field(factory=list)

    def answer(self, what: str) -> tuple[int, Any]:
        """Return the response to a request; a future is ready at the third poll."""
        if what != "POST /api/v1/retrieve_future":
            return ANSWERS.get(what, (404, {"detail": f"{what} is not among the answers"}))
        return [(408, TRY_AGAIN), (200, TRY_AGAIN), (200, SAMPLES)][min(self.asked.count(what), 3) - 1]


@pytest.fixture
def server() -> Iterator[FixedServer]:
    """Run the server for one test."""

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            what = f"{self.command} {self.path}"
            found.asked.append(what)
            found.bodies.append(json.loads(body) if body else None)
            found.headers.append({name.lower(): value for name, value in self.headers.items()})
            status, value = found.answer(what)
            content = b"" if value is None else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            if status != 204:
                self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = _serve

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        found = FixedServer(f"http://127.0.0.1:{listening.server_address[1]}")
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield found
        finally:
            listening.shutdown()
            thread.join()
