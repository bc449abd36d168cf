"""Transports: requests and responses on the wire, and the connections that carry them."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import attrs
import httpx
import pytest

import tinkerwire as tw
from support.clients import ADAM, FAST, KEY, PARAMS, PROMPT, open_client
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer
from support.transports import KINDS, REQUEST, send
from tinkerwire._transport import backpressure
from tinkerwire._transport.backpressure import Traffic
from tinkerwire._transport.base import Transport
from tinkerwire._transport.http_transport import HttpTransport
from tinkerwire._transport.httpx_transport import HttpxTransport
from tinkerwire_base.call import WireRequest, WireResponse

pytestmark = pytest.mark.timeout(60)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("kind", KINDS)
def test_redirects_are_not_followed(server: ScriptedServer, kind: str, status: int) -> None:
    """A redirect is an ordinary response: the key is not sent to its target."""
    server.rules["get_server_capabilities"] = lambda _: ScriptedResponse(
        {}, status=status, headers={"location": "/elsewhere"}
    )
    response = asyncio.run(send(kind, server.url))
    assert (response.status, response.headers["location"]) == (status, "/elsewhere")
    assert len(server.requests) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_request_and_response_are_unchanged(server: ScriptedServer, kind: str) -> None:
    """Method, path, query, headers and bytes arrive unchanged, and so does the response."""
    server.rules["a b%/c:d"] = lambda _: ScriptedResponse(b'"ok"', status=418, headers={"X-One": "1"})
    path = "/api/v1/a%20b%25/c:d"
    request = WireRequest(
        method="PUT", path=path, query=(("k", "v w"), ("k2", "&")), headers={"x-a": "b"}, content=b"[1]"
    )
    response = asyncio.run(send(kind, server.url, request))
    received = server.requests[0]
    assert (received.method, received.name, received.query, received.body) == (
        "PUT",
        "a b%/c:d",
        {"k": "v w", "k2": "&"},
        [1],
    )
    assert received.headers["x-a"] == "b"
    assert (response.status, response.content, response.headers["x-one"]) == (418, b'"ok"', "1")


@pytest.mark.parametrize("kind", KINDS)
def test_wait_for_connection_does_not_count_for_timeout(
    server: ScriptedServer, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fifty requests that share two connections do not time out."""
    monkeypatch.setitem(backpressure.CONNECTIONS, Traffic.REST, 2)
    monotonic = time.monotonic
    # Each takes a second of a clock that counts them.
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + len(server.requests))
    server.rules["get_server_capabilities"] = lambda _: ScriptedResponse({}, delay_s=0.005)

    async def run() -> None:
        client = httpx.AsyncClient()
        transport: Transport = HttpTransport(server.url) if kind == "builtin" else HttpxTransport(client, server.url)
        try:
            await asyncio.gather(*(transport.send(REQUEST, Traffic.REST, 30.0) for _ in range(50)))
        finally:
            await transport.close()
            await client.aclose()

    asyncio.run(run())
    assert server.peak["get_server_capabilities"] == 2


def test_traffic_classes_share_no_connection(server: ScriptedServer) -> None:
    """Requests of different classes use different connections."""

    async def run() -> None:
        transport = HttpTransport(server.url)
        for traffic in Traffic:
            await transport.send(REQUEST, traffic, 30.0)
        await transport.close()

    asyncio.run(run())
    assert len({request.peer for request in server.requests}) == len(Traffic)


def test_netrc_is_ignored(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Credentials of the host in ~/.netrc are not sent."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    asyncio.run(send("builtin", server.url))
    assert "authorization" not in server.requests[0].headers


def test_cookies_are_not_stored(server: ScriptedServer) -> None:
    """A cookie that a server sets is not sent back."""
    server.rules["get_server_capabilities"] = lambda _: ScriptedResponse({}, headers={"set-cookie": "a=b; path=/"})

    async def run() -> None:
        transport = HttpTransport(server.url.replace("127.0.0.1", "localhost"))
        for _ in range(2):
            await transport.send(REQUEST, Traffic.REST, 30.0)
        await transport.close()

    asyncio.run(run())
    assert ["cookie" in request.headers for request in server.requests] == [False, False]


def test_http_client_sends_everything_and_is_closed() -> None:
    """``http_client=`` is closed with the client."""
    requests: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        results = {
            "/p/api/v1/create_session": {"session_id": "s"},
            "/p/api/v1/create_model": {"request_id": "r"},
            "/p/api/v1/retrieve_future": {"model_id": "m"},
        }
        return httpx.Response(200, json=results[request.url.path])

    http = httpx.AsyncClient(transport=httpx.MockTransport(handler))
    with open_client("https://service.invalid/p", http_client=http) as client:
        assert client.create_lora_training_client("base").result(TEST_TIMEOUT_S).model_id == "m"
    assert http.is_closed
    with pytest.raises(ValueError, match="http_client is closed"):
        tw.ServiceClient(base_url="https://service.invalid/p", api_key=KEY, http_client=http)
    assert {request.headers["x-api-key"] for request in requests} == {KEY}
    assert len(requests) == 3


def test_httpx_client_trains_and_samples(server: ScriptedServer) -> None:
    """Sampling and training work over a real httpx client."""
    http = httpx.AsyncClient(limits=httpx.Limits(max_connections=None))
    with open_client(server.url, http_client=http) as client:
        training = client.create_lora_training_client("base")
        training.optim_step(ADAM).result(TEST_TIMEOUT_S)
        sampling = training.save_weights_and_get_sampling_client()
        for future in [sampling.sample(PROMPT, 1, PARAMS) for _ in range(30)]:
            future.result(TEST_TIMEOUT_S)
    assert http.is_closed


def test_timeout_grows_with_body(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow line does not fail large batches forever."""
    timeouts: list[float] = []

    class Recorder:
        async def send(self, request: WireRequest, traffic: Traffic, timeout_s: float) -> WireResponse:
            timeouts.append(timeout_s)
            return WireResponse(status=200, content=b"{}")

        async def close(self) -> None:
            """Nothing to close."""

    with open_client(server.url, transport=Recorder()) as client:
        connection = client._connection
        small = WireRequest(method="POST", path="/x", headers={}, content=b"")
        large = attrs.evolve(small, content=bytes(5_000_000))
        connection.start(lambda: connection.exchange(small, Traffic.REST, 60.0)).result(TEST_TIMEOUT_S)
        connection.start(lambda: connection.exchange(large, Traffic.REST, 60.0)).result(TEST_TIMEOUT_S)
    assert timeouts == [60.0, 110.0]


def test_connection_closed_while_idle_is_replaced(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """A kept connection that the server closed causes no error."""
    client.get_server_capabilities()
    server.rules["get_server_capabilities"] = lambda request: ScriptedResponse(
        server.healthy_response(request).body, headers={"connection": "close"}
    )
    for _ in range(5):
        client.get_server_capabilities()
    assert len({request.peer for request in server.requests}) == 5


def test_large_body_raises_no_warning(server: ScriptedServer) -> None:
    """Warnings are errors in many test suites; a body beyond 1 MiB must not raise one."""
    chunk = tw.types.EncodedTextChunk(tokens=list(range(200_000)))
    data = [tw.Datum(model_input=tw.ModelInput(chunks=[chunk]), loss_fn_inputs={"weights": [1.0]})]
    with open_client(server.url, retry=attrs.evolve(FAST, max_attempts=1)) as client:
        client.create_lora_training_client("base").forward_backward(data, "cross_entropy").result(TEST_TIMEOUT_S)
    (request,) = server.named("forward_backward")
    assert int(request.headers["content-length"]) > 1 << 20
    assert request.body["forward_backward_input"]["data"][0]["model_input"]["chunks"][0]["tokens"] == chunk.tokens
