"""Errors of transports: everything that can fail becomes an error of the client, without secrets."""

from __future__ import annotations

import ssl
from types import ModuleType
from typing import NoReturn

import attrs
import httptools
import httpx
import pytest

import tinkerwire as tw
from support.clients import ADAM, FAST, KEY, open_client
from support.scripted import TEST_TIMEOUT_S, Gate, ScriptedResponse, ScriptedServer
from support.transports import KINDS, error_of_send
from tinkerwire._transport import connector

pytestmark = pytest.mark.timeout(60)


def exceptions_of(module: ModuleType) -> list[type[Exception]]:
    """Return the exception classes of a module."""
    return [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Exception)]


def create_exception(cls: type[Exception]) -> Exception:
    """Return an instance of an exception class with any constructor."""
    error = cls.__new__(cls)
    error.args = ("a reason",)
    return error


HTTPX_NOT_RAISED = {"CookieConflict"}


@pytest.mark.parametrize("cls", exceptions_of(httptools), ids=lambda cls: cls.__name__)
def test_parser_errors_are_mapped(
    cls: type[Exception], server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every exception class of httptools becomes APIConnectionError."""

    class Parser:
        def __init__(self, _: object) -> None:
            pass

        def feed_data(self, _: object) -> NoReturn:
            raise create_exception(cls)

    monkeypatch.setattr(httptools, "HttpResponseParser", Parser)
    error = error_of_send("builtin", server.url)
    assert error.may_have_been_sent
    assert not isinstance(error, tw.APITimeoutError)


@pytest.mark.parametrize("cls", exceptions_of(httpx), ids=lambda cls: cls.__name__)
def test_httpx_errors_are_mapped(cls: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every exception class of httpx that a request can raise becomes APITimeoutError or APIConnectionError."""
    if cls.__name__ in HTTPX_NOT_RAISED:
        return

    async def refuse(*_: object, **__: object) -> NoReturn:
        raise create_exception(cls)

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

    def refuse(*_: object, **__: object) -> NoReturn:
        raise cls("a reason")

    monkeypatch.setattr(connector.NameLookup, "connect", refuse)
    monkeypatch.setattr(httpx.AsyncClient, "send", refuse)
    assert isinstance(error_of_send(kind, "http://127.0.0.1:1"), tw.APITimeoutError) == (cls is TimeoutError)


@pytest.mark.parametrize("kind", KINDS)
def test_closed_port_is_named(kind: str) -> None:
    """The error has the address and the cause."""
    error = error_of_send(kind, "http://127.0.0.1:1")
    assert "Connect" in str(error)
    assert isinstance(error.__cause__, ConnectionRefusedError if kind == "builtin" else OSError)
    assert not isinstance(error, tw.APITimeoutError)
    assert not error.may_have_been_sent


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 64 + ".invalid", "a..b"])
@pytest.mark.parametrize("kind", KINDS)
def test_unknown_host_is_named(kind: str, host: str) -> None:
    """A name that does not resolve, or cannot be looked up, is a connection error that shows the address."""
    error_of_send(kind, f"http://{host}:1")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "response",
    [ScriptedResponse(gate=Gate()), ScriptedResponse(b" " * 10_000, trickle_s=0.1)],
    ids=["silence", "trickle"],
)
def test_timeout_covers_whole_response(server: ScriptedServer, kind: str, response: ScriptedResponse) -> None:
    """A server that is silent, or sends byte by byte, is left after the timeout."""
    server.rules["get_server_capabilities"] = lambda _: response
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


def test_closed_port_fails_client_in_seconds() -> None:
    """Every client fails with the address and the cause, and so do its operations."""
    with open_client("http://127.0.0.1:1", retry=attrs.evolve(FAST, max_attempts=3)) as client:
        training = client.create_lora_training_client("base")
        step = training.optim_step(ADAM)
        with pytest.raises(tw.APIConnectionError, match=r"127\.0\.0\.1:1/api/v1/create_session.*Connect"):
            training.result(TEST_TIMEOUT_S)
        with pytest.raises(tw.TinkerError, match=r"not created: .*127\.0\.0\.1:1"):
            step.result(TEST_TIMEOUT_S)


def test_operation_deadline_limits_request(server: ScriptedServer) -> None:
    """A request without a response takes no longer than the operation may."""
    gate = Gate()
    server.rules["create_session"] = lambda request: ScriptedResponse(server.healthy_response(request).body, gate=gate)
    try:
        with (
            open_client(server.url, retry=tw.RetryConfig(progress_timeout=0.3, max_attempts=2)) as client,
            pytest.raises(tw.RequestTimeoutError, match=r"progress_timeout=0\.3 s"),
        ):
            client.create_lora_training_client("base").result(TEST_TIMEOUT_S)
    finally:
        gate.release()


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
