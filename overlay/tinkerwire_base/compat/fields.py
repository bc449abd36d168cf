"""Descriptions of the fields of models, by the names of pydantic's ``FieldInfo``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import attrs

from ..reflection import factory_of, field_name, fields_of, resolve_types


@attrs.frozen
class ModelField:
    """The description of a field; the names are those of pydantic's ``FieldInfo``."""

    annotation: Any
    """The type."""
    default: Any
    """The default, ``attrs.NOTHING`` for a required field or one with a factory."""
    default_factory: Callable[[], Any] | None
    """The function that makes the default."""
    alias: str | None
    """The key on the wire, if it differs from the name."""

    def is_required(self) -> bool:
        """Return whether the field is required."""
        return self.default is attrs.NOTHING and self.default_factory is None


@cache
def model_fields(cls: Any) -> Mapping[str, ModelField]:
    """Return the fields of a model by name; a base class of models has none."""
    if not attrs.has(cls):
        return {}
    found = {}
    for attribute in fields_of(resolve_types(cls)):
        factory = factory_of(attribute)
        found[field_name(attribute)] = ModelField(
            annotation=attribute.type,
            default=attrs.NOTHING if factory else attribute.default,
            default_factory=factory,
            alias=attribute.metadata.get("wire"),
        )
    return found
