"""Tests of redaction: secrets that a server repeats do not reach errors and log lines."""

from __future__ import annotations

import io
import json
import logging
import pickle
import traceback
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinkerwire as tw
from support.clients import KEY, PARAMS, PROMPT, open_client
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer
from support.tokens import token
from tinkerwire._connection import throttled_log
from tinkerwire._credentials.redaction import MAX_CHANGING_SECRETS, Redaction
from tinkerwire._credentials.secret import Secret
from tinkerwire._futures import operation_record
from tinkerwire._transport.backpressure import Traffic
from tinkerwire_base.call import WireRequest, WireResponse
from tinkerwire_base.errors import ResponseInfo

pytestmark = pytest.mark.timeout(120)
# The prefix distinguishes secrets from names, which tracebacks contain.
SECRETS = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=12, max_size=40).map("~^".__add__)
PATHS = ("client/config", "auth/token", "create_session", "asample", "retrieve_future")
HEALTHY_BODIES: dict[str, object] = {
    "create_session": {"session_id": "s1"},
    "create_sampling_session": {"sampling_session_id": "sampler1"},
    "asample": {"request_id": "r1"},
}


class EchoTransport:
    """Transport whose response to one path repeats the secret headers of the request."""

    def __init__(self, path: str, status: int, form: str, jwt: str) -> None:
        self.path, self.status, self.form, self.jwt = path, status, form, jwt
        self.received: set[str] = set()

    async def send(self, request: WireRequest, traffic: Traffic, timeout_s: float) -> WireResponse:
        path = request.path.removeprefix("/api/v1/")
        secrets = [value for name, value in request.headers.items() if name in ("x-api-key", "x-mine")]
        self.received |= set(secrets)
        if path == self.path:
            # A response of auth/token repeats the token as well, outside the field jwt.
            return self.repeat([*secrets, self.jwt] if path == "auth/token" and self.status < 300 else secrets)
        bodies = {"client/config": {"pjwt_auth_enabled": True}, "auth/token": {"jwt": self.jwt}, **HEALTHY_BODIES}
        return WireResponse(status=200, content=json.dumps(bodies.get(path, {})).encode())

    def repeat(self, secrets: list[str]) -> WireResponse:
        """Return a response with the secrets in its body or headers."""
        text = " and ".join(secrets)
        bodies: dict[str, object] = {
            "json": {"error": text, "detail": [{"input": secrets}]},
            "text": text,
            "header": {},
        }
        body = bodies[self.form]
        if isinstance(body, dict) and self.status < 300 and self.path != "retrieve_future":
            body = {"unknown": text, "request_id": secrets, "session_id": secrets, "pjwt_auth_enabled": secrets}
        content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        headers = {"location": text, "www-authenticate": f'Bearer error="{text}"'} if self.form == "header" else {}
        return WireResponse(status=self.status, headers=headers, content=content)

    async def close(self) -> None:
        pass


def list_error_texts(value: object, visited: set[int]) -> Iterator[str]:
    """Yield the texts of an object, its attributes, causes and contexts."""
    if id(value) in visited:
        return
    visited.add(id(value))
    yield from (str(value), repr(value))
    parts: list[object] = list(getattr(value, "args", ()))
    parts += [getattr(value, name, None) for name in ("__cause__", "__context__", "response", "headers", "text")]
    parts += list(vars(value).values()) if isinstance(value, BaseException) else []
    for part in parts:
        if part is not None and not callable(part):
            yield from list_error_texts(part, visited)


@settings(max_examples=60)
@given(
    key=SECRETS,
    header=SECRETS,
    path=st.sampled_from(PATHS),
    status=st.sampled_from([200, 302, 400, 401, 404, 422, 500]),
    form=st.sampled_from(["json", "text", "header"]),
)
def test_repeated_secrets_do_not_reach_errors_and_log(key: str, header: str, path: str, status: int, form: str) -> None:
    """Neither an error with its attributes, causes and pickle nor a log line contains key, token or header."""
    transport = EchoTransport(path, status, form, token())
    secrets = (key, header, transport.jwt)
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger("tinkerwire").addHandler(handler)
    policy = tw.RetryConfig(retry_delay_base=0, max_attempts=2, max_elapsed=0.01)
    try:
        with tw.ServiceClient(
            base_url="https://example.org",
            api_key=key,
            default_headers_overrides={"X-Mine": header},
            transport=transport,
            retry=policy,
        ) as client:
            error = client.create_sampling_client(base_model="b").sample(PROMPT, 1, PARAMS).exception(TEST_TIMEOUT_S)
    finally:
        logging.getLogger("tinkerwire").removeHandler(handler)
    assert isinstance(error, tw.TinkerError)
    assert key in transport.received
    content = pickle.dumps(error).decode("latin-1")
    texts = [*traceback.format_exception(error), log.getvalue(), content, *list_error_texts(error, set())]
    for secret in secrets:
        # JSON escapes some characters of a secret.
        for spelling in (secret, json.dumps(secret)[1:-1]):
            assert not [text for text in texts if spelling in text]


def test_redaction_changes_errors_and_no_results() -> None:
    """A result may contain any text, even the key; an error response with invalid UTF-8 is redacted."""
    redaction = Redaction()
    redaction.add(Secret("tinkerwire"))
    result = WireResponse(status=200, content=b'{"base_model": "tinkerwire/byte-nano"}')
    assert redaction.redact_response(result) is result
    error = WireResponse(status=400, headers={"a": "tinkerwire"}, content=b"\xff tinkerwire \xfe")
    assert redaction.redact_response(error).content == b"\xff *** \xfe"
    assert redaction.redact_response(error).headers == {"a": "***"}


def test_redaction_knows_lasting_and_latest_secrets() -> None:
    """Short values do not count as secrets, and the oldest of many temporary secrets are forgotten."""
    redaction = Redaction()
    redaction.add(Secret("short"))
    redaction.add(Secret("lasting-one"), is_lasting=True)
    for number in range(MAX_CHANGING_SECRETS + 1):
        redaction.add(Secret(f"changing-{number:03}"))
    text = redaction.redact_text(f"short lasting-one changing-000 changing-001 changing-{MAX_CHANGING_SECRETS:03}")
    assert text == "short *** changing-000 *** ***"


def test_redaction_covers_all_parts_of_an_error() -> None:
    """Texts in message, body, response and causes are redacted, numbers are not, and a cycle of causes ends."""
    redaction = Redaction()
    redaction.add(Secret("tml-secret"))
    info = ResponseInfo(status_code=400, headers={"h": "tml-secret"}, text="tml-secret")
    body = {"tml-secret": ["tml-secret", 1, None, {"a": 2.5}]}
    error = tw.APIStatusError("tml-secret!", response=info, body=body)
    error.__cause__ = ValueError("tml-secret", 5)
    error.__cause__.__context__ = error
    redaction.redact_error(error)
    assert (str(error), error.message, error.body) == ("***!", "***!", {"***": ["***", 1, None, {"a": 2.5}]})
    assert (error.response.text, error.response.headers) == ("***", {"h": "***"})
    assert error.__cause__.args == ("***", 5)


def test_log_of_a_wait_hides_the_key(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log line contains the server's text without the key."""
    monkeypatch.setattr(operation_record, "FIRST_WAIT_LOG_S", 0.02)
    monkeypatch.setattr(operation_record, "WAIT_LOG_INTERVAL_S", 0.02)
    monkeypatch.setattr(throttled_log, "WARNING_INTERVAL_S", 0.0)
    busy = ScriptedResponse({"detail": f"{KEY} is busy"}, status=500)
    server.on_poll("Sample", lambda request: server.healthy_response(request) if "is busy" in caplog.text else busy)
    with open_client(server.url) as client:
        client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
    assert "*** is busy" in caplog.text
    assert KEY not in caplog.text
