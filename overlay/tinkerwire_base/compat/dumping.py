"""Dumps of models as dicts and lists, by the rules of pydantic's ``model_dump``."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from datetime import datetime, timezone
from types import EllipsisType
from typing import Any, TypeAlias

import attrs
import orjson

from ..reflection import allows_extra, default_of, field_name, fields_of, wire_name
from ..unset import UNSET

Choice: TypeAlias = Any
"""Names of fields: a set, or a dict whose values are choices within the fields (True or ...: the complete field)."""


@attrs.frozen
class Dump:
    """The options of a dump."""

    json: bool
    """Return only JSON values."""
    defaults: bool
    """Include fields at their defaults."""
    nulls: bool
    """Include fields that are None."""

    def model(self, model: Any, include: Choice = None, exclude: Choice = None) -> dict[str, Any]:
        """Return the dict of a model."""
        found: dict[str, Any] = {}
        for attribute in fields_of(type(model)):
            self._put(found, model, attribute, include, exclude)
        if allows_extra(type(model)):
            for name, value in model.extra_fields.items():
                if _is_chosen(name, include, exclude) and (self.nulls or value is not None):
                    found[name] = self.value(value, _within(include, name), _within(exclude, name))
        return found

    def _put(self, found: dict[str, Any], model: Any, attribute: Any, include: Choice, exclude: Choice) -> None:
        name, value = field_name(attribute), getattr(model, field_name(attribute))
        if value is UNSET or (value is None and not self.nulls) or not _is_chosen(name, include, exclude):
            return
        # Omit fields that the newest wire no longer has, unless they were set.
        if (not self.defaults or "until" in attribute.metadata) and is_default(model, attribute):
            return
        found[wire_name(attribute)] = self.value(value, _within(include, name), _within(exclude, name))

    def value(self, value: Any, include: Choice = None, exclude: Choice = None) -> Any:
        """Return the dump of a value."""
        if isinstance(value, str | int | float | None):
            return value
        if attrs.has(type(value)):
            return self.model(value, include, exclude)
        if isinstance(value, Mapping):
            items = {key: item for key, item in value.items() if _is_chosen(key, include, exclude)}
            return {key: self.value(item, _within(include, key), _within(exclude, key)) for key, item in items.items()}
        if isinstance(value, list | tuple):
            return self._sequence(value, include, exclude)
        if isinstance(value, bytes):
            return b64encode(value).decode()
        if isinstance(value, datetime):
            return _format_datetime(value) if self.json else value
        return value.tolist() if hasattr(value, "tolist") else value

    def _sequence(self, value: Any, include: Choice, exclude: Choice) -> Any:
        if include is None and exclude is None and set(map(type, value)) <= {int, float, str}:
            return list(value) if self.json or isinstance(value, list) else value
        places = [place for place in range(len(value)) if _is_chosen(place, include, exclude, len(value))]
        found = [
            self.value(value[place], _within(include, place, len(value)), _within(exclude, place, len(value)))
            for place in places
        ]
        return found if self.json or isinstance(value, list) else tuple(found)


def is_default(model: Any, attribute: attrs.Attribute[Any]) -> bool:
    """Return whether a field is at its default; a required field never is."""
    if attribute.default is attrs.NOTHING:
        return False
    value = getattr(model, field_name(attribute))
    return not hasattr(value, "tolist") and bool(value == default_of(attribute))


def json_text(value: Any, indent: int | None, ensure_ascii: bool) -> str:
    """Return the JSON text of a dump."""
    if ensure_ascii or indent not in (None, 2):
        separators = (",", ":") if indent is None else None
        # Through orjson first, which writes NaN as null.
        plain = orjson.loads(orjson.dumps(value))
        return json.dumps(plain, indent=indent, ensure_ascii=ensure_ascii, separators=separators)
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 if indent else None).decode()


def _format_datetime(value: datetime) -> str:
    text = value.isoformat()
    return (
        text.removesuffix("+00:00") + "Z"
        if value.tzinfo and value.utcoffset() == timezone.utc.utcoffset(None)
        else text
    )


def _is_chosen(name: Any, include: Choice, exclude: Choice, count: int = 0) -> bool:
    """Return whether a dump includes a field, key or position."""
    keys = _keys(name, count)
    if exclude is not None and any(
        exclude[key] in (True, ...) if isinstance(exclude, Mapping) else True for key in keys if key in exclude
    ):
        return False
    return include is None or any(key in include for key in keys)


def _within(choice: Choice, name: Any, count: int = 0) -> Choice:
    """Return the choice within a field, key or position."""
    if not isinstance(choice, Mapping):
        return None
    inner = [choice[key] for key in _keys(name, count) if key in choice]
    return None if not inner or isinstance(inner[0], bool | EllipsisType) else inner[0]


def _keys(name: Any, count: int) -> tuple[Any, ...]:
    """Return the names by which a choice can address an item: positions count from the end, too."""
    return (name, name - count, "__all__") if count else (name,)
