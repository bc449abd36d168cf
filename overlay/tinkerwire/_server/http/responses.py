"""Responses and HTTP errors, before they are encoded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

ErrorDetail = dict[str, Any]
"""One validation error: ``loc`` (path to the field), ``msg`` and ``type``."""

NO_RETRY: Mapping[str, str] = {"x-should-retry": "false"}


@attrs.frozen(kw_only=True)
class Response:
    """A response before it is encoded.

    Args:
        status: HTTP status.
        body: a generated model, a JSON value, bytes, or None for an empty body.
        headers: headers by lower-case name.
    """

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = attrs.field(factory=dict)


NO_CONTENT = Response(status=204)


class HttpError(Exception):
    """An HTTP error response.

    Args:
        status: HTTP status.
        detail: a text, or a list of validation errors.
        headers: further headers of the response.
    """

    def __init__(
        self, status: int, detail: str | Sequence[ErrorDetail], headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail if isinstance(detail, str) else "; ".join(item["msg"] for item in detail))
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})

    def to_response(self) -> Response:
        """Return the response that reports this error."""
        return Response(status=self.status, body={"detail": self.detail}, headers=self.headers)


def field_error(field: str, message: str, kind: str = "value_error") -> HttpError:
    """Create the 422 for a field of the body that fits the schema but has an invalid value.

    Args:
        field: path to the field, such as ``lora_config.rank``.
        message: the reason.
        kind: the ``type`` of the validation error.
    """
    return HttpError(422, [{"loc": ["body", *field.split(".")], "msg": message, "type": kind}])


def conflict_error(message: str) -> HttpError:
    """Create a 409 that clients must not retry."""
    return HttpError(409, message, NO_RETRY)
