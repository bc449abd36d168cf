"""Proxy between client and server that records every request with its response."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

# Hop-by-hop headers, and headers that each side sets.
OWN_HEADERS = {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "date", "server"}
Record = dict[str, Any]


@contextlib.contextmanager
def record_requests(target: str) -> Iterator[tuple[str, list[Record]]]:
    """Run the proxy in front of `target`; yield its base URL and the growing list of records."""
    records: list[Record] = []
    address = urlsplit(target).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1  # head and body of a response in one piece

        def forward_request(self) -> None:
            """Forward the request, record it with its response, and return the response."""
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            record: Record = {
                "start": time.time(),
                "method": self.command,
                "path": self.path,
                "headers": dict(self.headers),
                "body": _read_content(body),
            }
            records.append(record)
            passed_headers = {name: value for name, value in self.headers.items() if name.lower() not in OWN_HEADERS}
            # A connection for each request: the server may close one after a response of 500.
            server = http.client.HTTPConnection(address)
            try:
                server.request(self.command, self.path, body or None, passed_headers | {"Connection": "close"})
                response = server.getresponse()
                status, headers, content = response.status, dict(response.headers), response.read()
            except (OSError, http.client.HTTPException) as error:
                status, headers, content = 502, {}, json.dumps({"recorder": repr(error)}).encode()
            finally:
                server.close()
            record.update(
                status=status,
                seconds=round(time.time() - record["start"], 3),
                answer_headers=headers,
                answer=_read_content(content),
            )
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() not in OWN_HEADERS:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            with contextlib.suppress(OSError):  # a client that has given up waiting
                self.wfile.write(content)
                self.wfile.flush()

        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = forward_request

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing; the records are enough."""

    with _Server(("127.0.0.1", 0), Handler) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{proxy.server_address[1]}", records
        proxy.shutdown()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore connections that clients drop."""


def _read_content(content: bytes) -> Any:
    """Return JSON as it is, other text as text, and of bytes the length."""
    try:
        return json.loads(content) if content else None
    except ValueError:
        pass
    try:
        return content.decode()
    except UnicodeDecodeError:
        return f"<{len(content)} bytes>"
