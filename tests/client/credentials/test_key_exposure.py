"""Tests that errors, their tracebacks, log lines and reprs do not contain the API key."""

from __future__ import annotations

import io
import logging
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

import tinkerwire as tw
from support.clients import KEY, PARAMS, PROMPT, open_client
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer

pytestmark = pytest.mark.timeout(60)
TESTS = str(Path(__file__).parents[2])


def list_attribute_texts(value: object, depth: int = 4) -> Iterator[str]:
    """Yield the texts of an object and its attributes, as a debugger or an error reporter shows them."""
    yield repr(value)
    yield str(value)
    if depth:
        for attribute in (*vars(value).values(), *getattr(value, "args", ())) if hasattr(value, "__dict__") else ():
            yield from list_attribute_texts(attribute, depth - 1)
        for link in ("__cause__", "__context__"):
            if getattr(value, link, None) is not None:
                yield from list_attribute_texts(getattr(value, link), depth - 1)


Failure = Callable[[ScriptedServer], None]
FAILURES: dict[str, Failure] = {
    "status": lambda server: server.rules.update({"asample": lambda _: ScriptedResponse({"detail": "no"}, status=403)}),
    "dropped": lambda server: server.rules.update({"asample": lambda _: ScriptedResponse(drop=True)}),
    "no HTTP": lambda server: server.rules.update(
        {"asample": lambda _: ScriptedResponse(raw=b"HTTP/9 banana\r\n\r\n")}
    ),
    "cut": lambda server: server.rules.update(
        {"asample": lambda _: ScriptedResponse(raw=b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{")}
    ),
    "wrong type": lambda server: server.rules.update({"asample": lambda _: ScriptedResponse([1])}),
    "failed": lambda server: server.on_poll("Sample", lambda _: ScriptedResponse({"error": "e"})),
    "expired": lambda server: server.on_poll("Sample", lambda _: ScriptedResponse(status=410)),
    "late": lambda server: server.on_poll("Sample", lambda _: ScriptedResponse(status=408)),
}


@pytest.mark.parametrize("kind", ["builtin", "httpx"])
@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_no_error_shows_the_key(server: ScriptedServer, failure: Failure, kind: str) -> None:
    """For each failure, neither the error with its causes and traceback nor a log line or repr shows the key."""
    failure(server)
    log = io.StringIO()
    handler = logging.StreamHandler(log)
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
                sampling.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
            for owner in (client, sampling, client._connection, client._session, client.create_rest_client()):
                log.write(repr(owner) + str(owner))
            for owner in (client._connection._exchanger._transport, client._connection.codec._headers):
                log.write(repr(owner))
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    assert KEY not in "".join(traceback.format_exception(caught.value))
    assert KEY not in log.getvalue()
    assert not [text for text in list_attribute_texts(caught.value) if KEY in text]


def test_no_local_variable_of_a_traceback_holds_the_key(server: ScriptedServer) -> None:
    """Error reporters send the local variables of frames; those of a failed request do not contain the key."""
    server.rules["get_server_capabilities"] = lambda _: ScriptedResponse(raw=b"HTTP/9 banana\r\n\r\n")
    policy = tw.RetryConfig(enable_retry_logic=False)
    with open_client(server.url, retry=policy) as client, pytest.raises(tw.APIConnectionError) as caught:
        client.get_server_capabilities()
    report = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    text = "".join(line for line in report.format() if TESTS not in line)
    assert "WireRequest" in text
    assert KEY not in text.replace(f"KEY = {KEY!r}", "")
