"""Calls: results and errors by status and body, and representations of requests."""

from __future__ import annotations

import pickle
from typing import Any

import orjson
import pytest

from tinkerwire_base.call import Call, Operation, WireRequest, WireResponse, default_converter
from tinkerwire_base.conversion.converter import Converter
from tinkerwire_base.errors import (
    APIResponseValidationError,
    APIStatusError,
    ConflictError,
    InternalServerError,
    NotFoundError,
    RateLimitError,
    UnprocessableEntityError,
)
from tinkerwire_generated.api import futures, runs, session
from tinkerwire_generated.models import (
    CheckpointArchiveUrlResponse,
    CreateSessionRequest,
    FutureRetrieveRequest,
    GetSessionResponse,
    LoraConfig,
    SampleResponse,
    TryAgainResponse,
)

CONVERTER = Converter()
GET_SESSION = session.get_session("s-1")
SESSION = {"training_run_ids": [], "sampler_ids": ["a"]}
POLL = futures.retrieve_future(body=FutureRetrieveRequest(request_id="r-1"))
TRY_AGAIN = {"request_id": "r-1", "queue_state": "active", "type": "try_again"}


def make_response(status: int, body: Any = None, **headers: str) -> WireResponse:
    content = body if isinstance(body, bytes) else b"" if body is None else orjson.dumps(body)
    return WireResponse(status=status, headers=headers, content=content)


def catch_error(call: Call[Any], response: WireResponse, url: str = "") -> APIStatusError:
    with pytest.raises(APIStatusError) as caught:
        call.parse(response, CONVERTER, url)
    return caught.value


@pytest.mark.parametrize("status", [200, 201, 202])
def test_any_2xx_is_read_as_success(status: int) -> None:
    """A 2xx that the contract does not list is read like the one that it lists."""
    assert GET_SESSION.parse(make_response(status, SESSION), CONVERTER) == GetSessionResponse(
        training_run_ids=[], sampler_ids=["a"]
    )


@pytest.mark.parametrize("body", [None, {}, b"anything", {"status": "deleted"}])
@pytest.mark.parametrize("status", [200, 204])
def test_operations_without_result_ignore_the_body(status: int, body: Any) -> None:
    """Any 2xx completes a deletion, with any body."""
    assert runs.delete_checkpoint("r", "weights/1").parse(make_response(status, body), CONVERTER) is None


@pytest.mark.parametrize(
    "body", [None, b"<html>", [], {"training_run_ids": []}, {"training_run_ids": 1, "sampler_ids": []}]
)
def test_invalid_success_raises_a_validation_error(body: Any) -> None:
    """An invalid 2xx raises an error with endpoint, status, invalid value and body."""
    response = make_response(200, body, **{"content-type": "text/html"})
    with pytest.raises(APIResponseValidationError, match="HTTP 200: the response does not fit") as caught:
        GET_SESSION.parse(response, CONVERTER, "http://h/x")
    error = caught.value
    assert error.status_code == 200
    assert error.response.text == response.content.decode()
    assert error.response.headers == {"content-type": "text/html"}
    assert error.request is not None and error.request.method == "GET"
    assert type(pickle.loads(pickle.dumps(error))) is APIResponseValidationError


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (404, NotFoundError),
        (409, ConflictError),
        (422, UnprocessableEntityError),
        (429, RateLimitError),
        (500, InternalServerError),
        (503, InternalServerError),
        (302, APIStatusError),
        (408, APIStatusError),
        (410, APIStatusError),
    ],
)
@pytest.mark.parametrize(
    ("body", "pattern", "parsed_body"),
    [
        ({"detail": "no such thing"}, "no such thing", {"detail": "no such thing"}),
        ({"detail": [{"loc": ["body"], "msg": "bad"}]}, "'msg'|\"msg\"", {"detail": [{"loc": ["body"], "msg": "bad"}]}),
        ({"error": {"code": 7}}, "code", {"error": {"code": 7}}),
        (["a", 1], r'\["a",1\]', ["a", 1]),
        (b" plain\n text ", "plain text", "plain\n text"),
        (b"<html>502</html>", "<html>502</html>", "<html>502</html>"),
        (None, "no body", ""),
        (b"\xff\xfe", "\ufffd", "\ufffd\ufffd"),
    ],
)
def test_errors_contain_the_body_of_the_server(
    status: int, kind: type, body: Any, pattern: str, parsed_body: Any
) -> None:
    """A body of any shape is in the text, and decoded in .body; the class is that of the status."""
    error = catch_error(GET_SESSION, make_response(status, body))
    assert type(error) is kind
    assert error.status_code == status
    with pytest.raises(APIStatusError, match=pattern):
        raise error
    assert str(error).startswith(f"GET /api/v1/sessions/{{session_id}}: HTTP {status}: ")
    assert error.body == parsed_body


def test_long_bodies_are_shortened_in_the_text_only() -> None:
    """A page of HTML does not fill the log; the response has all of it."""
    error = catch_error(GET_SESSION, make_response(500, b"x" * 5000))
    assert len(str(error)) < 1100
    assert len(error.response.text) == 5000


def test_errors_keep_the_headers() -> None:
    """Retry-After and its like can be read off an error."""
    error = catch_error(GET_SESSION, make_response(429, {}, **{"retry-after": "3"}))
    assert error.response.headers["retry-after"] == "3"


def test_errors_contain_no_password() -> None:
    """User and password of a base URL are cut out."""
    error = catch_error(GET_SESSION, make_response(500), "https://me:secret@host:8/api?x=1")
    assert "secret" not in repr(vars(error)) + str(error)
    assert "https://host:8/api?x=1" in str(error)


def test_repr_of_a_request_has_neither_headers_nor_body() -> None:
    """The repr of a request is fit for a log."""
    body = CreateSessionRequest(tags=["hush"], user_metadata=None, sdk_version="0")
    request = session.create_session(body=body).encode(CONVERTER)
    secret_request = WireRequest(
        method="POST", path=request.path, headers={"x-api-key": "hush"}, content=request.content
    )
    assert repr(secret_request) == "WireRequest(method='POST', path='/api/v1/create_session', query=())"
    assert b"hush" in (secret_request.content or b"")


def test_try_again_is_a_result() -> None:
    """The statuses 200 and 408 of retrieve_future both carry try_again."""
    for status in (200, 408):
        result = POLL.parse(make_response(status, TRY_AGAIN), CONVERTER)
        assert isinstance(result, TryAgainResponse) and result.queue_state == "active"
    assert isinstance(POLL.parse(make_response(200, {"sequences": []}), CONVERTER), SampleResponse)


@pytest.mark.parametrize("body", [None, {}, b"<html>", {"detail": "timeout"}])
def test_empty_408_is_an_error(body: Any) -> None:
    """A 408 without the body of a try_again has no result to return."""
    assert type(catch_error(POLL, make_response(408, body))) is APIStatusError


def test_410_of_a_future_is_an_error() -> None:
    """A future that is gone is an error with its status."""
    assert catch_error(POLL, make_response(410, {"detail": "expired"})).status_code == 410


def test_archive_url_is_read_from_a_body_or_a_redirect() -> None:
    """An archive URL comes in a body, or as a redirect, which has no body."""
    call = runs.get_checkpoint_archive_url("r", "weights/1")
    result = call.parse(make_response(200, {"url": "u", "expires": "2025-01-31T12:00:00Z"}), CONVERTER)
    assert isinstance(result, CheckpointArchiveUrlResponse)
    assert call.parse(make_response(302, None, location="u"), CONVERTER) is None


def test_undeclared_success_returns_json() -> None:
    """The result of a user's endpoint without declared results is the JSON value."""
    call: Call[Any] = Call(Operation(name="x", tag="x", method="GET", path="/x", get_results=dict))
    assert call.parse(make_response(200, {"a": 1}), CONVERTER) == {"a": 1}
    assert call.parse(make_response(204), CONVERTER) is None


def test_default_converter_is_made_once() -> None:
    """Stubs without a converter share one, which knows every version."""
    assert default_converter() is default_converter()
    assert default_converter().encode(LoraConfig(rank=8))
