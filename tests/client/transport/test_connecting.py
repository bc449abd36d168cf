"""Tests of connections: certificates, proxies, unreachable servers, and the time until errors."""

from __future__ import annotations

import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import httpx
import pytest

import support
import tinkerwire as tw
from support.clients import ADAM, KEY, open_client
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer, scripted_server
from support.tunnel import Tunnel, tunnel
from tinkerwire._transport.proxy import environment_proxy

pytestmark = pytest.mark.timeout(60)
CERTIFICATES = Path(support.__path__[0]) / "certificates"
CERTIFICATE = CERTIFICATES / "certificate.pem"
"""For localhost, 127.0.0.1 and service.invalid, self-signed: a client that trusts it trusts the server."""
NO_RETRIES = tw.RetryConfig(enable_retry_logic=False)


@pytest.fixture
def secure() -> Iterator[ScriptedServer]:
    """Run a server over https."""
    with _secure() as secure_server:
        yield secure_server


@contextmanager
def _secure() -> Iterator[ScriptedServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, CERTIFICATES / "key.pem")
    with scripted_server(context) as scripted:
        yield scripted


@pytest.fixture
def proxy(secure: ScriptedServer) -> Iterator[Tunnel]:
    """Run a proxy to the server."""
    with tunnel(("127.0.0.1", port_of(secure))) as tunnel_server:
        yield tunnel_server


def port_of(server: ScriptedServer) -> int:
    return int(server.url.rpartition(":")[2])


def train(url: str, **options: Any) -> None:
    """Run one operation from the opening of a client to its result."""
    with open_client(url, **options) as client:
        client.create_lora_training_client("base").optim_step(ADAM).result(TEST_TIMEOUT_S)


def error_of_client(url: str, **options: Any) -> tw.TinkerError:
    """Return the error of a client that cannot create a model."""
    with open_client(url, **options) as client:
        error = client.create_lora_training_client("base").optim_step(ADAM).exception(TEST_TIMEOUT_S)
    assert isinstance(error, tw.TinkerError)
    return error


# --- how soon ---------------------------------------------------------------------------------------------------------


def test_unreachable_server_is_reported_within_ten_seconds(secure: ScriptedServer) -> None:
    """A closed port, a wrong name and another host's certificate raise an error that names the cause.

    It takes six seconds, and all attempts of the policy forty; a busy machine may take the time between.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        closed = listener.getsockname()[1]
    wrong = {
        f"http://127.0.0.1:{closed}": "Connect",
        "https://no-such-host.invalid": "no-such-host.invalid",
        secure.url: "certificate verify failed",
    }

    def timed(url: str) -> tuple[tw.TinkerError, float]:
        started = time.monotonic()
        return error_of_client(url, retry=tw.RetryConfig(), wire_version=None), time.monotonic() - started

    with ThreadPoolExecutor() as pool:
        for (url, cause), (error, took) in zip(wrong.items(), pool.map(timed, wrong), strict=True):
            assert isinstance(error, tw.APIConnectionError)
            assert url in str(error)
            assert cause in str(error)
            assert took < 30


def test_silent_name_server_times_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking up a name has the timeout of a connection, and is not repeated."""
    over, looks = threading.Event(), []

    def wait(host: str, *_: Any, **__: Any) -> Any:
        looks.append(host)
        over.wait(2 * TEST_TIMEOUT_S)
        raise socket.gaierror(socket.EAI_AGAIN, "no answer")

    monkeypatch.setattr(socket, "getaddrinfo", wait)
    with open_client("http://service.invalid", retry=tw.RetryConfig(), plain_http_hosts=["service.invalid"]) as client:
        try:
            error = client.create_lora_training_client("base").optim_step(ADAM).exception(TEST_TIMEOUT_S)
        finally:
            over.set()
    assert isinstance(error, tw.APITimeoutError)
    assert "no connection within 5 s" in str(error)
    assert looks == ["service.invalid"]


def fetch_capabilities(url: str) -> None:
    """Run the task of a worker process."""
    with open_client(url, retry=NO_RETRIES) as client:
        client.get_server_capabilities()


def test_errors_cross_processes(server: ScriptedServer) -> None:
    """An error of a worker process keeps its class, its text and its attributes."""
    server.rules["get_server_capabilities"] = lambda _: ScriptedResponse({"detail": "not today"}, status=503)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        refused = pool.submit(fetch_capabilities, server.url).exception(TEST_TIMEOUT_S)
        unreachable = pool.submit(fetch_capabilities, "http://127.0.0.1:1").exception(TEST_TIMEOUT_S)
    assert isinstance(refused, tw.InternalServerError)
    assert (refused.status_code, refused.body) == (503, {"detail": "not today"})
    assert isinstance(unreachable, tw.APIConnectionError)
    assert "127.0.0.1:1" in unreachable.message


# --- certificates -----------------------------------------------------------------------------------------------------


def test_untrusted_certificate_is_rejected_with_hint(secure: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent, and the error names the trusted certificates."""
    error = error_of_client(secure.url, retry=NO_RETRIES)
    assert "certificate verify failed" in str(error)
    assert "SSL_CERT_FILE" in str(error)
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere.pem")
    assert "SSL_CERT_FILE=/nowhere.pem is trusted, but the file does not exist" in str(
        error_of_client(secure.url, retry=NO_RETRIES)
    )
    assert not secure.requests


def test_ssl_cert_file_is_trusted(secure: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds for every client that is made after it was set."""
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    train(secure.url)
    assert secure.named("optim_step")[0].headers["x-api-key"] == KEY


def test_system_certificate_store_is_trusted(
    secure: ScriptedServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The store has the system's form, by the name that OpenSSL looks up."""
    (tmp_path / f"{_subject_hash()}.0").write_text(CERTIFICATE.read_text())
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    train(secure.url)


def _subject_hash() -> str:
    """Return OpenSSL's file name for this certificate in a store."""
    return "cb12e286"


def test_certificate_of_another_host_is_rejected(secure: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trusted certificate of another host is not accepted."""
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    monkeypatch.setattr(socket, "getaddrinfo", _everything_is_here(socket.getaddrinfo))
    error = error_of_client(secure.url.replace("127.0.0.1", "other.invalid"), retry=NO_RETRIES)
    assert "other.invalid" in str(error)
    assert "mismatch" in str(error)


def _everything_is_here(lookup: Any) -> Any:
    return lambda host, *rest, **more: lookup("127.0.0.1", *rest, **more)


# --- proxies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
@pytest.mark.parametrize("form", ["http://127.0.0.1:{}", "127.0.0.1:{}"])
def test_https_proxy_tunnels_without_key(
    secure: ScriptedServer, proxy: Tunnel, monkeypatch: pytest.MonkeyPatch, name: str, form: str
) -> None:
    """The proxy sees the requested host, but no key."""
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    monkeypatch.setenv(name, form.format(proxy.port))
    train("https://service.invalid")
    assert secure.named("optim_step")
    assert {request.split()[1] for request in proxy.requests} == {"service.invalid:443"}
    assert KEY not in "".join(proxy.requests)


def test_fully_qualified_name_has_the_certificate_of_its_host(proxy: Tunnel, monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate names its host without the dot at the end of a fully qualified name."""
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
    train("https://service.invalid.")


def test_proxy_password_is_sent_but_not_shown(proxy: Tunnel, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable's password goes to the proxy; no error shows a rejected one."""
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:pass-word@127.0.0.1:{proxy.port}")
    proxy.refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n"
    error = error_of_client("https://service.invalid", retry=NO_RETRIES)
    assert "407" in str(error)
    assert "pass-word" not in str(error)
    assert "proxy-authorization: basic" in proxy.requests[0].lower()


@pytest.mark.parametrize("value", ["service.invalid", ".invalid", "*", "other,service.invalid:443"])
def test_no_proxy_bypasses_proxy(proxy: Tunnel, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """NO_PROXY names hosts, domains, hosts with port, or all."""
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
    monkeypatch.setenv("NO_PROXY", value)
    assert "service.invalid" in str(error_of_client("https://service.invalid:443", retry=NO_RETRIES))
    assert not proxy.requests


@pytest.mark.parametrize(
    ("value", "address", "is_direct"),
    [
        ("10.0.0.0/8", "10.1.2.3", True),
        ("other, 10.1.0.0/16", "10.1.2.3", True),
        ("10.1.2.4/8", "10.1.2.3", True),
        ("10.1.2.3/32", "10.1.2.3", True),
        ("fd00::/8", "[fd00::1]", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("fd00::/8", "10.1.2.3", False),
        ("10.0.0.0/99,x/y,/", "10.1.2.3", False),
        ("0.0.0.0/0", "service.invalid", False),
    ],
)
def test_no_proxy_accepts_address_ranges(
    monkeypatch: pytest.MonkeyPatch, value: str, address: str, is_direct: bool
) -> None:
    """A range holds for addresses, as with curl and requests; names are not looked up."""
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:1")
    monkeypatch.setenv("NO_PROXY", value)
    assert (environment_proxy(f"https://{address}:443/x") is None) is is_direct


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_loopback_address_uses_no_proxy(
    server: ScriptedServer, proxy: Tunnel, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """A key for this machine over plain http does not leave it."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
    train(server.url.replace("127.0.0.1", host))
    assert server.named("optim_step")[0].headers["x-api-key"] == KEY
    assert not proxy.requests


def test_unreachable_proxy_is_named_without_password(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the proxy, not its password."""
    monkeypatch.setenv("HTTPS_PROXY", "http://me:pass-word@127.0.0.1:1")
    error = error_of_client("https://service.invalid", retry=NO_RETRIES)
    assert "127.0.0.1:1" in str(error)
    assert "pass-word" not in str(error)


def test_unsupported_proxy_is_rejected_at_construction(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client of the user may support it."""
    monkeypatch.setenv("ALL_PROXY", "socks5://me:pass-word@127.0.0.1:1")
    with pytest.raises(ValueError, match=r"socks5 proxies are not supported.*NO_PROXY.*http_client=") as caught:
        tw.ServiceClient(base_url="https://service.invalid", api_key=KEY)
    assert "pass-word" not in str(caught.value)
    for odd in (
        "http://me:pass#word@proxy:1",
        "http://me:pass/word@proxy:1",
        "http://",
        "http://proxy:port",
        "http://[",
    ):
        monkeypatch.setenv("ALL_PROXY", odd)
        with pytest.raises(ValueError, match="must be a URL") as caught:
            tw.ServiceClient(base_url="https://service.invalid", api_key=KEY)
        assert "pass" not in str(caught.value).partition("in a user or")[0]
    assert environment_proxy("http://127.0.0.1:8000") is None
    results = {"create_session": {"session_id": "s"}, "create_model": {"request_id": "r"}}

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=results.get(request.url.path.rpartition("/")[2], {"model_id": "m"}))

    http = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    with open_client("https://service.invalid", http_client=http) as client:
        assert client.create_lora_training_client("base").model_id == "m"


def test_http_proxy_is_used_for_plain_http_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain http to an allowed host goes through HTTP_PROXY."""
    with scripted_server() as plain_server:
        monkeypatch.setenv("HTTP_PROXY" if os.name == "nt" else "http_proxy", plain_server.url)
        plain_server.rules["create_session"] = lambda _: ScriptedResponse({"session_id": "s9"})
        train("http://trainer", plain_http_hosts=["trainer"])
        assert {request.headers["host"] for request in plain_server.requests} == {"trainer"}
