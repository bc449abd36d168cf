"""Outcomes of submissions: what an error proves about a request."""

from __future__ import annotations

import pytest

import tinkerwire as tw
from tinkerwire._futures.operation_record import OperationRecord
from tinkerwire._training.submission_outcome import SubmissionAttempts, SubmissionOutcome, is_rejection
from tinkerwire_base.errors import ResponseInfo, TinkerError, status_error


def make_http_error(status: int) -> tw.APIStatusError:
    """Return the error of a response with a status."""
    return status_error(status)("x", response=ResponseInfo(status_code=status))


@pytest.mark.parametrize("status", [*range(300, 309), *range(400, 430), *range(500, 512)])
def test_3xx_and_most_4xx_reject_a_request(status: int) -> None:
    """A 3xx and a 4xx other than 408 and 409 are rejections; a 5xx and a missing response are not."""
    assert is_rejection(make_http_error(status)) == (300 <= status < 500 and status not in (408, 409))
    assert not is_rejection(tw.APIConnectionError())


@pytest.mark.parametrize(
    ("retried", "error", "expected_seq_id", "outcome"),
    [
        ([], make_http_error(422), None, SubmissionOutcome.REJECTED),
        ([make_http_error(429)], make_http_error(429), None, SubmissionOutcome.REJECTED),
        ([], make_http_error(409), None, SubmissionOutcome.UNCERTAIN),
        ([], make_http_error(409), 3, SubmissionOutcome.REJECTED),
        ([], make_http_error(500), None, SubmissionOutcome.UNCERTAIN),
        ([make_http_error(500)], make_http_error(422), None, SubmissionOutcome.UNCERTAIN),
        ([make_http_error(500)], make_http_error(409), 3, SubmissionOutcome.UNCERTAIN),
        ([], ValueError("not encodable"), None, SubmissionOutcome.REJECTED),
        ([make_http_error(500)], ValueError("not encodable"), None, SubmissionOutcome.UNCERTAIN),
    ],
    ids=str,
)
def test_failed_submission_has_one_outcome(
    retried: list[TinkerError], error: Exception, expected_seq_id: int | None, outcome: SubmissionOutcome
) -> None:
    """A submission is rejected only if every attempt was; the record notes an attempt that may be accepted."""
    record = OperationRecord("OptimStep")
    attempts = SubmissionAttempts(record)
    for earlier in retried:
        attempts.add(earlier, 0.0)
    assert attempts.classify(error, expected_seq_id) is outcome
    assert attempts.may_be_accepted == record.may_be_accepted == any(not is_rejection(earlier) for earlier in retried)
