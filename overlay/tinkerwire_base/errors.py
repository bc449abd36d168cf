"""Exceptions of the client: one root, the official names, picklable with all attributes.

TinkerError
 +- APIError
 |   +- APIConnectionError          no response
 |   |   +- APITimeoutError         ... within the time limit
 |   +- APIStatusError              a response of status >= 300; one subclass each for 400 to 429 and 5xx
 |   +- APIResponseValidationError  a response that does not fit the contract
 |   +- ResponseTooLargeError       a response with more bytes than the client accepts
 +- RequestFailedError              the request failed on the server
 +- RequestTimeoutError             a future was not ready within its deadline
 +- FutureExpiredError              the server no longer has the future (410)
 +- SessionExpiredError             the server no longer has the session and its models
 +- CancelledSubmissionError        the operation was cancelled before it was sent
 +- PrecedingOperationError         not sent, because a preceding operation failed
 +- DialectError                    the wire version in use cannot express the request
 +- ClientClosedError               used after close()
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import attrs


class RequestErrorCategory(str, Enum):
    """The side that caused a failed request; other categories of servers read as Unknown."""

    Unknown = "unknown"
    Server = "server"
    User = "user"

    @classmethod
    def read(cls, value: object) -> RequestErrorCategory:
        """Return the category of a wire value, in any letter case."""
        try:
            return cls(str(value).lower())
        except ValueError:
            return cls.Unknown

    def __str__(self) -> str:
        """Return the wire value."""
        return self.value


@attrs.frozen(kw_only=True)
class RequestInfo:
    """The request of an error, without headers and body, which may hold secrets."""

    method: str
    url: str


@attrs.frozen(kw_only=True)
class ResponseInfo:
    """The response of an error."""

    status_code: int
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    text: str = attrs.field(default="", repr=False)


class TinkerError(Exception):
    """Root of all errors of this client."""

    message: str
    may_have_been_sent: bool | None = None
    """False if the server cannot have received the request, True if it may have, None if that is unknown."""
    from_credential_refresh: bool = False
    """True if obtaining a credential failed: the request that needs the credential was not sent."""

    def __init__(self, message: str, **parts: Any) -> None:
        """Set the message and the attributes."""
        super().__init__(message)
        self.message = message
        self.__dict__.update(parts)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the class, the arguments and the attributes."""
        return (_rebuild, (type(self), self.args), self.__dict__)


def _rebuild(cls: type[TinkerError], arguments: tuple[Any, ...]) -> TinkerError:
    # Not through __init__, whose parameters a subclass may change; the parts follow as the state.
    error = cls.__new__(cls, *arguments)
    error.args = arguments
    return error


class ReplayError(TinkerError):
    """A program that is replayed from a recording sends other requests than the recorded program."""


class APIError(TinkerError):
    """A request failed on its way, or its response is an error."""

    request: RequestInfo | None
    body: object

    def __init__(self, message: str, request: RequestInfo | None = None, *, body: object = None, **parts: Any) -> None:
        """Set the message and the attributes."""
        super().__init__(message, request=request, body=body, **parts)


class APIConnectionError(APIError):
    """No response: connection refused or lost, server unreachable, or name or certificate rejected."""

    def __init__(
        self, request: RequestInfo | None = None, message: str = "the connection failed", **parts: Any
    ) -> None:
        """Set the message and the attributes."""
        super().__init__(message, request, **parts)


class APITimeoutError(APIConnectionError, TimeoutError):
    """No response within the time limit of one request."""

    def __init__(
        self, request: RequestInfo | None = None, message: str = "no response within the time limit", **parts: Any
    ) -> None:
        """Set the message and the attributes."""
        super().__init__(request, message, **parts)


class APIStatusError(APIError):
    """The server returned an error status."""

    response: ResponseInfo
    dialect: Any = None
    """The Dialect of the request, if the status means that the server does not know the request."""

    def __init__(self, message: str, response: ResponseInfo, body: object = None, **parts: Any) -> None:
        """Set the message and the attributes."""
        super().__init__(message, body=body, response=response, **parts)

    @property
    def status_code(self) -> int:
        """The HTTP status."""
        return self.response.status_code


class BadRequestError(APIStatusError):
    """400."""


class ContextLengthError(BadRequestError):
    """The prompt and max_tokens exceed the context of the model; nothing was sent.

    ``response`` is the response that a server would have returned.
    """

    prompt_tokens: int
    max_tokens: int | None
    context_length: int
    """Maximum number of tokens of prompt and sample together, from the server's capabilities."""


class AuthenticationError(APIStatusError):
    """401."""


class BillingError(APIStatusError):
    """402."""


class PermissionDeniedError(APIStatusError):
    """403."""


class NotFoundError(APIStatusError):
    """404."""


class ConflictError(APIStatusError):
    """409."""


class SequenceConflictError(ConflictError):
    """The server did not run the request, because it expects another seq_id."""

    seq_id: int
    """The seq_id of the request."""
    expected_seq_id: int | None
    """The seq_id that the server expects; None if the response does not state it."""


class UnprocessableEntityError(APIStatusError):
    """422."""


class RateLimitError(APIStatusError):
    """429."""


class InternalServerError(APIStatusError):
    """500 and above."""


class APIResponseValidationError(APIError):
    """The response does not fit the contract; ``response`` holds it."""

    response: ResponseInfo

    def __init__(self, response: ResponseInfo, body: object = None, message: str | None = None, **parts: Any) -> None:
        """Set the message and the attributes."""
        super().__init__(message or "the response does not fit the contract", body=body, response=response, **parts)

    @property
    def status_code(self) -> int:
        """The HTTP status."""
        return self.response.status_code


class ResponseTooLargeError(APIError):
    """The response has more bytes than RetryConfig allows; the client stopped reading it."""

    limit_bytes: int
    setting: str
    """The name of the setting that limits the size."""

    def __init__(
        self, message: str, request: RequestInfo | None = None, *, limit_bytes: int = 0, setting: str = "", **parts: Any
    ) -> None:
        """Set the message and the attributes."""
        super().__init__(message, request, limit_bytes=limit_bytes, setting=setting, **parts)


class RequestFailedError(TinkerError):
    """The server accepted the request and reports that it failed."""

    request_id: str
    category: RequestErrorCategory

    def __init__(
        self,
        message: str,
        request_id: str = "",
        category: RequestErrorCategory = RequestErrorCategory.Unknown,
        **parts: Any,
    ) -> None:
        """Set the message and the attributes."""
        super().__init__(message, request_id=request_id, category=category, **parts)


class RequestTimeoutError(TinkerError, TimeoutError):
    """A future was not ready when its deadline came; the server may still be working on it."""

    request_id: str

    def __init__(self, message: str, *, request_id: str = "", **parts: Any) -> None:
        """Set the message and the attributes."""
        super().__init__(message, request_id=request_id, **parts)


class FutureExpiredError(TinkerError):
    """The server no longer has the result (410)."""

    request_id: str

    def __init__(self, message: str, *, request_id: str = "", **parts: Any) -> None:
        """Set the message and the attributes."""
        super().__init__(message, request_id=request_id, **parts)


class SessionExpiredError(TinkerError):
    """The server no longer has the session: its models are lost, saved checkpoints are not."""

    session_id: str

    def __init__(self, message: str, *, session_id: str = "", **parts: Any) -> None:
        """Set the message and the attributes."""
        super().__init__(message, session_id=session_id, **parts)


class CancelledSubmissionError(TinkerError):
    """The operation was cancelled before its request was sent."""


class PrecedingOperationError(TinkerError, RuntimeError):
    """The operation was not sent, because a preceding operation that it depends on failed."""


class DialectError(TinkerError, ValueError):
    """The wire version in use lacks a field, value or call of the request, or requires one that is missing."""

    what: str
    """The model, field, value or call."""
    version: str
    """The wire version in use."""
    since: str | None
    """The first version that has it; None if a required one is missing."""
    until: str | None
    """The first version after that lacks it again."""
    dialect: Any = None
    """The Dialect of the client that raised it, None elsewhere."""

    def __init__(
        self, message: str, *, what: str = "", version: str = "", since: str | None = None, until: str | None = None
    ) -> None:
        """Set the message and the attributes."""
        super().__init__(message, what=what, version=version, since=since, until=until)


class ClientClosedError(TinkerError, RuntimeError):
    """The client was used after it was closed."""


STATUS_ERRORS: Mapping[int, type[APIStatusError]] = {
    400: BadRequestError,
    401: AuthenticationError,
    402: BillingError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    422: UnprocessableEntityError,
    429: RateLimitError,
}


def status_error(status: int) -> type[APIStatusError]:
    """Return the error class of a status."""
    return STATUS_ERRORS.get(status, InternalServerError if status >= 500 else APIStatusError)
