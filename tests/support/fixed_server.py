"""HTTP server with fixed responses, for tests of the generated package without the client."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import attrs

TRY_AGAIN = {"type": "try_again", "request_id": "r-1", "queue_state": "active"}
SAMPLES = {"type": "sample", "sequences": [{"stop_reason": "stop", "tokens": [3, 4], "logprobs": [-0.5, -0.25]}]}
RESPONSES: dict[str, tuple[int, Any]] = {
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
    requests: list[str] = attrs.field(factory=list)
    bodies: list[Any] = attrs.field(factory=list)
    headers: list[dict[str, str]] = attrs.field(factory=list)

    def respond(self, request: str) -> tuple[int, Any]:
        """Return the response to a request; a future is ready at the third poll."""
        if request != "POST /api/v1/retrieve_future":
            return RESPONSES.get(request, (404, {"detail": f"{request} has no response"}))
        return [(408, TRY_AGAIN), (200, TRY_AGAIN), (200, SAMPLES)][min(self.requests.count(request), 3) - 1]


@contextmanager
def fixed_server() -> Iterator[FixedServer]:
    """Run the server for the block."""

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            request = f"{self.command} {self.path}"
            server.requests.append(request)
            server.bodies.append(json.loads(body) if body else None)
            server.headers.append({name.lower(): value for name, value in self.headers.items()})
            status, value = server.respond(request)
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

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http_server:
        server = FixedServer(f"http://127.0.0.1:{http_server.server_address[1]}")
        thread = threading.Thread(target=http_server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            http_server.shutdown()
            thread.join()
