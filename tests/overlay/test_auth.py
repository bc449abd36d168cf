"""Where key and address come from, and that the key shows nowhere but on the wire."""

from __future__ import annotations

import copy
import io
import logging
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import ADAM, FAST, KEY, PARAMS, PROMPT, open_client
from support.scripted import PATIENCE_S, Answer, Scripted
from tinkerwire.auth import DEFAULT_BASE_URL, Secret, resolve_api_key, resolve_base_url

pytestmark = pytest.mark.timeout(60)


def test_the_key_goes_with_every_request(server: Scripted, client: tw.ServiceClient) -> None:
    """X-API-Key is on every request of every kind; Authorization never is."""
    client.create_lora_training_client("base").optim_step(ADAM).result(PATIENCE_S)
    client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS).result(PATIENCE_S)
    client.create_rest_client().list_training_runs().result(PATIENCE_S)
    assert len({asked.name for asked in server.asked}) >= 7
    assert {asked.headers["x-api-key"] for asked in server.asked} == {KEY}
    assert not any("authorization" in asked.headers for asked in server.asked)


def test_the_argument_goes_before_the_environment(server: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Key and address: the argument, else TINKER_API_KEY and TINKER_BASE_URL; empty ones count as none."""
    monkeypatch.setenv("TINKER_API_KEY", "from-environment")
    monkeypatch.setenv("TINKER_BASE_URL", server.url + "/")
    for options in ({}, {"api_key": "", "base_url": ""}, {"api_key": "given"}):
        with tw.ServiceClient(**options) as client:
            client.get_server_capabilities()
    asked_keys = [asked.headers["x-api-key"] for asked in server.named("get_server_capabilities")]
    assert asked_keys == ["from-environment"] * 2 + ["given"]
    monkeypatch.setenv("TINKER_BASE_URL", "http://127.0.0.1:1")
    with tw.ServiceClient(base_url=server.url) as client:
        client.get_server_capabilities()
    assert len(server.named("get_server_capabilities")) == 4


def test_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service is the default; a path is kept, a slash at the end is not."""
    assert resolve_base_url(None) == DEFAULT_BASE_URL
    assert resolve_base_url("https://h/a/b/") == "https://h/a/b"
    assert resolve_base_url("local") == "local"
    monkeypatch.setenv("TINKER_BASE_URL", "https://other")
    assert resolve_base_url(None) == "https://other"


@pytest.mark.parametrize("wrong", ["h", "ftp://h", "http://", "//h", "file:///etc/passwd", "https:/h"])
def test_what_is_no_address(wrong: str) -> None:
    """What is no http(s) URL is refused, with the word for the embedded server."""
    with pytest.raises(ValueError, match=r"not an http\(s\) URL.*'local'"):
        resolve_base_url(wrong)


@pytest.mark.parametrize(
    "address", [f"https://me:{KEY}@h", f"https://{KEY}@h/a", f"https://h/a?key={KEY}", f"https://h#{KEY}"]
)
def test_an_address_holds_no_secret(address: str) -> None:
    """An address with a user, query or fragment is refused, without repeating it: addresses stand in logs."""
    with pytest.raises(ValueError, match="api_key=") as caught:
        resolve_base_url(address)
    assert KEY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("address", ["http://example.org", "http://10.0.0.1:8000", "http://localhost.evil.org"])
def test_no_key_over_plain_http(address: str) -> None:
    """A key is not sent in the clear to another machine."""
    with pytest.raises(tw.TinkerError, match="plain http"):
        tw.ServiceClient(base_url=address, api_key=KEY)


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "http://LOCALHOST:1"]
)
def test_loopback_needs_no_key(address: str) -> None:
    """A server on this machine takes a key over plain http, and does without one."""
    assert resolve_api_key(None, address) is None
    assert isinstance(resolve_api_key(KEY, address), Secret)


def test_without_a_key(server: Scripted) -> None:
    """Without a key no header is sent; a server elsewhere needs one, and the error says where it may come from."""
    with tw.ServiceClient(base_url=server.url) as client:
        client.get_server_capabilities()
    assert "x-api-key" not in server.asked[0].headers
    with pytest.raises(tw.TinkerError, match=r"api_key=.*TINKER_API_KEY.*local"):
        tw.ServiceClient(base_url="https://example.org")
    assert resolve_api_key(KEY, "local") is None


@pytest.mark.parametrize("wrong", [f"{KEY} ", f" {KEY}", f"{KEY}\n", f"{KEY}\x00", f"{KEY}\u2011x", f"{KEY}é"])
def test_a_key_that_cannot_be_one(wrong: str) -> None:
    """A key with blanks or characters that no header takes is refused, without showing it."""
    with pytest.raises(tw.TinkerError, match="how it was copied") as caught:
        tw.ServiceClient(base_url="https://example.org", api_key=wrong)
    assert KEY not in "".join(traceback.format_exception(caught.value))


def test_a_secret_shows_nothing() -> None:
    """repr, str, format and an f-string of a secret do not show it."""
    secret = Secret(KEY)
    for shown in (repr(secret), str(secret), f"{secret}", f"{secret!r}", "%s" % secret, repr([secret])):  # noqa: UP031
        assert KEY not in shown
    assert secret.reveal() == KEY


def everything_in(thing: object, depth: int = 4) -> Iterator[str]:
    """The texts of an object and of what hangs on it, as a debugger or an error reporter would show them."""
    yield repr(thing)
    yield str(thing)
    if depth:
        for value in (*vars(thing).values(), *getattr(thing, "args", ())) if hasattr(thing, "__dict__") else ():
            yield from everything_in(value, depth - 1)
        for link in ("__cause__", "__context__"):
            if getattr(thing, link, None) is not None:
                yield from everything_in(getattr(thing, link), depth - 1)


TROUBLE: dict[str, Callable[[Scripted], Any]] = {
    "status": lambda server: server.rules.update({"asample": lambda _: Answer({"detail": "no"}, status=403)}),
    "dropped": lambda server: server.rules.update({"asample": lambda _: Answer(drop=True)}),
    "no HTTP": lambda server: server.rules.update({"asample": lambda _: Answer(raw=b"HTTP/9 banana\r\n\r\n")}),
    "cut": lambda server: server.rules.update(
        {"asample": lambda _: Answer(raw=b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{")}
    ),
    "misfit": lambda server: server.rules.update({"asample": lambda _: Answer([1])}),
    "failed": lambda server: server.on_poll("Sample", lambda _: Answer({"error": "e"})),
    "expired": lambda server: server.on_poll("Sample", lambda _: Answer(status=410)),
    "late": lambda server: server.on_poll("Sample", lambda _: Answer(status=408)),
}


@pytest.mark.parametrize("kind", ["aiohttp", "httpx"])
@pytest.mark.parametrize("trouble", TROUBLE.values(), ids=TROUBLE)
def test_no_error_shows_the_key(server: Scripted, trouble: Callable[[Scripted], Any], kind: str) -> None:
    """No error, its parts, causes, traceback or log line shows the key, whatever went wrong."""
    trouble(server)
    import httpx  # noqa: PLC0415

    text = io.StringIO()
    handler = logging.StreamHandler(text)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    http = httpx.AsyncClient() if kind == "httpx" else None
    policy = tw.RetryConfig(retry_delay_base=0.01, max_attempts=3, progress_timeout=1.0)
    try:
        with open_client(server.url, retry=policy, http_client=http) as client:
            sampling = client.create_sampling_client(base_model="base")
            with pytest.raises(tw.TinkerError) as caught:
                sampling.sample(PROMPT, 1, PARAMS).result(PATIENCE_S)
            for thing in (client, sampling, client._connection, client._session, client.create_rest_client()):
                text.write(repr(thing) + str(thing))
            for name in ("_transport", "_headers"):
                text.write(repr(getattr(client._connection, name)))
            if http is not None:
                client._connection.start(http.aclose()).result(PATIENCE_S)
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    shown = "".join(traceback.format_exception(caught.value))
    assert KEY not in shown
    assert KEY not in text.getvalue()
    assert not [found for found in everything_in(caught.value) if KEY in found]


def test_no_frame_of_an_error_holds_the_key(server: Scripted) -> None:
    """The traceback of a failed request has no local variable with the key, as error reporters would send them."""
    server.rules["get_server_capabilities"] = lambda _: Answer(raw=b"HTTP/9 banana\r\n\r\n")
    policy = tw.RetryConfig(enable_retry_logic=False)
    with open_client(server.url, retry=policy) as client, pytest.raises(tw.APIConnectionError) as caught:
        client.get_server_capabilities()
    shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    text = "".join(line for line in shown.format() if "tests/" not in line)
    assert "WireRequest" in text
    assert KEY not in text.replace(f"KEY = {KEY!r}", "")


def test_headers_of_the_users_own(server: Scripted) -> None:
    """default_headers_overrides go with every request, and do not replace the key."""
    with open_client(server.url, default_headers_overrides={"CF-Access-Client-Id": "c", "X-Api-Key": "z"}) as client:
        client.create_lora_training_client("base").optim_step(ADAM).result(PATIENCE_S)
    assert {asked.headers["cf-access-client-id"] for asked in server.asked} == {"c"}
    assert {asked.headers["x-api-key"] for asked in server.asked} == {KEY}


def test_a_policy_is_no_place_for_secrets() -> None:
    """What is printed of a policy is its numbers."""
    assert "max_attempts=10" in repr(copy.copy(FAST))
