"""The forms in which a batch may be sent, and which of them is tried after a failed attempt."""

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
from tinkerwire_generated.models import UntypedAPIFuture

from .._connection.connection import Connection
from .._connection.replacement import Replacement
from .._wire.dialect import Dialect
from .._wire.server_futures import Submission
from .submission_outcome import is_rejection

NO_MATTER_OF_FORM = frozenset({401, 402, 407, 408, 409, 410, 425, 429})
"""User errors that depend on who asks, and when, and not on the body."""
MATTER_OF_FORM = frozenset({404, 405, 406, 415, 501})
"""Statuses for a form that a server does not support; other statuses may be about the content of the batch."""
ALWAYS_DOUBTED = frozenset({406, 415})
"""Statuses that always cast doubt on a form that the server has accepted before."""
DOUBTED = frozenset({400, 405, 422, 501})
"""Statuses that do so unless the server is known to reject the other form."""
MAX_IDENTICAL = 4
"""So many identical errors in one form end the operation where the other was refused; either may be the reason."""
KEY = "x-idempotency-key"
Read: TypeAlias = Callable[[WireResponse], Submission]
"""Makes the result of a response, or raises its error."""


@attrs.define
class Form:
    """One form of a batch, with what became of it."""

    dialect: Dialect
    name: str
    request: WireRequest
    read: Read
    error: TinkerError | None = None
    """The error of the last attempt; None before the first."""
    identical: int = 0
    """Number of times in a row."""
    is_out: bool = False
    """True if the server certainly does not accept the batch in this form."""


class Forms:
    """The forms of one batch. Once one was refused, another is tried at once; see :meth:`after`.

    Args:
        connection: what knows the forms that the server takes.
        call: the batch.
        dialect: the one in use.
        reader: makes what reads the response to a request.

    Raises:
        DialectError, TypeError, ValueError: the batch has none of the forms.
    """

    def __init__(
        self,
        connection: Connection,
        call: Call[UntypedAPIFuture],
        dialect: Dialect,
        reader: Callable[[WireRequest], Read],
    ) -> None:
        self._reader = reader
        self._connection = connection
        self._call = call
        self._is_guess = dialect.is_guess
        self._untried = list(dialect.forms(call.operation.name))
        self._tried: list[Form] = []
        self._problem: TinkerError | ValueError | TypeError | None = None
        """Why the batch has no form that the server would rather take."""
        self.current = self._first()

    @property
    def dialect(self) -> Dialect:
        """The dialect of the form in which the batch was sent last."""
        return self.current.dialect

    def after(self, error: TinkerError) -> Replacement[Submission] | None:
        """Return the request that follows an error; see :class:`Replacement`.

        An error that may be one of the form has another one tried at once. Where both may yet be taken, resends
        alternate between them.
        """
        current = self.current
        current.identical = current.identical + 1 if _text(error) == _text(current.error) else 1
        current.error = error
        current.is_out = self._is_final(error)
        if self._is_doubted(error):
            following = self._next(error)
            if following is not None:
                self.current = following
                return self._replacement(following, error, is_due=True)
        if len(self._tried) == 1:
            return None
        earlier = [form for form in self._tried if form is not current and not form.is_out]
        if isinstance(error, ConflictError) and earlier and not is_rejection(earlier[-1].error or error):
            # The server has done the batch in the earlier form, in which it knows a resend again.
            current.is_out, self.current = True, earlier[-1]
            return self._replacement(self.current, error, is_due=True)
        return self._resend(current, error, earlier)

    def _resend(self, current: Form, error: TinkerError, earlier: list[Form]) -> Replacement[Submission] | None:
        if not earlier:
            return self._replacement(current, error, is_hopeless=current.is_out or self._is_settled())
        if not (current.is_out or speaks_of_form(error)):
            return None
        self.current = earlier[0]
        cause = error if not current.is_out else (self.current.error or error)
        return self._replacement(self.current, cause, is_hopeless=self._is_settled())

    def accepted(self) -> None:
        """Note that the server took the batch in the current form."""
        dialects = self._connection.dialects
        dialects.refused |= {form.name for form in self._tried if form is not self.current}
        dialects.refused.discard(self.current.name)
        dialects.learn_form(self._call.operation.name, self.dialect)

    def refused(self, error: TinkerError) -> TinkerError | ValueError | TypeError:
        """Return the error of a batch that was taken in no form: the most telling one, with the others in its text."""
        is_of_form = isinstance(error, APIStatusError) and error.status_code in MATTER_OF_FORM
        if self._problem is not None and is_of_form:
            return self._problem
        failed = [form for form in self._tried if form.error is not None]
        if len(failed) < 2 or isinstance(error, SessionExpiredError):
            return error
        if all(form.is_out for form in failed):
            self._connection.dialects.refused |= {form.name for form in failed[1:]}
        main = min(failed, key=lambda form: (_rank(form.error), form.error is not error))
        told = main.error
        assert told is not None
        others = "; ".join(f"sent as {form.name}: {form.error}" for form in failed if form is not main)
        told.message = (
            f"{told.message} (sent as {main.name}); {others}; no form was taken: where the server has a form of its "
            "own, wire_version names it"
        )
        told.args = (told.message,)
        return told

    def _first(self) -> Form:
        operation, refused = self._call.operation.name, self._connection.dialects.refused
        while self._untried:
            dialect = self._untried.pop(0)
            if self._problem is not None and dialect.form_name(operation) in refused:
                continue
            try:
                return self._encoded(dialect)
            except (TinkerError, ValueError, TypeError) as error:
                self._problem = self._problem or error
        assert self._problem is not None
        raise self._problem

    def _next(self, error: TinkerError) -> Form | None:
        key = self.current.request.headers.get(KEY)
        while self._untried:
            try:
                form = self._encoded(self._untried.pop(0))
            except (TinkerError, ValueError, TypeError):
                continue
            if not is_rejection(error) and key is not None:
                # The server may have done it: by the number and the key it knows the batch again in any form.
                form.request = attrs.evolve(form.request, headers={**form.request.headers, KEY: key})
            return form
        return None

    def _encoded(self, dialect: Dialect) -> Form:
        request = self._connection.codec.encode(self._call, dialect)
        name = dialect.form_name(self._call.operation.name)
        form = Form(dialect, name, request, self._reader(request))
        self._tried.append(form)
        return form

    def _is_doubted(self, error: TinkerError) -> bool:
        if self._is_guess or len(self._tried) > 1:
            return speaks_of_form(error)
        if not isinstance(error, APIStatusError) or isinstance(error, SequenceConflictError) or not self._untried:
            return False
        other = self._untried[0].form_name(self._call.operation.name)
        is_refused = other in self._connection.dialects.refused
        return error.status_code in ALWAYS_DOUBTED or (error.status_code in DOUBTED and not is_refused)

    def _is_final(self, error: TinkerError) -> bool:
        is_of_form = isinstance(error, APIStatusError) and error.status_code in MATTER_OF_FORM
        return is_of_form or not self._connection.retry.should_retry(error)

    def _is_settled(self) -> bool:
        """Check whether retrying is useless: every attempt met the same errors, and one form was rejected for good."""
        refusals = [form.error for form in self._tried if form.is_out]
        may_be_of_batch = any(
            not (isinstance(each, APIStatusError) and each.status_code in MATTER_OF_FORM) for each in refusals
        )
        return may_be_of_batch and sum(form.identical for form in self._tried if not form.is_out) >= MAX_IDENTICAL

    def _replacement(
        self, form: Form, error: TinkerError, *, is_due: bool = False, is_hopeless: bool = False
    ) -> Replacement[Submission]:
        missing = next((each.error for each in self._tried if isinstance(each.error, NotFoundError)), None)
        if is_hopeless and missing is not None:
            # What a server answers, too, when it has lost the session.
            error = missing
        return Replacement(request=form.request, read=form.read, error=error, is_due=is_due, is_hopeless=is_hopeless)


def speaks_of_form(error: TinkerError) -> bool:
    """Check whether an error may be due to the form of the first batch that a server received."""
    if error.from_credential_refresh or isinstance(error, SequenceConflictError):
        return False
    if isinstance(error, APIStatusError):
        return error.status_code >= 400 and error.status_code not in NO_MATTER_OF_FORM
    is_drop = isinstance(error, APIConnectionError) and not isinstance(error, APITimeoutError)
    return is_drop and error.may_have_been_sent is not False


def _rank(error: TinkerError | None) -> int:
    """Rank an error by how specific it is; the lowest rank is the most specific."""
    if isinstance(error, APIStatusError) and error.status_code in MATTER_OF_FORM:
        return 2
    return 0 if error is not None and is_rejection(error) else 1


def _text(error: TinkerError | None) -> str:
    if isinstance(error, APIStatusError):
        return f"{error.status_code} {error.response.text}"
    return str(error)
