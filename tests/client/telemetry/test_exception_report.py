"""Reports of exceptions contain nothing of their text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinkerwire as tw
from tinkerwire._telemetry import exception_report
from tinkerwire_base.errors import RequestInfo, ResponseInfo, status_error

INFO = RequestInfo(method="POST", url="https://h.org/base/api/v1/asample?x=tml-secret")
USER_DATA = "my prompt, tml-secret"


def make_status_error(status: int, text: str = USER_DATA) -> tw.APIStatusError:
    return status_error(status)(text, response=ResponseInfo(status_code=status, text=text), request=INFO, body=text)


def add_cause(outer: Exception, inner: BaseException) -> Exception:
    outer.__cause__ = inner
    return outer


@pytest.mark.parametrize(
    ("error", "is_users"),
    [
        (make_status_error(400), True),
        (make_status_error(429), True),
        (make_status_error(408), False),
        (make_status_error(500), False),
        (tw.RequestFailedError(USER_DATA, "r1", tw.RequestErrorCategory.User), True),
        (tw.RequestFailedError(USER_DATA, "r1", tw.RequestErrorCategory.Server), False),
        (ValueError(USER_DATA), False),
        (add_cause(tw.TinkerError(USER_DATA), make_status_error(422)), True),
        (add_cause(tw.TinkerError(USER_DATA), make_status_error(502)), False),
    ],
)
def test_user_errors_are_recognised(error: Exception, is_users: bool) -> None:
    """Errors that the server rejected or attributes to the user, also as causes of other errors."""
    assert exception_report.is_user_error(error) is is_users


def test_cyclic_causes_end() -> None:
    """Exceptions that cause each other do not loop forever."""
    first, second = ValueError(), ValueError()
    first.__cause__, second.__cause__ = second, first
    assert not exception_report.is_user_error(first)


def test_report_has_class_call_and_status() -> None:
    """The summary has these fields only."""
    assert (
        exception_report.summary(make_status_error(422))
        == "UnprocessableEntityError, POST /base/api/v1/asample, HTTP 422"
    )
    failed = tw.RequestFailedError(USER_DATA, "r1", tw.RequestErrorCategory.User)
    assert exception_report.summary(failed) == "RequestFailedError, category user"
    assert exception_report.error_fields(make_status_error(500)) == {
        "error_type": "InternalServerError",
        "message": "InternalServerError, POST /base/api/v1/asample, HTTP 500",
        "status_code": 500,
    }


# With a start that no own text has: the report contains texts that are names of errors.
@given(st.text(min_size=12).map("~^".__add__), st.sampled_from([400, 422, 500]))
def test_report_has_no_text_of_the_error(text: str, status: int) -> None:
    """Text, body and response of an error stay private."""
    for error in (make_status_error(status, text), tw.TinkerError(text), ValueError(text), tw.RequestFailedError(text)):
        texts = [
            exception_report.summary(error),
            exception_report.traceback_locations(error),
            *map(str, exception_report.error_fields(error).values()),
        ]
        assert text not in "\n".join(texts)


def test_locations_are_in_this_package() -> None:
    """Locations have file, line and function, but no folder and no code of the user."""
    with pytest.raises(TypeError) as caught:
        tw.ModelInput.from_ints("tml-secret")  # type: ignore[arg-type]
    locations = exception_report.traceback_locations(caught.value)
    assert locations
    assert all(line.startswith("tinkerwire") and ".py:" in line for line in locations.splitlines())
    assert "test_" not in locations
    assert "secret" not in json.dumps(locations)
