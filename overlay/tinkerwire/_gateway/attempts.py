"""The attempts to send one call in the forms that an upstream may accept, and the answer if it accepts none."""

from __future__ import annotations

from tinkerwire_base.call import PROTOBUF, WireRequest, WireResponse
from tinkerwire_base.conversion.versioning import parse_version
from tinkerwire_generated.availability import BODY_VERSIONS, OLDEST_MODELS_VERSION

from .._server.http.responses import HttpError
from .._wire.dialect import BATCH_OPERATIONS, Dialect

PROTOBUF_SINCE = BODY_VERSIONS["forward_backward"][PROTOBUF][0] or OLDEST_MODELS_VERSION
"""The oldest version with batches as protobuf."""
INVALID = 422
CONFLICT_STATUS = 409
"""Status of a request whose idempotency key belongs to another one: the same in another form, perhaps."""
WRONG_ENCODING_STATUSES = frozenset({406, 415})
"""Statuses of an encoding that a server does not accept, whatever the content."""
MISSING_FORM_STATUSES = WRONG_ENCODING_STATUSES | {404, 405, 501}
"""Statuses of a form of batches that a server does not have."""
DOUBTFUL_FORM_STATUSES = MISSING_FORM_STATUSES | {400, CONFLICT_STATUS, INVALID, 500}
"""Statuses that the first batch in a form may also get because of its form."""


class Attempts:
    """The attempts to send one call, of which none was accepted so far.

    Args:
        name: the operation.
        dialect: the dialect of the upstream before the first attempt.
    """

    def __init__(self, name: str, dialect: Dialect) -> None:
        self.learns_encoding = name in BATCH_OPERATIONS and dialect.is_provisional
        """True if the upstream's encoding of such calls is not known yet."""
        self.uncertain: tuple[Dialect, WireRequest] | None = None
        """The first attempt that the upstream may have run although it failed."""
        self._name = name
        self._dialect = dialect
        self._failures: list[tuple[Dialect, WireResponse | HttpError]] = []
        if self.learns_encoding:
            self._doubtful = DOUBTFUL_FORM_STATUSES
        else:
            is_batch = name in BATCH_OPERATIONS
            self._doubtful = frozenset({CONFLICT_STATUS, INVALID}) | (
                WRONG_ENCODING_STATUSES if is_batch else frozenset()
            )

    def may_fit(self, form: Dialect) -> bool:
        """Return whether a form is worth sending.

        An upstream rejects the content of a batch in the encoding that it accepts. The other encoding cannot make the
        content valid, and the upstream may fail to read it.
        """
        if self.learns_encoding or self._is_protobuf(form) == self._is_protobuf(self._dialect):
            return True
        return any(failure.status in WRONG_ENCODING_STATUSES for _, failure in self._failures)

    def is_doubtful(self, response: WireResponse) -> bool:
        """Return whether another form of the call may be accepted after this response."""
        return response.status in self._doubtful

    def add(self, form: Dialect, sent: WireRequest, failure: WireResponse | HttpError) -> None:
        """Add a failed attempt: a doubtful response, or the lack of one."""
        self._failures.append((form, failure))
        is_unknown = isinstance(failure, HttpError) or failure.status == 500
        if is_unknown and self.uncertain is None:
            self.uncertain = (form, sent)

    def should_repeat_uncertain(self) -> bool:
        """Return whether the uncertain attempt should be repeated, because another one counts only if it fails again.

        A server that cannot read a form responds with 500, and so does one that fails once.
        """
        answer = self.answer()
        if answer is None or answer.status >= 500 or not self.learns_encoding:
            return False
        return any(failure.status == 500 for _, failure in self._failures)

    def answer(self) -> WireResponse | HttpError | None:
        """Return the most specific failure; None without any."""
        return min(self._failures, key=self._rank)[1] if self._failures else None

    def _rank(self, attempt: tuple[Dialect, WireResponse | HttpError]) -> tuple[bool, ...]:
        form, failure = attempt
        # Such an upstream is of versions whose batches are JSON.
        is_json_upstream = parse_version(self._dialect.max_version) < parse_version(PROTOBUF_SINCE)
        is_unlikely = self.learns_encoding and is_json_upstream and self._is_protobuf(form)
        # Clients repeat a request after a conflict, but not after a rejection, which the form alone may have caused.
        is_conflict = failure.status == CONFLICT_STATUS
        return not is_conflict, failure.status in MISSING_FORM_STATUSES, is_unlikely, failure.status >= 500

    def _is_protobuf(self, form: Dialect) -> bool:
        return self._name in form.protobuf_operations
