"""Mixin of a failed request: the category of its error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import RequestErrorCategory
from .normalize import set_field


class ErrorCategoryMixin:
    """The error category in lower case, as servers differ; unknown categories do not change."""

    __slots__ = ()
    if TYPE_CHECKING:
        category: Any

    def __attrs_post_init__(self) -> None:
        """Normalize and check the fields."""
        lower = str(self.category).lower()
        if lower in (category.value for category in RequestErrorCategory):
            set_field(self, "category", lower)
