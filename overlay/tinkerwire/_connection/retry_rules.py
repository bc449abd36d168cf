"""The rules of what the client retries: one table, which every loop reads.

A loop looks up the first row that matches an error. ``RetryConfig.retry_if`` is called before the table is read,
and the limits of RetryConfig hold for every row without ``max_retries``.

A response that announces a later result is not an error: the poller and the export of traces repeat their
requests, each of which follows the rows of its loop. Two further kinds of resends have tables of their own: seq_ids
after a conflict (:class:`OperationSubmitter`), and the encodings of a batch (module body_forms).
"""

from __future__ import annotations

from collections.abc import Container
from enum import Enum
from functools import cache

import attrs

from tinkerwire_base.errors import (
    APIConnectionError,
    APIStatusError,
    ConflictError,
    FutureExpiredError,
    RateLimitError,
    TinkerError,
)


class Loop(Enum):
    """Loops that retry."""

    REQUEST = "request"
    """Resends of any request, in Sender."""
    POLL = "poll"
    """Polls for one result."""
    BATCHED_POLL = "batched poll"
    """Polls for the finished samples of a client."""
    SAMPLE = "sample"
    """Samples that are requested again, in SampleRunner."""
    SUBMISSION = "submission"
    """The seq_id of an operation that could not be submitted."""
    NAMED_SAVE = "named save"
    """Saves under a name, which the server accepts once."""
    TELEMETRY = "telemetry"
    """Batches of telemetry events."""


class Decision(Enum):
    """Consequences of an error."""

    RETRY = "retry"
    """Send the request again."""
    FAIL = "fail"
    """Raise the error."""
    REQUEUE = "requeue"
    """Give the slot in flight back, and send the request again after a new wait for a slot."""
    RESAMPLE = "resample"
    """Request another sample: the server has lost this one."""
    REUSE_SEQ_ID = "reuse seq_id"
    """Give the seq_id to the next operation: the server certainly does not run this one."""
    KEEP_SEQ_ID = "keep seq_id"
    """Leave the seq_id to the operation: the server may run it."""
    LOOK_UP = "look up"
    """Look whether an earlier attempt has saved the checkpoint."""


@attrs.frozen(kw_only=True)
class RetryRule:
    """A row of the table. It matches an error that meets any of its criteria."""

    name: str
    loops: tuple[Loop, ...]
    decision: Decision
    statuses: Container[int] = ()
    errors: tuple[type[TinkerError], ...] = ()
    should_retry_header: str | None = None
    """The value of the response header x-should-retry."""
    is_credential_error: bool = False
    """The credential of the request could not be obtained."""
    is_unsent: bool = False
    """No connection was made, so the server cannot have received the request."""
    is_retryable_exception: bool = False
    """The error is an instance of RetryConfig.retryable_exceptions."""
    max_retries: int | None = None
    """None for the limits of RetryConfig."""
    delay_s: float | None = None
    """None for the delays of RetryConfig."""

    def matches(self, error: TinkerError, retryable_exceptions: tuple[type[Exception], ...]) -> bool:
        """Return whether the row holds for an error."""
        if isinstance(error, APIStatusError):
            header = error.response.headers.get("x-should-retry", "").lower()
            if error.status_code in self.statuses or header == self.should_retry_header:
                return True
        return (
            isinstance(error, self.errors)
            or (self.is_credential_error and error.from_credential_refresh)
            or (self.is_unsent and isinstance(error, APIConnectionError) and error.may_have_been_sent is False)
            or (self.is_retryable_exception and isinstance(error, retryable_exceptions))
        )


SERVER_ERRORS = range(500, 1000)
UNCERTAIN_STATUSES = frozenset({408, 409})
"""4xx statuses after which the server may run the operation."""
MAX_BATCHED_POLL_RETRIES = 5
"""Retries of a batched poll by rows without ``max_retries``; then each sample is polled on its own."""
_SENDING = (Loop.REQUEST, Loop.POLL, Loop.BATCHED_POLL)

RULES = (
    RetryRule(
        # The requests for the credential have been retried already.
        name="credential error",
        loops=_SENDING,
        is_credential_error=True,
        decision=Decision.FAIL,
    ),
    RetryRule(
        # Some servers return 400 to polls under load.
        name="bad request in a poll",
        loops=(Loop.POLL, Loop.BATCHED_POLL),
        statuses=frozenset({400}),
        decision=Decision.RETRY,
        max_retries=3,
    ),
    RetryRule(name="header true", loops=_SENDING, should_retry_header="true", decision=Decision.RETRY),
    RetryRule(name="header false", loops=_SENDING, should_retry_header="false", decision=Decision.FAIL),
    RetryRule(
        name="transient status",
        loops=(Loop.REQUEST, Loop.BATCHED_POLL),
        statuses=frozenset({408, 409, 429}),
        decision=Decision.RETRY,
    ),
    RetryRule(
        # A bill may be paid late. A 409 is final: some servers report failed operations by it. A 408 means "not ready".
        name="transient status of a poll",
        loops=(Loop.POLL,),
        statuses=frozenset({402, 429}),
        decision=Decision.RETRY,
    ),
    RetryRule(
        # An operation that builds something is resent at most MAX_REPEATS times after identical server errors.
        name="server error",
        loops=_SENDING,
        statuses=SERVER_ERRORS,
        decision=Decision.RETRY,
    ),
    RetryRule(name="no response", loops=_SENDING, is_retryable_exception=True, decision=Decision.RETRY),
    RetryRule(name="other error", loops=_SENDING, errors=(TinkerError,), decision=Decision.FAIL),
    # --- samples: sampling has no side effects on the server, so that a lost sample is requested again ---
    RetryRule(name="busy", loops=(Loop.SAMPLE,), errors=(RateLimitError,), decision=Decision.REQUEUE),
    RetryRule(name="lost sample", loops=(Loop.SAMPLE,), errors=(FutureExpiredError,), decision=Decision.RESAMPLE),
    RetryRule(name="failed sample", loops=(Loop.SAMPLE,), errors=(TinkerError,), decision=Decision.FAIL),
    # --- seq_ids of operations that change a model ---
    RetryRule(
        name="unsent operation",
        loops=(Loop.SUBMISSION,),
        is_credential_error=True,
        is_unsent=True,
        decision=Decision.REUSE_SEQ_ID,
    ),
    RetryRule(
        name="uncertain status",
        loops=(Loop.SUBMISSION,),
        statuses=UNCERTAIN_STATUSES,
        decision=Decision.KEEP_SEQ_ID,
    ),
    RetryRule(
        name="rejected operation",
        loops=(Loop.SUBMISSION,),
        statuses=range(300, 500),
        decision=Decision.REUSE_SEQ_ID,
    ),
    RetryRule(name="lost response", loops=(Loop.SUBMISSION,), errors=(TinkerError,), decision=Decision.KEEP_SEQ_ID),
    # --- the rest ---
    RetryRule(
        # A resend whose first attempt was accepted finds its own checkpoint.
        name="name is used",
        loops=(Loop.NAMED_SAVE,),
        errors=(ConflictError,),
        decision=Decision.LOOK_UP,
    ),
    RetryRule(name="failed save", loops=(Loop.NAMED_SAVE,), errors=(TinkerError,), decision=Decision.FAIL),
    RetryRule(
        name="unwanted telemetry",
        loops=(Loop.TELEMETRY,),
        statuses=frozenset({401, 403, 404, 405}),
        decision=Decision.FAIL,
    ),
    RetryRule(
        name="failed telemetry",
        loops=(Loop.TELEMETRY,),
        errors=(TinkerError,),
        decision=Decision.RETRY,
        max_retries=2,
        delay_s=1.0,
    ),
)
_BY_LOOP = {loop: tuple(rule for rule in RULES if loop in rule.loops) for loop in Loop}


def find_rule(
    loop: Loop, error: TinkerError, retryable_exceptions: tuple[type[Exception], ...] = (APIConnectionError,)
) -> RetryRule:
    """Return the first row for an error in a loop; the last row of each loop matches every error."""
    return next(rule for rule in _BY_LOOP[loop] if rule.matches(error, retryable_exceptions))


@cache
def error_types(loop: Loop, decision: Decision) -> tuple[type[TinkerError], ...]:
    """Return the classes of the errors that lead to a decision."""
    return tuple(kind for rule in _BY_LOOP[loop] if rule.decision is decision for kind in rule.errors)
