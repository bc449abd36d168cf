"""Dumps of models as dicts and lists, by the rules of pydantic's ``model_dump``."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, TypeAlias

import attrs
import orjson

from ..reflection import allows_extra, default_of, field_name, fields_of, wire_name
from ..unset import UNSET

Names: TypeAlias = Any
"""Names of top-level fields: a set, list or tuple, or a dict with the values True or ``...``."""


@attrs.frozen
class Dump:
    """The options of a dump."""

    json: bool
    """Return only JSON values."""
    defaults: bool
    """Include fields at their defaults."""
    nulls: bool
    """Include fields that are None."""

    def model(self, model: Any, include: Names = None, exclude: Names = None) -> dict[str, Any]:
        """Return the dict of a model."""
        included, excluded = _names("include", include), _names("exclude", exclude) or frozenset()
        dumped: dict[str, Any] = {}
        for attribute in fields_of(type(model)):
            name, value = field_name(attribute), getattr(model, field_name(attribute))
            if value is UNSET or (value is None and not self.nulls) or not _is_chosen(name, included, excluded):
                continue
            # Omit fields that the newest wire no longer has, unless they were set.
            if (not self.defaults or "until" in attribute.metadata) and is_default(model, attribute):
                continue
            dumped[wire_name(attribute)] = self.value(value)
        if allows_extra(type(model)):
            for name, value in model.extra_fields.items():
                if (self.nulls or value is not None) and _is_chosen(name, included, excluded):
                    dumped[name] = self.value(value)
        return dumped

    def value(self, value: Any) -> Any:
        """Return the dump of a value."""
        if isinstance(value, str | int | float | None):
            return value
        if attrs.has(type(value)):
            return self.model(value)
        if isinstance(value, Mapping):
            return {key: self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            is_plain = set(map(type, value)) <= {int, float, str}
            items = value if is_plain else [self.value(item) for item in value]
            return list(items) if self.json or isinstance(value, list) else tuple(items)
        if isinstance(value, bytes):
            return b64encode(value).decode()
        if isinstance(value, datetime):
            return _format_datetime(value) if self.json else value
        return value.tolist() if hasattr(value, "tolist") else value


def is_default(model: Any, attribute: attrs.Attribute[Any]) -> bool:
    """Return whether a field is at its default; a required field never is."""
    if attribute.default is attrs.NOTHING:
        return False
    value = getattr(model, field_name(attribute))
    return not hasattr(value, "tolist") and bool(value == default_of(attribute))


def json_text(value: Any, indent: int | None) -> str:
    """Return the JSON text of a dump."""
    if indent in (None, 2):
        return orjson.dumps(value, option=orjson.OPT_INDENT_2 if indent else None).decode()
    # Through orjson first, which writes NaN as null.
    return json.dumps(orjson.loads(orjson.dumps(value)), indent=indent, ensure_ascii=False)


def _format_datetime(value: datetime) -> str:
    text = value.isoformat()
    return (
        text.removesuffix("+00:00") + "Z"
        if value.tzinfo and value.utcoffset() == timezone.utc.utcoffset(None)
        else text
    )


def _names(argument: str, names: Names) -> frozenset[Any] | None:
    """Return the names of top-level fields; TypeError for names within fields."""
    if isinstance(names, Mapping) and not all(value is True or value is ... for value in names.values()):
        raise TypeError(f"{argument}: names within fields are not supported; pass the names of top-level fields")
    return None if names is None else frozenset(names)


def _is_chosen(name: Any, include: frozenset[Any] | None, exclude: frozenset[Any]) -> bool:
    """Return whether a dump includes a field."""
    return name not in exclude and (include is None or name in include)
