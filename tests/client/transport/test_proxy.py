"""Proxies of the environment."""

from __future__ import annotations

import asyncio
import base64
import gc
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import support
import tinkerwire as tw
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer, scripted_server
from support.transports import REQUEST, error_of_send, send
from support.tunnel import tunnel
from tinkerwire._transport.backpressure import Traffic
from tinkerwire._transport.http_transport import HttpTransport
from tinkerwire_base.call import WireResponse

pytestmark = pytest.mark.timeout(60)
CERTIFICATES = Path(support.__path__[0]) / "certificates"


@contextmanager
def proxy() -> Iterator[ScriptedServer]:
    """Run a server in the role of a proxy."""
    with scripted_server() as server:
        server.healthy_response = lambda _: ScriptedResponse({"supported_models": []})  # type: ignore[method-assign]
        yield server


def test_environment_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTP_PROXY is used, its credentials go to it alone, and NO_PROXY is respected."""
    with proxy() as server:
        address = server.url.replace("http://", "http://me:secret@")
        monkeypatch.setenv("http_proxy", address)
        asyncio.run(send("builtin", "http://service.invalid"))
        (request,) = server.requests
        assert request.headers["host"] == "service.invalid"
        assert "proxy-authorization" in request.headers
        assert "authorization" not in request.headers
        monkeypatch.setenv("no_proxy", "service.invalid")
        assert "secret" not in str(error_of_send("builtin", "http://service.invalid"))


def test_proxy_error_shows_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error about the proxy does not show its password."""
    monkeypatch.setenv("http_proxy", "http://me:secret@127.0.0.1:1")
    assert "secret" not in str(error_of_send("builtin", "http://service.invalid"))


def test_cancelled_connection_to_a_proxy_is_not_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request may be cancelled at any step of the connection to the proxy."""
    logged: list[str] = []

    async def cancel_at_any_step() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: logged.append(context["message"]))
        transport = HttpTransport("https://service.invalid")
        for steps in range(30):
            task = asyncio.create_task(transport.send(REQUEST, Traffic.REST, TEST_TIMEOUT_S))
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await transport.close()
        gc.collect()

    with tunnel(("127.0.0.1", 1)) as server:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{server.port}")
        asyncio.run(cancel_at_any_step())
    assert logged == []


@pytest.mark.skipif(sys.version_info < (3, 11), reason="asyncio has no TLS within TLS before Python 3.11")
@pytest.mark.parametrize("answer", ["", "HTTP/1.1 403 Forbidden\r\n\r\n", "x" * 100_000])
def test_proxy_over_https_tunnels(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    """The connection to the proxy is encrypted, and the one within it, too; a response that refuses is named."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / "certificate.pem", CERTIFICATES / "key.pem")
    heads: list[bytes] = []

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    async def run(target: int) -> WireResponse:
        ended = asyncio.Event()

        async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                with suppress(OSError):
                    await respond(reader, writer)
            finally:
                ended.set()

        async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write((answer or "HTTP/1.1 200 Connected\r\n\r\n").encode())
            if answer:
                await reader.read()
                writer.close()
                return
            to_server = await asyncio.open_connection("127.0.0.1", target)
            await asyncio.gather(pipe(reader, to_server[1]), pipe(to_server[0], writer))

        async with await asyncio.start_server(tunnel, "127.0.0.1", 0, ssl=context) as listener:
            port = listener.sockets[0].getsockname()[1]
            monkeypatch.setenv("https_proxy", f"https://me:p%20w@localhost:{port}")
            try:
                return await send("builtin", "https://service.invalid")
            finally:
                await ended.wait()

    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATES / "certificate.pem"))
    with scripted_server(context) as server:
        target = int(server.url.rpartition(":")[2])
        if answer:
            with pytest.raises(tw.APIConnectionError, match="the proxy is localhost") as caught:
                asyncio.run(run(target))
            assert not caught.value.may_have_been_sent
            assert "p w" not in str(caught.value)
        else:
            assert asyncio.run(run(target)).status == 200
            assert len(server.requests) == 1
    assert heads[0].startswith(b"CONNECT service.invalid:443 HTTP/1.1\r\nhost: service.invalid:443\r\n")
    assert base64.b64encode(b"me:p w") in heads[0]
