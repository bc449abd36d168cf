"""Support for the functions of ``dataclasses`` on models whose official type is a dataclass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from ..reflection import factory_of, field_name, resolve_types


class _Fields:
    """Makes ``__dataclass_fields__`` of a class at first use."""

    def __init__(self) -> None:
        self._found: dict[type, dict[str, Any]] = {}

    def __get__(self, model: Any, cls: type) -> dict[str, Any]:
        if not attrs.has(cls):
            # The mixin itself, as a base of a class under construction.
            raise AttributeError("__dataclass_fields__")
        if cls not in self._found:
            self._found[cls] = _fields(cls)
        return self._found[cls]


class DataclassMethods:
    """Lets the functions of ``dataclasses`` see the fields of an attrs class."""

    __slots__ = ()
    __dataclass_fields__ = _Fields()
    if not TYPE_CHECKING:
        # Dataclasses are not iterable; the other models are.
        __iter__ = None


def _fields(cls: Any) -> dict[str, Any]:
    import dataclasses  # noqa: PLC0415  (not needed to import the models)

    described = []
    for attribute in attrs.fields(resolve_types(cls)):
        factory = factory_of(attribute)
        is_plain = factory is None and attribute.default is not attrs.NOTHING
        keyword: dict[str, Any] = {"default": attribute.default} if is_plain else {}
        keyword |= {"default_factory": factory} if factory else {}
        described.append(
            (field_name(attribute), attribute.type, dataclasses.field(kw_only=attribute.kw_only, **keyword))
        )
    found: dict[str, Any] = dataclasses.make_dataclass(cls.__name__, described).__dataclass_fields__  # type: ignore[attr-defined]
    return found
