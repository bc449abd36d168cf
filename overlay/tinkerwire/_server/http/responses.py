"""What handlers give back: an answer, or a refusal that is raised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

ErrorDetail = dict[str, Any]
"""One fault of a request: ``loc`` (way to the field), ``msg`` and ``type``."""

NO_RETRY: Mapping[str, str] = {"x-should-retry": "false"}


@attrs.frozen(kw_only=True)
class Response:
    """An answer before it is encoded.

    Args:
        body: a generated model, a plain JSON value, or None for no body.
    """

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = attrs.field(factory=dict)


DONE = Response(status=204)


class HttpError(Exception):
    """A request that is not done; ``detail`` says what is wrong and what would be right."""

    def __init__(
        self, status: int, detail: str | Sequence[ErrorDetail], headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail if isinstance(detail, str) else "; ".join(item["msg"] for item in detail))
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})

    def answer(self) -> Response:
        """The refusal as it goes over the wire."""
        return Response(status=self.status, body={"detail": self.detail}, headers=self.headers)


def invalid(field: str, message: str, kind: str = "value_error") -> HttpError:
    """The 422 for one field of the body, ``lora_config.rank`` for example, that fits the schema and is wrong still."""
    return HttpError(422, [{"loc": ["body", *field.split(".")], "msg": message, "type": kind}])


def conflict(message: str) -> HttpError:
    """The 409 for a request that sending again cannot mend."""
    return HttpError(409, message, NO_RETRY)
