"""A gateway without sockets, whose upstream is a function."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from tinkerwire._gateway.app import GatewayApp
from tinkerwire._gateway.memory import Memory
from tinkerwire._gateway.upstream import Upstream
from tinkerwire._transport.backpressure import Traffic
from tinkerwire_base.call import JSON, WireRequest, WireResponse

Answer = Callable[[WireRequest], WireResponse]
URL = "http://upstream.test"


def json_response(value: Any, status: int = 200, **headers: str) -> WireResponse:
    """Return a response with a JSON value; ``_`` in names of headers stands for a hyphen."""
    names = {name.replace("_", "-"): text for name, text in headers.items()}
    return WireResponse(status=status, headers={"content-type": JSON, **names}, content=orjson.dumps(value))


RUN = {
    "training_run_id": "run",
    "base_model": "base",
    "model_owner": "o",
    "is_lora": True,
    "lora_rank": 8,
    "last_request_time": "2026-01-01T00:00:00Z",
}
"""A training run as servers describe it."""


class Upstreams:
    """A transport that records requests, and answers them by path; other paths are missing endpoints."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer | WireResponse] = {}
        self.requests: list[WireRequest] = []

    async def send(self, request: WireRequest, traffic: Traffic, timeout_s: float) -> WireResponse:
        self.requests.append(request)
        answer = self.answers.get(request.path.removeprefix("/api/v1/"))
        if answer is None:
            return json_response({"detail": "Not Found"}, 404)
        return answer(request) if callable(answer) else answer

    async def close(self) -> None:
        """Close nothing."""

    def named(self, name: str) -> list[WireRequest]:
        """Return the requests to a path."""
        return [request for request in self.requests if request.path == f"/api/v1/{name}"]

    def body(self, name: str) -> Any:
        """Return the JSON body of the last request to a path."""
        return orjson.loads(self.named(name)[-1].content or b"null")


class Client:
    """A client of one SDK version.

    Args:
        upstream: the upstream.
        to_wire: its wire version; None to discover it.
        options: arguments of GatewayApp.
    """

    def __init__(self, upstream: Upstreams, to_wire: str | None = "0.16.1", **options: Any) -> None:
        api_key = options.pop("api_key", None)
        memory = options.pop("memory", None) or Memory()
        self.app = GatewayApp(Upstream(URL, upstream, to_wire, api_key), memory, **options)

    async def send(self, request: WireRequest) -> WireResponse:
        """Send a request."""
        return await self.app.handle(request)

    def close(self) -> None:
        """Close the files of the gateway."""
        asyncio.run(self.app.close())

    def post(
        self, name: str, body: Any, version: str | None = None, headers: Mapping[str, str] | None = None
    ) -> WireResponse:
        """Send one POST, as the official SDK of a version; bytes are sent unchanged."""
        content = body if isinstance(body, bytes) else orjson.dumps(body)
        sent = {"Content-Type": JSON, "Accept": JSON, "X-API-Key": "tml-client-key", **(headers or {})}
        if version is not None:
            sent["X-Stainless-Package-Version"] = version
        return asyncio.run(self.send(WireRequest(method="POST", path=f"/api/v1/{name}", headers=sent, content=content)))

    def get(self, path: str, version: str, query: tuple[tuple[str, str], ...] = ()) -> WireResponse:
        """Send one GET."""
        headers = {"X-Stainless-Package-Version": version, "X-API-Key": "tml-client-key"}
        return asyncio.run(
            self.send(WireRequest(method="GET", path=f"/api/v1/{path}", query=query, headers=headers, content=None))
        )


def value_of(response: WireResponse) -> Any:
    """Return the JSON value of a response."""
    return orjson.loads(response.content)


def poll(client: Client, request_id: str, version: str = "0.38.0", kind: str = "LoadWeights") -> Any:
    """Return the value of a poll."""
    headers = {"X-Tinker-Request-Type": kind}
    return value_of(client.post("retrieve_future", {"request_id": request_id}, version, headers))
