"""Reflection: the fields of a model with their names, defaults, types and marks.

A field that is read through a property has a private slot; ``field_name`` returns its public name.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias, Union, get_args, get_origin

import attrs

EXTRA_FIELDS = "extra_fields"
"""The field that holds the unknown keys of a model that keeps them."""


def allows_extra(cls: type) -> bool:
    """Return whether a model keeps unknown keys."""
    return getattr(cls, "_extra_keys", None) == "allow"


def forbids_extra(cls: type) -> bool:
    """Return whether a model refuses unknown keys."""
    return getattr(cls, "_extra_keys", None) == "forbid"


def resolve_types(cls: Any) -> Any:
    """Replace the annotations of a class that are text by types, and return the class."""
    # Without the empty namespace a field with the name of a type would hide that type.
    return attrs.resolve_types(cls, localns={})


def factory_of(attribute: attrs.Attribute[Any]) -> Callable[[], Any] | None:
    """Return the function that makes the default of a field, if the field has one."""
    default: Any = attribute.default
    return default.factory if isinstance(default, attrs.Factory) else None  # type: ignore[arg-type]


def default_of(attribute: attrs.Attribute[Any]) -> Any:
    """Return the default of a field, ``attrs.NOTHING`` for a required field."""
    factory = factory_of(attribute)
    return factory() if factory else attribute.default


def _slot_setters(cls: type) -> tuple[dict[str, SlotSetter], tuple[tuple[SlotSetter, Any], ...]]:
    setters = {a.name: getattr(cls, a.name).__set__ for a in attrs.fields(cls)}
    defaults = ((setters[a.name], a.default) for a in attrs.fields(cls) if a.default is not attrs.NOTHING)
    return setters, tuple(defaults)


def _sibling(cls: type, name: str) -> Any:
    modules = (sys.modules[base.__module__] for base in cls.__mro__)
    return next(getattr(module, name) for module in modules if hasattr(module, name))


SlotSetter: TypeAlias = Callable[[Any, Any], None]
"""Sets a slot of a frozen model; twice as fast as :func:`object.__setattr__`."""

slot_setters: Callable[[type], tuple[dict[str, SlotSetter], tuple[tuple[SlotSetter, Any], ...]]] = cache(_slot_setters)
"""Return the setters of a model's slots, and those of its optional fields with their defaults (no factories)."""

sibling: Callable[[type, str], Any] = cache(_sibling)
"""Return the class of a name in the module of a model, or in that of its base if users derived the model."""


def fields_of(cls: type) -> list[attrs.Attribute[Any]]:
    """Return the fields of a model that the contract names."""
    return [a for a in attrs.fields(cls) if not (a.name == EXTRA_FIELDS and allows_extra(cls))]


def essential_fields(cls: type) -> frozenset[str] | None:
    """Return the wire names of the fields that are never read leniently; None if that applies to every field."""
    return getattr(cls, "_essential", None)


def is_tag_optional(cls: type) -> bool:
    """Return whether clients may leave out the tag of a model in a union."""
    return getattr(cls, "_is_tag_optional", False)


def is_protobuf_only(attribute: attrs.Attribute[Any]) -> bool:
    """Return whether only protobuf carries a field."""
    return bool(attribute.metadata.get("protobuf_only"))


def field_name(attribute: attrs.Attribute[Any]) -> str:
    """Return the public name of a field, which is the name of its constructor argument."""
    return attribute.alias or attribute.name


def wire_name(attribute: attrs.Attribute[Any]) -> str:
    """Return the key of a field on the wire."""
    name: str = attribute.metadata.get("wire", field_name(attribute))
    return name


def members_of(tp: Any) -> tuple[Any, ...]:
    """Return the members of a union type; an empty tuple for other types."""
    return get_args(tp) if get_origin(tp) in (Union, types.UnionType) else ()


def as_comparable(value: Any) -> Any:
    """Return a value that ``==`` compares: a list for an array."""
    return value.tolist() if hasattr(value, "tolist") else value
