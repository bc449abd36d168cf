# Generated from schema/ by `python -m tinkerwire_codegen generate`; edits are lost and fail `make check`.
"""Types of the family errors."""

from __future__ import annotations

from typing import Any, TypeAlias

from attrs import field
from tinkerwire_base.model import AllowExtra, define
from tinkerwire_base.unset import UNSET, UnsetType


@define
class ErrorBody(AllowExtra):
    """Body of a failed request; servers differ in it, so nothing is required.

    Wire: 0.1.0 and later.
    """

    detail: Any | UnsetType = field(default=UNSET)
    """Error detail: mostly a sentence, sometimes a structure."""


@define
class ErrorResponse(AllowExtra):
    """An error; no endpoint returns it.

    Wire: 0.1.0 to before 0.2.0.
    """

    error: str
    """Name of the error."""
    message: str
    """Error message."""
    details: dict[str, Any] | None = field(default=None)
    """Details by name."""


LocationPart: TypeAlias = str | int
"""
One step of the path to a field, a name or an index.

Wire: 0.1.0 and later.
"""


@define
class ValidationErrorBody(AllowExtra):
    """Body of a 422, one item per error.

    Wire: 0.1.0 and later.
    """

    detail: list[ValidationErrorItem]
    """All errors."""


@define
class ValidationErrorItem(AllowExtra):
    """One error in a request.

    Wire: 0.1.0 and later.
    """

    loc: list[LocationPart]
    """Path to the wrong field, from the outside in; starts with body, path or query."""
    msg: str
    """Error message for the field."""
    type: str
    """Kind of the error, for programs."""
