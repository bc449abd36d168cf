"""Body forms of a batch, and the choice of the form to send after a failed attempt."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import attrs

from tinkerwire_base.call import Call, WireRequest, WireResponse
from tinkerwire_base.errors import (
    APIConnectionError,
    APIStatusError,
    APITimeoutError,
    ConflictError,
    NotFoundError,
    SequenceConflictError,
    SessionExpiredError,
    TinkerError,
)
from tinkerwire_generated import models

from .._connection.connection import Connection
from .._connection.replacement import Replacement
from .._wire.dialect import Dialect
from .._wire.server_futures import Submission
from .submission_outcome import is_rejection

FORM_INDEPENDENT_STATUSES = frozenset({401, 402, 407, 408, 409, 410, 425, 429})
"""4xx statuses that depend on the user or the time, and not on the body."""
FORM_STATUSES = frozenset({404, 405, 406, 415, 501})
"""Statuses of a form that a server does not support; other statuses may be due to the content of the batch."""
ALWAYS_UNSUPPORTED_FORM_STATUSES = frozenset({406, 415})
"""Statuses that always suggest that the server does not support a form, even one that it has accepted before."""
UNSUPPORTED_FORM_STATUSES = frozenset({400, 405, 422, 501})
"""Statuses that suggest the same unless the server is known to reject the other form."""
MAX_IDENTICAL = 4
"""Number of identical errors in one form that end the operation if the server rejected the other form."""
KEY = "x-idempotency-key"
ResponseReader: TypeAlias = Callable[[WireResponse], Submission]
"""Converts a response to its result, or raises its error."""


@attrs.define
class BodyForm:
    """One form of a batch, and the errors of its attempts."""

    dialect: Dialect
    name: str
    request: WireRequest
    read: ResponseReader
    error: TinkerError | None = None
    """The error of the last attempt; None before the first."""
    identical: int = 0
    """Number of consecutive attempts with that error."""
    is_rejected: bool = False
    """True if the server certainly does not accept the batch in this form."""


class BodyForms:
    """The body forms of one batch. After the server rejects one, another is sent; see :meth:`next_request`.

    Args:
        connection: the connection, which knows the forms that the server accepts.
        call: the batch.
        dialect: the dialect in use.
        create_reader: returns the function that reads the response to a request.

    Raises:
        DialectError: no form of the wire version in use can carry the batch.
        TypeError: a value of the batch has the wrong type.
        ValueError: a value of the batch is invalid.
    """

    def __init__(
        self,
        connection: Connection,
        call: Call[models.UntypedAPIFuture],
        dialect: Dialect,
        create_reader: Callable[[WireRequest], ResponseReader],
    ) -> None:
        self._create_reader = create_reader
        self._connection = connection
        self._call = call
        self._is_provisional = dialect.is_provisional
        self._untried = list(dialect.forms(call.operation.name))
        self._tried: list[BodyForm] = []
        self._encoding_error: TinkerError | ValueError | TypeError | None = None
        """The error of encoding the batch in a preferred form."""
        self.current = self._first()

    @property
    def dialect(self) -> Dialect:
        """The dialect of the form in which the batch was sent last."""
        return self.current.dialect

    def next_request(self, error: TinkerError) -> Replacement[Submission] | None:
        """Return the request that follows an error; see :class:`Replacement`.

        If the error may be due to the form, another form is sent at once. While the server may accept either form,
        retries alternate between them.
        """
        current = self.current
        current.identical = current.identical + 1 if _text(error) == _text(current.error) else 1
        current.error = error
        current.is_rejected = self._is_final(error)
        if self._may_be_unsupported(error):
            following = self._next(error)
            if following is not None:
                self.current = following
                return self._replacement(following, error, is_due=True)
        if len(self._tried) == 1:
            return None
        earlier = [form for form in self._tried if form is not current and not form.is_rejected]
        if isinstance(error, ConflictError) and earlier and not is_rejection(earlier[-1].error or error):
            # The server has run the batch in the earlier form, in which it recognises a retry.
            current.is_rejected, self.current = True, earlier[-1]
            return self._replacement(self.current, error, is_due=True)
        return self._resend(current, error, earlier)

    def _resend(self, current: BodyForm, error: TinkerError, earlier: list[BodyForm]) -> Replacement[Submission] | None:
        if not earlier:
            return self._replacement(current, error, is_hopeless=current.is_rejected or self._is_retry_useless())
        if not (current.is_rejected or may_be_due_to_form(error)):
            return None
        self.current = earlier[0]
        cause = error if not current.is_rejected else (self.current.error or error)
        return self._replacement(self.current, cause, is_hopeless=self._is_retry_useless())

    def mark_accepted(self) -> None:
        """Record that the server accepted the batch in the current form."""
        dialects = self._connection.dialects
        dialects.refused |= {form.name for form in self._tried if form is not self.current}
        dialects.refused.discard(self.current.name)
        dialects.learn_form(self._call.operation.name, self.dialect)

    def final_error(self, error: TinkerError) -> TinkerError | ValueError | TypeError:
        """Return the error of a batch that the server accepted in no form: the most specific one, with all texts."""
        is_of_form = isinstance(error, APIStatusError) and error.status_code in FORM_STATUSES
        if self._encoding_error is not None and is_of_form:
            return self._encoding_error
        failed = [form for form in self._tried if form.error is not None]
        if len(failed) < 2 or isinstance(error, SessionExpiredError):
            return error
        if all(form.is_rejected for form in failed):
            self._connection.dialects.refused |= {form.name for form in failed[1:]}
        main = min(failed, key=lambda form: (_rank(form.error), form.error is not error))
        final = main.error
        assert final is not None
        others = "; ".join(f"sent as {form.name}: {form.error}" for form in failed if form is not main)
        final.message = (
            f"{final.message} (sent as {main.name}); {others}; the server accepted no form: set wire_version if its "
            "wire version is known"
        )
        final.args = (final.message,)
        return final

    def _first(self) -> BodyForm:
        operation, refused = self._call.operation.name, self._connection.dialects.refused
        while self._untried:
            dialect = self._untried.pop(0)
            if self._encoding_error is not None and dialect.form_name(operation) in refused:
                continue
            try:
                return self._encode(dialect)
            except (TinkerError, ValueError, TypeError) as error:
                self._encoding_error = self._encoding_error or error
        assert self._encoding_error is not None
        raise self._encoding_error

    def _next(self, error: TinkerError) -> BodyForm | None:
        key = self.current.request.headers.get(KEY)
        while self._untried:
            try:
                form = self._encode(self._untried.pop(0))
            except (TinkerError, ValueError, TypeError):
                continue
            if not is_rejection(error) and key is not None:
                # The server may have run the batch: seq_id and key identify it in any form.
                form.request = attrs.evolve(form.request, headers={**form.request.headers, KEY: key})
            return form
        return None

    def _encode(self, dialect: Dialect) -> BodyForm:
        request = self._connection.codec.encode(self._call, dialect)
        name = dialect.form_name(self._call.operation.name)
        form = BodyForm(dialect, name, request, self._create_reader(request))
        self._tried.append(form)
        return form

    def _may_be_unsupported(self, error: TinkerError) -> bool:
        if self._is_provisional or len(self._tried) > 1:
            return may_be_due_to_form(error)
        if not isinstance(error, APIStatusError) or isinstance(error, SequenceConflictError) or not self._untried:
            return False
        untried_name = self._untried[0].form_name(self._call.operation.name)
        is_refused = untried_name in self._connection.dialects.refused
        return error.status_code in ALWAYS_UNSUPPORTED_FORM_STATUSES or (
            error.status_code in UNSUPPORTED_FORM_STATUSES and not is_refused
        )

    def _is_final(self, error: TinkerError) -> bool:
        is_of_form = isinstance(error, APIStatusError) and error.status_code in FORM_STATUSES
        return is_of_form or not self._connection.retry.should_retry(error)

    def _is_retry_useless(self) -> bool:
        """Check whether retries are useless: one form was rejected, and the other fails with identical errors."""
        rejections = [form.error for form in self._tried if form.is_rejected]
        may_be_of_batch = any(
            not (isinstance(rejection, APIStatusError) and rejection.status_code in FORM_STATUSES)
            for rejection in rejections
        )
        return may_be_of_batch and sum(form.identical for form in self._tried if not form.is_rejected) >= MAX_IDENTICAL

    def _replacement(
        self, form: BodyForm, error: TinkerError, *, is_due: bool = False, is_hopeless: bool = False
    ) -> Replacement[Submission]:
        missing = next((tried.error for tried in self._tried if isinstance(tried.error, NotFoundError)), None)
        if is_hopeless and missing is not None:
            # Servers also return 404 when they have lost the session.
            error = missing
        return Replacement(request=form.request, read=form.read, error=error, is_due=is_due, is_hopeless=is_hopeless)


def may_be_due_to_form(error: TinkerError) -> bool:
    """Check whether an error may be due to the form of the first batch that a server received."""
    if error.from_credential_refresh or isinstance(error, SequenceConflictError):
        return False
    if isinstance(error, APIStatusError):
        return error.status_code >= 400 and error.status_code not in FORM_INDEPENDENT_STATUSES
    is_drop = isinstance(error, APIConnectionError) and not isinstance(error, APITimeoutError)
    return is_drop and error.may_have_been_sent is not False


def _rank(error: TinkerError | None) -> int:
    """Rank an error by how specific it is; the lowest rank is the most specific."""
    if isinstance(error, APIStatusError) and error.status_code in FORM_STATUSES:
        return 2
    return 0 if error is not None and is_rejection(error) else 1


def _text(error: TinkerError | None) -> str:
    if isinstance(error, APIStatusError):
        return f"{error.status_code} {error.response.text}"
    return str(error)
