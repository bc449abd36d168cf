"""Tests of reading one response to a poll: unfinished, failed, malformed and complete results."""

from __future__ import annotations

from typing import Any

import pytest

import tinkerwire as tw
from tinkerwire._polling.pending_result import PendingResult
from tinkerwire._polling.result_reader import is_final, parse_body, read_result
from tinkerwire._transport.backpressure import Traffic
from tinkerwire._wire.server_futures import ImmediateResult
from tinkerwire_base.call import WireResponse
from tinkerwire_generated import models

PROTOBUF_HEADERS = {"content-type": "application/x-protobuf"}


def make_response(content: bytes = b"{}", status: int = 200, **headers: str) -> WireResponse:
    """Return a response to a poll."""
    return WireResponse(status=status, headers=headers, content=content)


def make_pending(result_type: Any = models.OptimStepResponse, **options: Any) -> PendingResult[Any]:
    """Return a future that waits for a result."""
    return PendingResult(
        submission=models.UntypedAPIFuture(request_id="r1"),
        request_type="OptimStep",
        result_type=result_type,
        traffic=Traffic.TRAINING_FUTURES,
        **options,
    )


def read(content: bytes, **options: Any) -> Any:
    """Return the result in a JSON response."""
    response = make_response(content)
    return read_result(make_pending(**options), response, parse_body(response))


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (200, {}, True),
        (200, None, True),
        (200, [], True),
        (200, {"type": "other", "status": "complete"}, True),
        (200, {"type": "try_again"}, False),
        (200, {"status": "complete_metadata"}, False),
        (299, {}, True),
        (300, {}, False),
        (408, {}, False),
        (500, {"type": "result"}, False),
    ],
)
def test_response_is_final_unless_it_is_an_error_or_asks_for_another_poll(
    status: int, body: Any, expected: bool
) -> None:
    """Bodies that are not objects are final, too: reading them reports what is wrong."""
    assert is_final(make_response(status=status), body) is expected


def test_body_without_json_is_none() -> None:
    """Protobuf and invalid JSON have no JSON value."""
    assert parse_body(make_response(b'{"a": 1}')) == {"a": 1}
    assert parse_body(make_response(b"<html>")) is None
    assert parse_body(WireResponse(status=200, headers=PROTOBUF_HEADERS, content=b'{"a": 1}')) is None


def test_complete_result_is_read() -> None:
    """A result without content is None, whatever the body is."""
    assert read(b'{"metrics": {"a": 1.0}}').metrics == {"a": 1.0}
    for content in (b"null", b"{}", b"<html>", b"[]"):
        assert read(content, result_type=None) is None


@pytest.mark.parametrize("content", [b"null", b"<html>", b"[]", b'{"metrics": 5}'])
def test_malformed_result_names_the_request(content: bytes) -> None:
    """The error has the operation and its request id."""
    with pytest.raises(tw.APIResponseValidationError, match=r"^OptimStep r1: the result does not fit the contract: "):
        read(content)


@pytest.mark.parametrize("key", ["error", "detail"])
def test_failure_has_its_text_category_and_request(key: str) -> None:
    """An unknown category reads as unknown, and a failure counts even if no content was expected."""
    for result_type in (models.OptimStepResponse, None):
        with pytest.raises(tw.RequestFailedError, match=r"^OptimStep r1 failed: boom$") as caught:
            read(f'{{"{key}": "boom", "category": "user"}}'.encode(), result_type=result_type)
        assert caught.value.request_id == "r1"
        assert caught.value.category is tw.RequestErrorCategory.User
    with pytest.raises(tw.RequestFailedError) as caught:
        read(f'{{"{key}": null}}'.encode())
    assert caught.value.category is tw.RequestErrorCategory.Unknown


def test_missing_and_null_values_get_their_defaults() -> None:
    """Other values stay, also those that are false."""
    defaults = {"metrics": {"a": 1.0}}
    assert read(b"{}", null_defaults=defaults).metrics == {"a": 1.0}
    assert read(b'{"metrics": null}', null_defaults=defaults).metrics == {"a": 1.0}
    assert read(b'{"metrics": {}}', null_defaults=defaults).metrics == {}
    assert read(b'{"metrics": {"b": 2.0}}', null_defaults=defaults).metrics == {"b": 2.0}


def test_name_of_a_future_has_its_request_id_if_there_is_one() -> None:
    """An immediate result has no request id."""
    immediate = PendingResult(
        submission=ImmediateResult(make_response()),
        request_type="OptimStep",
        result_type=models.OptimStepResponse,
        traffic=Traffic.TRAINING_FUTURES,
    )
    assert (immediate.name, immediate.request_id, immediate.is_repeatable) == ("OptimStep", "", False)
    assert (make_pending().name, make_pending().request_id) == ("OptimStep r1", "r1")
