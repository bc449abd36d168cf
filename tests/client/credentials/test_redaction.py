"""Secrets are taken out of what servers say, wherever they repeat them: a property over the paths of errors."""

from __future__ import annotations

import io
import json
import logging
import pickle
import traceback
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinkerwire as tw
from support.clients import KEY, PARAMS, PROMPT, open_client
from support.scripted import PATIENCE_S, ScriptedResponse, ScriptedServer
from support.tokens import token
from tinkerwire._connection import throttled_log
from tinkerwire._credentials.redaction import REMEMBERED, Redaction
from tinkerwire._credentials.secret import Secret
from tinkerwire._futures import operation_record
from tinkerwire._transport.backpressure import Traffic
from tinkerwire_base.call import WireRequest, WireResponse
from tinkerwire_base.errors import ResponseInfo

pytestmark = pytest.mark.timeout(120)
# With a start that no name here has: a key that is the name of an error is in its traceback anyway.
SECRETS = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=12, max_size=40).map("~^".__add__)
PLACES = ("client/config", "auth/token", "create_session", "asample", "retrieve_future")
HAPPY: dict[str, Any] = {
    "create_session": {"session_id": "s1"},
    "create_sampling_session": {"sampling_session_id": "sampler1"},
    "asample": {"request_id": "r1"},
}


class Parrot:
    """A server in place of a transport that repeats in its answer what it was sent in headers."""

    def __init__(self, place: str, status: int, shape: str, jwt: str) -> None:
        self.place, self.status, self.shape, self.jwt = place, status, shape, jwt
        self.seen: set[str] = set()

    async def send(self, request: WireRequest, traffic: Traffic, timeout_s: float) -> WireResponse:
        name = request.path.removeprefix("/api/v1/")
        told = [value for header, value in request.headers.items() if header in ("x-api-key", "x-mine")]
        self.seen |= set(told)
        if name == self.place:
            # One of its own, too, where tokens are given out: it stands where no token belongs.
            return self.repeat([*told, self.jwt] if name == "auth/token" and self.status < 300 else told)
        answer = {"client/config": {"pjwt_auth_enabled": True}, "auth/token": {"jwt": self.jwt}, **HAPPY}.get(name, {})
        return WireResponse(status=200, content=json.dumps(answer).encode())

    def repeat(self, told: list[str]) -> WireResponse:
        text = " and ".join(told)
        body: Any = {"json": {"error": text, "detail": [{"input": told}]}, "text": text, "header": {}}[self.shape]
        if isinstance(body, dict) and self.status < 300 and self.place != "retrieve_future":
            body = {"unknown": text, "request_id": told, "session_id": told, "pjwt_auth_enabled": told}
        content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        headers = {"location": text, "www-authenticate": f'Bearer error="{text}"'} if self.shape == "header" else {}
        return WireResponse(status=self.status, headers=headers, content=content)

    async def close(self) -> None:
        pass


def texts(thing: object, seen: set[int]) -> Iterator[str]:
    """All texts that hang on a thing."""
    if id(thing) in seen:
        return
    seen.add(id(thing))
    yield from (str(thing), repr(thing))
    parts: list[object] = list(getattr(thing, "args", ()))
    parts += [getattr(thing, name, None) for name in ("__cause__", "__context__", "response", "headers", "text")]
    parts += list(vars(thing).values()) if isinstance(thing, BaseException) else []
    for part in parts:
        if part is not None and not callable(part):
            yield from texts(part, seen)


@settings(max_examples=60)
@given(
    key=SECRETS,
    mine=SECRETS,
    place=st.sampled_from(PLACES),
    status=st.sampled_from([200, 302, 400, 401, 404, 422, 500]),
    shape=st.sampled_from(["json", "text", "header"]),
)
def test_no_secret_comes_back(key: str, mine: str, place: str, status: int, shape: str) -> None:
    """Key, token and headers show in no error, its parts and pickle, and no log line, whatever the server repeats."""
    parrot = Parrot(place, status, shape, token())
    secrets = (key, mine, parrot.jwt)
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger("tinkerwire").addHandler(handler)
    policy = tw.RetryConfig(retry_delay_base=0, max_attempts=2, max_elapsed=0.01)
    try:
        with tw.ServiceClient(
            base_url="https://example.org",
            api_key=key,
            default_headers_overrides={"X-Mine": mine},
            transport=parrot,
            retry=policy,
        ) as client:
            error = client.create_sampling_client(base_model="b").sample(PROMPT, 1, PARAMS).exception(PATIENCE_S)
    finally:
        logging.getLogger("tinkerwire").removeHandler(handler)
    assert isinstance(error, tw.TinkerError)
    assert key in parrot.seen
    content = pickle.dumps(error).decode("latin-1")
    shown = [*traceback.format_exception(error), log.getvalue(), content, *texts(error, set())]
    for secret in secrets:
        # As it is, and as it stands in the JSON that the server repeats it in.
        for form in (secret, json.dumps(secret)[1:-1]):
            assert not [text for text in shown if form in text]


def test_results_are_left_alone() -> None:
    """Only errors are changed: a result may hold anything, the key among it."""
    redaction = Redaction()
    redaction.add(Secret("tinkerwire"))
    result = WireResponse(status=200, content=b'{"base_model": "tinkerwire/byte-nano"}')
    assert redaction.redact_response(result) is result
    error = WireResponse(status=400, headers={"a": "tinkerwire"}, content=b"\xff tinkerwire \xfe")
    assert redaction.redact_response(error).content == b"\xff *** \xfe"
    assert redaction.redact_response(error).headers == {"a": "***"}


def test_what_is_looked_for() -> None:
    """Short values are no secrets; of many that change the latest are known, and those that last are always."""
    redaction = Redaction()
    redaction.add(Secret("short"))
    redaction.add(Secret("lasting-one"), is_lasting=True)
    for number in range(REMEMBERED + 1):
        redaction.add(Secret(f"changing-{number:03}"))
    said = redaction.redact_text(f"short lasting-one changing-000 changing-001 changing-{REMEMBERED:03}")
    assert said == "short *** changing-000 *** ***"


def test_parts_of_errors() -> None:
    """Text, body, answer and causes are changed, what is no text is not, and a ring of causes does no harm."""
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


def test_what_is_logged_while_waiting(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The reason why a result is waited for is what the server said, without the key."""
    monkeypatch.setattr(operation_record, "FIRST_WAIT_LOG_S", 0.02)
    monkeypatch.setattr(operation_record, "WAIT_LOG_INTERVAL_S", 0.02)
    monkeypatch.setattr(throttled_log, "WARNING_INTERVAL_S", 0.0)
    busy = ScriptedResponse({"detail": f"{KEY} is busy"}, status=500)
    server.on_poll("Sample", lambda asked: server.healthy_response(asked) if "is busy" in caplog.text else busy)
    with open_client(server.url) as client:
        client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS).result(PATIENCE_S)
    assert "*** is busy" in caplog.text
    assert KEY not in caplog.text
