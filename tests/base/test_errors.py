"""The exceptions: one root, the official names, parts that survive pickling, and no secrets."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import pytest

from tinkerwire_base import errors
from tinkerwire_base.errors import RequestErrorCategory, RequestInfo, ResponseInfo, TinkerError, status_error

REQUEST = RequestInfo(method="POST", url="http://host/x")
RESPONSE = ResponseInfo(status_code=418, headers={"set-cookie": "secret"}, text="secret text")
CLASSES = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, Exception)]
BUILTINS = {
    errors.APITimeoutError: TimeoutError,
    errors.RequestTimeoutError: TimeoutError,
    errors.DialectError: ValueError,
    errors.ClientClosedError: RuntimeError,
}


def make_error(cls: type[TinkerError]) -> TinkerError:
    parts: dict[str, Any] = {}
    if issubclass(cls, errors.APIError):
        parts |= {"request": REQUEST, "body": {"detail": "no"}}
    if issubclass(cls, errors.APIStatusError | errors.APIResponseValidationError):
        parts["response"] = RESPONSE
    if issubclass(cls, errors.RequestFailedError):
        parts |= {"request_id": "r-1", "category": RequestErrorCategory.User}
    if issubclass(cls, errors.RequestTimeoutError | errors.FutureExpiredError):
        parts["request_id"] = "r-1"
    if issubclass(cls, errors.DialectError):
        parts |= {"what": "X.y", "version": "0.4.1", "since": "0.7.0", "until": None}
    return cls(message="what went wrong", **parts)


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("copy_error", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy, copy.deepcopy])
def test_errors_survive_pickling_with_all_attributes(cls: type[TinkerError], copy_error: Any) -> None:
    """Class, text and every part are there after a pickle, a copy and a deep copy."""
    error = make_error(cls)
    restored = copy_error(error)
    assert type(restored) is cls
    assert str(restored) == restored.message == "what went wrong"
    assert vars(restored) == vars(error)
    assert restored.args == error.args


def test_notes_and_later_attributes_survive_pickling() -> None:
    """Attributes and notes that were added later are pickled, too."""
    error = make_error(errors.RateLimitError)
    vars(error)["__notes__"] = ["while saving"]
    error.attempt = 3  # type: ignore[attr-defined]
    assert vars(pickle.loads(pickle.dumps(error)))["__notes__"] == ["while saving"]
    assert pickle.loads(pickle.dumps(error)).attempt == 3


@pytest.mark.parametrize("cls", CLASSES)
def test_all_errors_have_one_root(cls: type[Exception]) -> None:
    """Every exception of the client is a TinkerError, documented, and the built-in one where there is a like."""
    assert issubclass(cls, TinkerError)
    assert cls.__doc__
    assert issubclass(cls, BUILTINS.get(cls, TinkerError))


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (400, "BadRequestError"),
        (401, "AuthenticationError"),
        (402, "BillingError"),
        (403, "PermissionDeniedError"),
        (404, "NotFoundError"),
        (409, "ConflictError"),
        (422, "UnprocessableEntityError"),
        (429, "RateLimitError"),
        (500, "InternalServerError"),
        (503, "InternalServerError"),
        (529, "InternalServerError"),
        (302, "APIStatusError"),
        (405, "APIStatusError"),
        (408, "APIStatusError"),
        (410, "APIStatusError"),
        (413, "APIStatusError"),
    ],
)
def test_each_status_has_its_class(status: int, name: str) -> None:
    """The official class for each status, and the plain one for the rest."""
    assert status_error(status).__name__ == name


def test_status_code_is_an_attribute() -> None:
    """status_code is that of the response."""
    assert make_error(errors.NotFoundError).status_code == 418  # type: ignore[attr-defined]
    assert make_error(errors.APIResponseValidationError).status_code == 418  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("error", "request_of", "response_of", "body"),
    [
        (errors.APIError("no", REQUEST, body=1), REQUEST, None, 1),
        (errors.APIConnectionError(REQUEST), REQUEST, None, None),
        (errors.APIConnectionError(request=REQUEST, message="no"), REQUEST, None, None),
        (errors.APITimeoutError(REQUEST), REQUEST, None, None),
        (errors.APITimeoutError(request=REQUEST), REQUEST, None, None),
        (errors.APIResponseValidationError(RESPONSE, 1), None, RESPONSE, 1),
        (errors.APIResponseValidationError(response=RESPONSE, body=1, message="no"), None, RESPONSE, 1),
        (errors.RateLimitError("no", RESPONSE, 1), None, RESPONSE, 1),
        (errors.BadRequestError("no", response=RESPONSE, body=None), None, RESPONSE, None),
    ],
)
def test_constructors_accept_the_official_arguments(
    error: errors.APIError, request_of: object, response_of: object, body: object
) -> None:
    """Tests of users make errors for their mocks: by place and by name, and with the defaults there."""
    assert isinstance(error, TinkerError) and str(error) == error.message and error.message
    assert (error.request, getattr(error, "response", None), error.body) == (request_of, response_of, body)
    assert vars(pickle.loads(pickle.dumps(error))) == vars(error)


def test_repr_of_a_response_has_neither_headers_nor_text() -> None:
    """The repr of a response is fit for a log."""
    assert repr(RESPONSE) == "ResponseInfo(status_code=418)"


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ("user", "User"),
        ("USER", "User"),
        ("Server", "Server"),
        ("unknown", "Unknown"),
        ("new", "Unknown"),
        (None, "Unknown"),
    ],
)
def test_category_is_parsed_in_any_letter_case(sent: object, read: str) -> None:
    """Categories are read in any case; all others are unknown. They print as on the wire."""
    category = RequestErrorCategory.read(sent)
    assert category is RequestErrorCategory[read]
    assert str(category) == category.value == read.lower()
