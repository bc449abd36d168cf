"""Structured fields of log records: the operation that a record is about."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Protocol


class OperationFields(Protocol):
    """Operation that a log record may be about."""

    number: int
    kind: str
    request_ids: tuple[str, ...]


current: ContextVar[Any] = ContextVar("tinkerwire_operation", default=None)
"""The record of the operation that this task belongs to; None outside of operations."""


def log_fields(operation: OperationFields | None) -> dict[str, object]:
    """Return the fields for ``extra=`` of a log call; None for a record that is about no operation."""
    if operation is None:
        return {"operation_id": None, "operation_kind": None, "request_id": None}
    return {
        "operation_id": operation.number,
        "operation_kind": operation.kind or None,
        "request_id": operation.request_ids[-1] if operation.request_ids else None,
    }
