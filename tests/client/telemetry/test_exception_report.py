"""What is told of an exception: nothing that anyone put into its text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinkerwire as tw
from tinkerwire._telemetry import exception_report
from tinkerwire_base.errors import RequestInfo, ResponseInfo, status_error

INFO = RequestInfo(method="POST", url="https://h.org/base/api/v1/asample?x=tml-secret")
DATA = "my prompt, tml-secret"


def status_fault(status: int, text: str = DATA) -> tw.APIStatusError:
    return status_error(status)(text, response=ResponseInfo(status_code=status, text=text), request=INFO, body=text)


def caused(outer: Exception, inner: BaseException) -> Exception:
    outer.__cause__ = inner
    return outer


@pytest.mark.parametrize(
    ("error", "is_users"),
    [
        (status_fault(400), True),
        (status_fault(429), True),
        (status_fault(408), False),
        (status_fault(500), False),
        (tw.RequestFailedError(DATA, "r1", tw.RequestErrorCategory.User), True),
        (tw.RequestFailedError(DATA, "r1", tw.RequestErrorCategory.Server), False),
        (ValueError(DATA), False),
        (caused(tw.TinkerError(DATA), status_fault(422)), True),
        (caused(tw.TinkerError(DATA), status_fault(502)), False),
    ],
)
def test_whose_fault(error: Exception, is_users: bool) -> None:
    """The user's: what the server refused or blames on the user, also as the cause of something else."""
    assert exception_report.is_user_error(error) is is_users


def test_a_ring_of_causes() -> None:
    """It has an end."""
    first, second = ValueError(), ValueError()
    first.__cause__, second.__cause__ = second, first
    assert not exception_report.is_user_error(first)


def test_what_is_told() -> None:
    """Class, call and status."""
    assert (
        exception_report.summary(status_fault(422)) == "UnprocessableEntityError, POST /base/api/v1/asample, HTTP 422"
    )
    failed = tw.RequestFailedError(DATA, "r1", tw.RequestErrorCategory.User)
    assert exception_report.summary(failed) == "RequestFailedError, category user"
    assert exception_report.error_fields(status_fault(500)) == {
        "error_type": "InternalServerError",
        "message": "InternalServerError, POST /base/api/v1/asample, HTTP 500",
        "status_code": 500,
    }


# With a start that nothing of ours has: a text that is the name of an error is told as that.
@given(st.text(min_size=12).map("~^".__add__), st.sampled_from([400, 422, 500]))
def test_no_text_of_an_error_is_told(text: str, status: int) -> None:
    """Whatever is in the text, body or answer of an error."""
    for error in (status_fault(status, text), tw.TinkerError(text), ValueError(text), tw.RequestFailedError(text)):
        told = [
            exception_report.summary(error),
            exception_report.traceback_locations(error),
            *map(str, exception_report.error_fields(error).values()),
        ]
        assert text not in "\n".join(told)


def test_places() -> None:
    """Only places in this package, by file, line and function; no folder and no code of the user's."""
    with pytest.raises(TypeError) as caught:
        tw.ModelInput.from_ints("tml-secret")  # type: ignore[arg-type]
    told = exception_report.traceback_locations(caught.value)
    assert told
    assert all(line.startswith("tinkerwire") and ".py:" in line for line in told.splitlines())
    assert "test_" not in told
    assert "secret" not in json.dumps(told)
