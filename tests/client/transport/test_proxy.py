"""Proxies of the environment."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from support.scripted import ScriptedResponse, ScriptedServer, scripted_server
from support.transports import error_of_send, send

pytestmark = pytest.mark.timeout(60)


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
