"""Detection of seq_id conflicts in error responses, and of the seq_id that the server expects instead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tinkerwire_base.conversion.json_text import parse_json
from tinkerwire_base.errors import (
    APIStatusError,
    ConflictError,
    RequestFailedError,
    ResponseInfo,
    SequenceConflictError,
    TinkerError,
)

OTHER_STATUSES = frozenset({400, 412, 422})
"""Statuses that some servers use instead of 409."""
MAX_SEQ_ID = 2**31 - 1
"""The largest seq_id that both JSON and protobuf bodies can carry."""
_SUBJECT = re.compile(
    r"seq(?:uence)?[\s_-]*(?:id|no\b|num|conflict|mismatch|gap|order)|out[\s_-]of[\s_-](?:order|sequence)",
    re.IGNORECASE,
)
_EXPECTED = re.compile(r"(?:expect\w*|must be|should be|next)\D{0,40}?(\d+)", re.IGNORECASE)
_LAST = re.compile(r"(?:last|previous|highest|greater than|higher than|above|>)\D{0,40}?(\d+)", re.IGNORECASE)
_KEY = re.compile(r"(?:expected|next)(?:_?seq(?:uence)?)?(?:_?(?:id|number|no))?", re.IGNORECASE)


def sequence_conflict(error: TinkerError, seq_id: int) -> SequenceConflictError | None:
    """Return an error with both seq_ids if the server rejected the seq_id of an operation, else None."""
    if isinstance(error, APIStatusError):
        response, text = error.response, error.response.text or error.message
    elif isinstance(error, RequestFailedError):
        response, text = ResponseInfo(status_code=409, text=error.message), error.message
    else:
        return None
    if not _SUBJECT.search(text):
        return None
    expected = _expected_seq_id(text, seq_id)
    if not isinstance(error, ConflictError):
        # Other errors may mention a seq_id, too: it is a conflict only if both seq_ids are in the text.
        is_conflict_status = isinstance(error, RequestFailedError) or error.status_code in OTHER_STATUSES
        if not is_conflict_status or expected is None or not re.search(rf"(?<!\d){seq_id}(?!\d)", text):
            return None
    expectation = "another one" if expected is None else str(expected)
    return SequenceConflictError(
        f"{error.message}; the request had seq_id {seq_id}, and the server expects {expectation}",
        response,
        getattr(error, "body", None),
        seq_id=seq_id,
        expected_seq_id=expected,
    )


def _expected_seq_id(text: str, seq_id: int) -> int | None:
    try:
        number = next(_numbers_by_key(parse_json(text.encode("utf-8", "replace"))), None)
    except ValueError:
        number = None
    if number is None:
        expected, last = _EXPECTED.search(text), _LAST.search(text)
        if expected and not (last and last.end() == expected.end()):
            number = int(expected[1])
        elif last:
            number = int(last[1]) + 1
    return number if number is not None and number != seq_id and 0 <= number <= MAX_SEQ_ID else None


def _numbers_by_key(value: Any) -> Iterator[int]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(item, int) and not isinstance(item, bool) and _KEY.fullmatch(key):
                yield item
            yield from _numbers_by_key(item)
    elif isinstance(value, list):
        for item in value:
            yield from _numbers_by_key(item)
