"""Mixin of a failed request: the category of its error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import RequestErrorCategory
from .normalize import set_field


class ErrorCategoryMixin:
    """The error category in lower case, whatever case the server uses; unknown categories stay as they are."""

    __slots__ = ()
    if TYPE_CHECKING:
        category: Any

    def __attrs_post_init__(self) -> None:
        lower = str(self.category).lower()
        if lower in (category.value for category in RequestErrorCategory):
            set_field(self, "category", lower)
