"""The address of a server: its sources, and hosts that receive no key."""

from __future__ import annotations

import traceback

import pytest

import tinkerwire as tw
from support.clients import KEY
from support.scripted import TEST_TIMEOUT_S
from tinkerwire._transport.address import DEFAULT_BASE_URL, resolve_base_url

pytestmark = pytest.mark.timeout(60)


def test_default_address_and_trailing_slash(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service is the default; a path is kept, a trailing slash is removed."""
    assert resolve_base_url(None) == DEFAULT_BASE_URL
    assert resolve_base_url("https://h/a/b/") == "https://h/a/b"
    assert resolve_base_url("local") == "local"
    monkeypatch.setenv("TINKER_BASE_URL", "https://other")
    assert resolve_base_url(None) == "https://other"


@pytest.mark.parametrize(
    "wrong",
    ["h", "ftp://h", "http://", "//h", "file:///etc/passwd", "https:/h", "http://h:99999", "http://h:x", "http://["],
)
def test_invalid_address_is_rejected(wrong: str) -> None:
    """The error names the base URL of the embedded server."""
    with pytest.raises(ValueError, match=r"not an http\(s\) URL.*'local'"):
        resolve_base_url(wrong)


@pytest.mark.parametrize(
    "address", [f"https://me:{KEY}@h", f"https://{KEY}@h/a", f"https://h/a?key={KEY}", f"https://h#{KEY}"]
)
def test_address_with_secret_is_rejected(address: str) -> None:
    """The error about a user, query or fragment does not repeat the address."""
    with pytest.raises(ValueError, match="api_key=") as caught:
        resolve_base_url(address)
    assert KEY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("address", ["http://example.org", "http://10.0.0.1:8000", "http://localhost.evil.org"])
def test_key_is_not_sent_over_plain_http(address: str) -> None:
    """The client raises an error for another machine."""
    with pytest.raises(tw.TinkerError, match="plain http"):
        tw.ServiceClient(base_url=address, api_key=KEY)
    with pytest.raises(tw.TinkerError, match="plain http"):
        tw.ServiceClient(base_url=address)


def test_plain_http_hosts_allow_named_hosts_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts are named by argument or environment."""
    cases: list[tuple[str, list[str] | None, str]] = [
        ("trainer", ["a", "Trainer"], ""),
        ("trainer", None, "a, trainer"),
        ("[::2]", None, "[::2],trainer"),
        ("[::2]", ["::2"], ""),
    ]
    for host, hosts, variable in cases:
        monkeypatch.setenv("TINKER_PLAIN_HTTP_HOSTS", variable)
        tw.ServiceClient(base_url=f"http://{host}:8000", api_key=KEY, plain_http_hosts=hosts).close().result(
            TEST_TIMEOUT_S
        )
        with pytest.raises(tw.TinkerError, match=r"plain_http_hosts=.*TINKER_PLAIN_HTTP_HOSTS=other"):
            tw.ServiceClient(base_url="http://other:8000", api_key=KEY, plain_http_hosts=hosts)
    with pytest.raises(tw.TinkerError, match="plain http"):
        tw.ServiceClient(base_url="http://trainer", api_key=KEY, plain_http_hosts=[])
    with pytest.raises(TypeError, match="plain_http_hosts: expected a collection"):
        tw.ServiceClient(base_url="http://trainer", api_key=KEY, plain_http_hosts="trainer")
