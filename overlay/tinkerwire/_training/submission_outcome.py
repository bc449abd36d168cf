"""Outcome of submitting an operation: accepted, rejected for certain, or uncertain."""

from __future__ import annotations

from enum import Enum

import attrs

from tinkerwire_base.errors import APIError, TinkerError

from .._connection.retry_rules import Decision, Loop, find_rule
from .._futures.operation_record import OperationRecord


class SubmissionOutcome(Enum):
    """Outcome of a submission, which decides about the operation's seq_id; see :class:`OperationSubmitter`."""

    ACCEPTED = "accepted"
    """The server returned a future."""
    REJECTED = "rejected"
    """The server certainly does not run the operation."""
    UNCERTAIN = "uncertain"
    """The server may run the operation: a response was lost, or came with a status that leaves the question open."""


@attrs.define
class SubmissionAttempts:
    """The failed attempts to send one request."""

    _record: OperationRecord
    _is_rejected_each_time: bool = True

    def add(self, error: TinkerError, _wait_s: float) -> None:
        """Add an attempt that is about to be retried; the argument ``on_retry`` of Connection.send."""
        if not is_rejection(error):
            self._is_rejected_each_time = False
            self._record.may_be_accepted = True

    def classify(self, error: Exception, expected_seq_id: int | None) -> SubmissionOutcome:
        """Return the outcome after the last attempt failed.

        Args:
            error: the error of the last attempt. An error other than an APIError was raised before anything was sent.
            expected_seq_id: the seq_id that the server expects instead, if it rejected the one of the request.
        """
        is_rejected_now = expected_seq_id is not None or not isinstance(error, APIError) or is_rejection(error)
        if self._is_rejected_each_time and is_rejected_now:
            return SubmissionOutcome.REJECTED
        return SubmissionOutcome.UNCERTAIN

    @property
    def may_be_accepted(self) -> bool:
        """True if the server may run the operation because of an attempt before the last one."""
        return not self._is_rejected_each_time


def is_rejection(error: TinkerError) -> bool:
    """Check whether an error proves that the server did not accept a request: a 3xx or 4xx, or no connection."""
    return find_rule(Loop.SUBMISSION, error).decision is Decision.REUSE_SEQ_ID
