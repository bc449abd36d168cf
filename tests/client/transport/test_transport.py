"""Transports: requests and responses on the wire, and the errors of everything that can fail."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import attrs
import httpx
import pytest

import tinkerwire as tw
from support.clients import ADAM, FAST, KEY, PARAMS, PROMPT, open_client
from support.scripted import PATIENCE_S, Gate, ScriptedResponse, ScriptedServer, scripted_server
from tinkerwire._transport import aiohttp_transport
from tinkerwire._transport.aiohttp_transport import AiohttpTransport
from tinkerwire._transport.backpressure import Traffic
from tinkerwire._transport.base import Transport
from tinkerwire._transport.httpx_transport import HttpxTransport
from tinkerwire_base.call import WireRequest, WireResponse

pytestmark = pytest.mark.timeout(60)
ONCE = tw.RetryConfig(enable_retry_logic=False)
REQUEST = WireRequest(method="GET", path="/api/v1/get_server_capabilities", headers={"x-api-key": KEY})
KINDS = ["aiohttp", "httpx"]


async def send(kind: str, url: str, request: WireRequest = REQUEST, timeout_s: float = 30.0) -> WireResponse:
    """Send one request over a transport that lives as long."""
    client = httpx.AsyncClient()
    way: Transport = AiohttpTransport(url) if kind == "aiohttp" else HttpxTransport(client, url)
    try:
        return await way.send(request, Traffic.REST, timeout_s)
    finally:
        await way.close()
        await client.aclose()


def error_of_send(
    kind: str, url: str, request: WireRequest = REQUEST, timeout_s: float = 30.0
) -> tw.APIConnectionError:
    """Return the error of a request, which holds nothing foreign."""
    with pytest.raises(tw.APIConnectionError) as caught:
        asyncio.run(send(kind, url, request, timeout_s))
    error = caught.value
    if error.__cause__ is not None:
        assert type(error.__cause__).__module__ in ("builtins", "socket", "ssl")
        assert error.__cause__.__traceback__ is None
    assert isinstance(error, tw.APITimeoutError) or isinstance(error.__cause__, OSError)
    assert error.__context__ is None
    assert f"{request.method} {url}{request.path}" in str(error)
    assert error.request is not None
    assert (error.request.method, error.request.url) == (request.method, url + request.path)
    return error


def exceptions_of(module: Any) -> list[type[Exception]]:
    return [v for v in vars(module).values() if isinstance(v, type) and issubclass(v, Exception)]


def raised_by_send(cls: type[Exception]) -> Exception:
    """Return an instance of an exception class with any constructor."""
    error = cls.__new__(cls)
    error.args = ("a reason",)
    return error


# Not raised by a request: misuse of web sockets, of streams by their reader, of cookies; and two warnings.
AIOHTTP_ELSEWHERE = {
    "WSMessageTypeError",
    "WebSocketError",
    "EofStream",
    "BadContentDispositionHeader",
    "BadContentDispositionParam",
}
HTTPX_ELSEWHERE = {"CookieConflict"}


@pytest.mark.parametrize("cls", exceptions_of(aiohttp), ids=lambda cls: cls.__name__)
def test_aiohttp_errors_are_mapped(cls: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every exception class of aiohttp that a request can raise becomes APITimeoutError or APIConnectionError."""
    if cls.__name__ in AIOHTTP_ELSEWHERE:
        return

    def refuse(*_: Any, **__: Any) -> Any:
        error = raised_by_send(cls)
        monkeypatch.setattr(type(error), "__str__", lambda _: "a reason", raising=False)
        raise error

    monkeypatch.setattr(aiohttp.ClientSession, "request", refuse)
    error = error_of_send("aiohttp", "http://127.0.0.1:1")
    assert isinstance(error, tw.APITimeoutError) == issubclass(cls, asyncio.TimeoutError)
    assert isinstance(error, tw.APITimeoutError) or f"{cls.__name__}: a reason" in str(error)


@pytest.mark.parametrize("cls", exceptions_of(httpx), ids=lambda cls: cls.__name__)
def test_httpx_errors_are_mapped(cls: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every exception class of httpx that a request can raise becomes APITimeoutError or APIConnectionError."""
    if cls.__name__ in HTTPX_ELSEWHERE:
        return

    async def refuse(*_: Any, **__: Any) -> Any:
        raise raised_by_send(cls)

    monkeypatch.setattr(httpx.AsyncClient, "send", refuse)
    error = error_of_send("httpx", "http://127.0.0.1:1")
    assert isinstance(error, tw.APITimeoutError) == issubclass(cls, httpx.TimeoutException)
    assert isinstance(error, tw.APITimeoutError) or f"{cls.__name__}: a reason" in str(error)


@pytest.mark.parametrize(
    "cls", [OSError, ConnectionResetError, ssl.SSLError, ssl.SSLCertVerificationError, TimeoutError]
)
@pytest.mark.parametrize("kind", KINDS)
def test_system_errors_are_mapped(kind: str, cls: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors of the system that the libraries let through are mapped, too."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise cls("a reason")

    monkeypatch.setattr(aiohttp.ClientSession, "request", refuse)
    monkeypatch.setattr(httpx.AsyncClient, "send", refuse)
    assert isinstance(error_of_send(kind, "http://127.0.0.1:1"), tw.APITimeoutError) == (cls is TimeoutError)


@pytest.mark.parametrize("kind", KINDS)
def test_closed_port_is_named(kind: str) -> None:
    """The error has the address and the cause."""
    error = error_of_send(kind, "http://127.0.0.1:1")
    assert "Connect" in str(error)
    assert isinstance(error.__cause__, ConnectionRefusedError if kind == "aiohttp" else OSError)
    assert not isinstance(error, tw.APITimeoutError)
    assert not error.may_have_been_sent


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 64 + ".invalid", "a..b"])
@pytest.mark.parametrize("kind", KINDS)
def test_unknown_host_is_named(kind: str, host: str) -> None:
    """A name that does not resolve, or cannot be looked up, is a connection error that shows the address."""
    error_of_send(kind, f"http://{host}:1")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "answer",
    [ScriptedResponse(hold=Gate()), ScriptedResponse(b" " * 10_000, trickle_s=0.1)],
    ids=["silence", "trickle"],
)
def test_timeout_covers_whole_response(server: ScriptedServer, kind: str, answer: ScriptedResponse) -> None:
    """A server that is silent, or sends byte by byte, is left after the timeout."""
    server.rules["get_server_capabilities"] = lambda _: answer
    error = error_of_send(kind, server.url, timeout_s=0.3)
    assert isinstance(error, tw.APITimeoutError)
    assert "no response within 0.3 s" in str(error)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"banana\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 24\r\n\r\nthis is not gzip at all.",
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_broken_responses_are_connection_errors(server: ScriptedServer, kind: str, raw: bytes) -> None:
    """A closed connection, no HTTP, a cut body and a body that cannot be decompressed are connection errors."""
    server.rules["get_server_capabilities"] = lambda _: ScriptedResponse(raw=raw)
    error = error_of_send(kind, server.url)
    assert not isinstance(error, tw.APITimeoutError)
    assert error.may_have_been_sent


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("kind", KINDS)
def test_redirects_are_not_followed(server: ScriptedServer, kind: str, status: int) -> None:
    """A redirect is an ordinary response: the key is not sent to its target."""
    server.rules["get_server_capabilities"] = lambda _: ScriptedResponse(
        {}, status=status, headers={"location": "/elsewhere"}
    )
    answer = asyncio.run(send(kind, server.url))
    assert (answer.status, answer.headers["location"]) == (status, "/elsewhere")
    assert len(server.asked) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_request_and_response_are_unchanged(server: ScriptedServer, kind: str) -> None:
    """Method, path, query, headers and bytes arrive unchanged, and so does the response."""
    server.rules["a b%/c:d"] = lambda _: ScriptedResponse(b'"ok"', status=418, headers={"X-One": "1"})
    path = "/api/v1/a%20b%25/c:d"
    request = WireRequest(
        method="PUT", path=path, query=(("k", "v w"), ("k2", "&")), headers={"x-a": "b"}, content=b"[1]"
    )
    answer = asyncio.run(send(kind, server.url, request))
    asked = server.asked[0]
    assert (asked.method, asked.name, asked.query, asked.body) == ("PUT", "a b%/c:d", {"k": "v w", "k2": "&"}, [1])
    assert asked.headers["x-a"] == "b"
    assert (answer.status, answer.content, answer.headers["x-one"]) == (418, b'"ok"', "1")


@pytest.mark.parametrize("kind", KINDS)
def test_wait_for_connection_does_not_count_for_timeout(
    server: ScriptedServer, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fifty requests that share two connections do not time out."""
    monkeypatch.setitem(aiohttp_transport.CONNECTIONS, Traffic.REST, 2)
    plain = time.monotonic
    # Each takes a second of a clock that counts them.
    monkeypatch.setattr(time, "monotonic", lambda: plain() + len(server.asked))
    server.rules["get_server_capabilities"] = lambda asked: ScriptedResponse({}, delay_s=0.005)

    async def run() -> None:
        client = httpx.AsyncClient()
        way: Transport = AiohttpTransport(server.url) if kind == "aiohttp" else HttpxTransport(client, server.url)
        try:
            await asyncio.gather(*(way.send(REQUEST, Traffic.REST, 30.0) for _ in range(50)))
        finally:
            await way.close()
            await client.aclose()

    asyncio.run(run())
    assert server.peak["get_server_capabilities"] == 2


def test_traffic_classes_share_no_connection(server: ScriptedServer) -> None:
    """Requests of different classes use different connections."""

    async def run() -> None:
        way = AiohttpTransport(server.url)
        for traffic in Traffic:
            await way.send(REQUEST, traffic, 30.0)
        await way.close()

    asyncio.run(run())
    assert len({asked.peer for asked in server.asked}) == len(Traffic)


def test_netrc_is_ignored(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Credentials of the host in ~/.netrc are not sent."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    asyncio.run(send("aiohttp", server.url))
    assert "authorization" not in server.asked[0].headers


def test_cookies_are_not_stored(server: ScriptedServer) -> None:
    """A cookie that a server sets is not sent back."""
    server.rules["get_server_capabilities"] = lambda _: ScriptedResponse({}, headers={"set-cookie": "a=b; path=/"})

    async def run() -> None:
        way = AiohttpTransport(server.url.replace("127.0.0.1", "localhost"))
        for _ in range(2):
            await way.send(REQUEST, Traffic.REST, 30.0)
        await way.close()

    asyncio.run(run())
    assert ["cookie" in asked.headers for asked in server.asked] == [False, False]


@contextmanager
def proxy() -> Iterator[ScriptedServer]:
    """Run a server in the role of a proxy."""
    with scripted_server() as found:
        found.healthy_response = lambda _: ScriptedResponse({"supported_models": []})  # type: ignore[method-assign]
        yield found


def test_environment_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTP_PROXY is used, its credentials go to it alone, and NO_PROXY is respected."""
    with proxy() as found:
        address = found.url.replace("http://", "http://me:secret@")
        monkeypatch.setenv("http_proxy", address)
        asyncio.run(send("aiohttp", "http://service.invalid"))
        (asked,) = found.asked
        assert asked.headers["host"] == "service.invalid"
        assert "proxy-authorization" in asked.headers
        assert "authorization" not in asked.headers
        monkeypatch.setenv("no_proxy", "service.invalid")
        assert "secret" not in str(error_of_send("aiohttp", "http://service.invalid"))


def test_proxy_error_shows_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error about the proxy does not show its password."""
    monkeypatch.setenv("http_proxy", "http://me:secret@127.0.0.1:1")
    assert "secret" not in str(error_of_send("aiohttp", "http://service.invalid"))


def mock(handler: Callable[[httpx.Request], httpx.Response]) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.MockTransport(handler))


def test_http_client_sends_everything_and_is_closed() -> None:
    """``http_client=`` is closed with the client."""
    asked: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        results = {
            "/p/api/v1/create_session": {"session_id": "s"},
            "/p/api/v1/create_model": {"request_id": "r"},
            "/p/api/v1/retrieve_future": {"model_id": "m"},
        }
        return httpx.Response(200, json=results[request.url.path])

    http = mock(handler)
    with open_client("https://service.invalid/p", http_client=http) as client:
        assert client.create_lora_training_client("base").result(PATIENCE_S).model_id == "m"
    assert http.is_closed
    with pytest.raises(ValueError, match="http_client is closed"):
        tw.ServiceClient(base_url="https://service.invalid/p", api_key=KEY, http_client=http)
    assert {request.headers["x-api-key"] for request in asked} == {KEY}
    assert len(asked) == 3


def test_httpx_client_trains_and_samples(server: ScriptedServer) -> None:
    """Sampling and training work over a real httpx client."""
    http = httpx.AsyncClient(limits=httpx.Limits(max_connections=None))
    with open_client(server.url, http_client=http) as client:
        training = client.create_lora_training_client("base")
        training.optim_step(ADAM).result(PATIENCE_S)
        sampling = training.save_weights_and_get_sampling_client()
        for future in [sampling.sample(PROMPT, 1, PARAMS) for _ in range(30)]:
            future.result(PATIENCE_S)
    assert http.is_closed


def test_closed_port_fails_client_in_seconds() -> None:
    """Every client fails with the address and the cause, and so do its operations."""
    with open_client("http://127.0.0.1:1", retry=attrs.evolve(FAST, max_attempts=3)) as client:
        training = client.create_lora_training_client("base")
        step = training.optim_step(ADAM)
        with pytest.raises(tw.APIConnectionError, match=r"127\.0\.0\.1:1/api/v1/create_session.*Connect"):
            training.result(PATIENCE_S)
        with pytest.raises(tw.TinkerError, match=r"not created: .*127\.0\.0\.1:1"):
            step.result(PATIENCE_S)


def test_timeout_grows_with_body(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow line does not fail large batches forever."""
    seen: list[float] = []

    class Recorder:
        async def send(self, request: WireRequest, traffic: Traffic, timeout_s: float) -> WireResponse:
            seen.append(timeout_s)
            return WireResponse(status=200, content=b"{}")

        async def close(self) -> None:
            """Nothing to close."""

    with open_client(server.url, transport=Recorder()) as client:
        link = client._connection
        small = WireRequest(method="POST", path="/x", headers={}, content=b"")
        large = attrs.evolve(small, content=bytes(5_000_000))
        link.start(lambda: link.exchange(small, Traffic.REST, 60.0)).result(PATIENCE_S)
        link.start(lambda: link.exchange(large, Traffic.REST, 60.0)).result(PATIENCE_S)
    assert seen == [60.0, 110.0]


def test_connection_closed_while_idle_is_replaced(server: ScriptedServer, client: tw.ServiceClient) -> None:
    """A kept connection that the server closed causes no error."""
    client.get_server_capabilities()
    server.rules["get_server_capabilities"] = lambda asked: ScriptedResponse(
        server.healthy_response(asked).body, headers={"connection": "close"}
    )
    for _ in range(5):
        client.get_server_capabilities()
    assert len({asked.peer for asked in server.asked}) == 5


def test_operation_deadline_limits_request(server: ScriptedServer) -> None:
    """A request without a response takes no longer than the operation may."""
    hold = Gate()
    server.rules["create_session"] = lambda asked: ScriptedResponse(server.healthy_response(asked).body, hold=hold)
    try:
        with (
            open_client(server.url, retry=tw.RetryConfig(progress_timeout=0.3, max_attempts=2)) as client,
            pytest.raises(tw.RequestTimeoutError, match=r"progress_timeout=0\.3 s"),
        ):
            client.create_lora_training_client("base").result(PATIENCE_S)
    finally:
        hold.release()


@pytest.mark.parametrize(
    "location", ["https://me:hi/dden@new.invalid/p?key=hidden#hidden", "//me:hidden@new.invalid/p"]
)
def test_redirect_error_names_target_without_secrets(
    server: ScriptedServer, client: tw.ServiceClient, location: str
) -> None:
    """No part of the error has the user or the query of the target."""
    server.rules["get_server_capabilities"] = lambda _: ScriptedResponse({}, status=308, headers={"location": location})
    with pytest.raises(tw.APIStatusError, match=r"HTTP 308 redirects to .*new\.invalid/p, which is not") as caught:
        client.get_server_capabilities()
    assert "dden" not in f"{caught.value.response.headers['location']} {caught.value!r}"


@pytest.mark.parametrize(
    "url", ["ftp://me:hidden@host/p", "me:hidden@host", "ftp://me:hi/dden@host", "ftp://host/?key=hidden", "x:hidden@h"]
)
def test_password_in_address_is_not_shown(url: str) -> None:
    """With any scheme, the error about the address shows no part of a credential."""
    with pytest.raises(ValueError, match="base_url") as caught:
        tw.ServiceClient(base_url=url, api_key=KEY)
    assert "dden" not in str(caught.value)


def test_large_body_raises_no_warning(server: ScriptedServer) -> None:
    """Warnings are errors in many test suites; a body beyond 1 MiB must not raise one."""
    chunk = tw.types.EncodedTextChunk(tokens=list(range(200_000)))
    data = [tw.Datum(model_input=tw.ModelInput(chunks=[chunk]), loss_fn_inputs={"weights": [1.0]})]
    with open_client(server.url, retry=attrs.evolve(FAST, max_attempts=1)) as client:
        client.create_lora_training_client("base").forward_backward(data, "cross_entropy").result(PATIENCE_S)
    (asked,) = server.named("forward_backward")
    assert int(asked.headers["content-length"]) > 1 << 20
    assert asked.body["forward_backward_input"]["data"][0]["model_input"]["chunks"][0]["tokens"] == chunk.tokens
