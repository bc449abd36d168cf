"""Every exception of the client: one root, the official names, parts kept, picklable.

TinkerError
 +- APIError
 |   +- APIConnectionError          nothing came back
 |   |   +- APITimeoutError         ... in time
 |   +- APIStatusError              an answer of status >= 300; one subclass each for 400 to 429 and 5xx
 |   +- APIResponseValidationError  an answer that does not fit the contract
 |   +- ResponseTooLargeError       an answer with more bytes than the client takes
 +- RequestFailedError              the server ran the request and it failed
 +- RequestTimeoutError             a future was not ready within its deadline
 +- FutureExpiredError              the server no longer has the future (410)
 +- SessionExpiredError             the server no longer has the session, nor anything made in it
 +- CancelledSubmissionError        the operation was cancelled before it was sent
 +- PrecedingOperationError         not sent, because an operation before it failed
 +- DialectError                    the wire version in use cannot express what was asked for
 +- ClientClosedError               used after close()
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import attrs


class RequestErrorCategory(str, Enum):
    """Whose fault a failed request is; anything a server says beyond these reads as UNKNOWN."""

    Unknown = "unknown"
    Server = "server"
    User = "user"

    @classmethod
    def read(cls, value: object) -> RequestErrorCategory:
        """The category of a wire value, in any letter case."""
        try:
            return cls(str(value).lower())
        except ValueError:
            return cls.Unknown

    def __str__(self) -> str:
        return self.value


@attrs.frozen(kw_only=True)
class RequestInfo:
    """The request an error belongs to, without headers and body, which may hold secrets."""

    method: str
    url: str


@attrs.frozen(kw_only=True)
class ResponseInfo:
    """The answer an error belongs to."""

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
        super().__init__(message)
        self.message = message
        self.__dict__.update(parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.args), self.__dict__)


def _rebuild(cls: type[TinkerError], arguments: tuple[Any, ...]) -> TinkerError:
    # Not through __init__, whose parameters a subclass may change; the parts follow as the state.
    error = cls.__new__(cls, *arguments)
    error.args = arguments
    return error


class APIError(TinkerError):
    """A request went wrong on its way, or its answer says so."""

    request: RequestInfo | None
    body: object

    def __init__(self, message: str, request: RequestInfo | None = None, *, body: object = None, **parts: Any) -> None:
        super().__init__(message, request=request, body=body, **parts)


class APIConnectionError(APIError):
    """No answer: refused, unreachable, name or certificate not accepted, or the connection broke."""

    def __init__(
        self, request: RequestInfo | None = None, message: str = "the connection failed", **parts: Any
    ) -> None:
        super().__init__(message, request, **parts)


class APITimeoutError(APIConnectionError, TimeoutError):
    """No answer within the time limit of one request."""

    def __init__(
        self, request: RequestInfo | None = None, message: str = "no answer within the time limit", **parts: Any
    ) -> None:
        super().__init__(request, message, **parts)


class APIStatusError(APIError):
    """The server answered with an error status."""

    response: ResponseInfo
    dialect: Any = None
    """The Dialect in which a client asked, where the status says that the server does not know what it was sent."""

    def __init__(self, message: str, response: ResponseInfo, body: object = None, **parts: Any) -> None:
        super().__init__(message, body=body, response=response, **parts)

    @property
    def status_code(self) -> int:
        """The HTTP status."""
        return self.response.status_code


class BadRequestError(APIStatusError):
    """400."""


class ContextLengthError(BadRequestError):
    """The prompt and max_tokens exceed the context of the model; nothing was sent.

    ``response`` is what a server would have answered.
    """

    prompt_tokens: int
    max_tokens: int | None
    context_length: int
    """The most tokens of prompt and sample together, as the server's capabilities report it."""


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
    """The server expects another seq_id than that of the request, which it did not run."""

    seq_id: int
    """The number that was sent."""
    expected_seq_id: int | None
    """The number that the server expects; None where it does not say."""


class UnprocessableEntityError(APIStatusError):
    """422."""


class RateLimitError(APIStatusError):
    """429."""


class InternalServerError(APIStatusError):
    """500 and above."""


class APIResponseValidationError(APIError):
    """The answer does not fit the contract; ``response`` is what came."""

    response: ResponseInfo

    def __init__(self, response: ResponseInfo, body: object = None, message: str | None = None, **parts: Any) -> None:
        super().__init__(message or "the answer does not fit the contract", body=body, response=response, **parts)

    @property
    def status_code(self) -> int:
        """The HTTP status."""
        return self.response.status_code


class ResponseTooLargeError(APIError):
    """The answer has more bytes than RetryConfig allows; it was not read to its end."""

    limit_bytes: int
    setting: str
    """The name of the setting that limits it."""

    def __init__(
        self, message: str, request: RequestInfo | None = None, *, limit_bytes: int = 0, setting: str = "", **parts: Any
    ) -> None:
        super().__init__(message, request, limit_bytes=limit_bytes, setting=setting, **parts)


class RequestFailedError(TinkerError):
    """The server took the request and reports that it failed."""

    request_id: str
    category: RequestErrorCategory

    def __init__(
        self,
        message: str,
        request_id: str = "",
        category: RequestErrorCategory = RequestErrorCategory.Unknown,
        **parts: Any,
    ) -> None:
        super().__init__(message, request_id=request_id, category=category, **parts)


class RequestTimeoutError(TinkerError, TimeoutError):
    """A future was not ready when its deadline came; the server may still be working on it."""

    request_id: str

    def __init__(self, message: str, *, request_id: str = "", **parts: Any) -> None:
        super().__init__(message, request_id=request_id, **parts)


class FutureExpiredError(TinkerError):
    """The server no longer has the result (410)."""

    request_id: str

    def __init__(self, message: str, *, request_id: str = "", **parts: Any) -> None:
        super().__init__(message, request_id=request_id, **parts)


class SessionExpiredError(TinkerError):
    """The server no longer has the session: what was made in it is gone, what was saved is not."""

    session_id: str

    def __init__(self, message: str, *, session_id: str = "", **parts: Any) -> None:
        super().__init__(message, session_id=session_id, **parts)


class CancelledSubmissionError(TinkerError):
    """The operation was cancelled before its request was sent."""


class PrecedingOperationError(TinkerError, RuntimeError):
    """The operation was not sent, because one before it, on which it builds, failed."""


class DialectError(TinkerError, ValueError):
    """What was asked for does not exist in the wire version in use, or what that version requires is missing."""

    what: str
    """Model, field, value or call."""
    version: str
    """The wire version in use."""
    since: str | None
    """The first version that has it; None when it is missing."""
    until: str | None
    """The first version after that lacks it again."""
    dialect: Any = None
    """The Dialect of the client that raised it, None elsewhere."""

    def __init__(
        self, message: str, *, what: str = "", version: str = "", since: str | None = None, until: str | None = None
    ) -> None:
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
    """The class for an error status."""
    return STATUS_ERRORS.get(status, InternalServerError if status >= 500 else APIStatusError)
