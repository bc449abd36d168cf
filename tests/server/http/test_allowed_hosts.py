"""Tests that a web page cannot read a server by a name that resolves to this machine."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from support.embedded import embedded_http_server
from tinkerwire._server.http.allowed_hosts import AllowedHosts
from tinkerwire._server.http.responses import HttpError


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Start a server that allows one further host."""
    with embedded_http_server("--allow-host", "GPU.example.org") as http_server:
        yield http_server


def _get(url: str, *headers: tuple[str, str]) -> tuple[int, str]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    connection.putrequest("GET", "/api/v1/healthz", skip_host=True)
    for name, value in headers:
        connection.putheader(name, value)
    connection.endheaders()
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, text


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.2:1", "localhost", "LocalHost.:8080", "a.localhost", "[::1]:80", "gpu.example.org:99"],
)
def test_own_hosts_are_accepted(url: str, host: str) -> None:
    """These are loopback names and the allowed host, in any case, with and without port and trailing dot."""
    assert _get(url, ("Host", host))[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "localhost.evil.example", "evil-localhost", "gpu.example.org.evil.example", "8.8.8.8"),
        *("0.0.0.0", "[2001:db8::1]", "", "localhost@evil.example", "a b", "[::1", "localhost:port", "127.1", "é"),
    ],
)
def test_other_hosts_are_rejected(url: str, host: str) -> None:
    """The error names the option that allows a host."""
    status, text = _get(url, ("Host", host))
    assert status in (400, 421)
    assert "--allow-host" in text or status == 400


def test_missing_or_repeated_host_is_rejected(url: str) -> None:
    """The host that a proxy or a browser meant is ambiguous."""
    assert _get(url)[0] in (400, 421)
    assert _get(url, ("Host", "localhost"), ("Host", "evil.example"))[0] in (400, 421)


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1.evil.example", "file://"])
def test_pages_of_other_sites_are_rejected(url: str, origin: str) -> None:
    """This includes requests that a browser sends without a preflight."""
    status, text = _get(url, ("Host", "localhost"), ("Origin", origin))
    assert status == 403
    assert "--allow-host" in text
    assert _get(url, ("Host", "localhost"), ("Origin", "http://localhost:3000"))[0] == 200


def test_address_of_the_connection_is_accepted() -> None:
    """A server on all addresses of a machine accepts each of them, and no other."""
    allowed = AllowedHosts()
    allowed.check(["192.0.2.7:80"], [], "192.0.2.7")
    allowed.check(["192.0.2.7:80"], [], "::ffff:192.0.2.7")
    allowed.check(["[fe80::1]:80"], [], "fe80::1%eth0")
    with pytest.raises(HttpError, match=r"192\.0\.2\.8"):
        allowed.check(["192.0.2.8"], [], "192.0.2.7")
    with pytest.raises(ValueError, match="is not a host"):
        AllowedHosts(["http://a"])
