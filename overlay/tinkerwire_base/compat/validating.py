"""Validation of dicts by the rules of pydantic's ``model_validate``, and construction without validation."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from datetime import date
from functools import cache
from typing import Any, TypeVar

import attrs

from ..conversion.converter import Converter
from ..reflection import default_of, field_name

T = TypeVar("T")


def validate(cls: type[T], value: Any, *, from_attributes: bool) -> T:
    """Return the model of a dict.

    Raises:
        ValueError: a value does not fit.
    """
    if from_attributes and not isinstance(value, Mapping | cls):
        names = (field_name(attribute) for attribute in attrs.fields(cls))  # type: ignore[arg-type]
        value = {name: getattr(value, name) for name in names if hasattr(value, name)}
    model: T = _converter().structure(_as_json(value), cls)
    return model


def construct(cls: type[T], values: Mapping[str, Any]) -> T:
    """Make a model of these values and defaults without validation."""
    found = cls.__new__(cls)
    for attribute in attrs.fields(cls):  # type: ignore[arg-type]
        if field_name(attribute) in values:
            object.__setattr__(found, attribute.name, values[field_name(attribute)])
        elif attribute.default is not attrs.NOTHING:
            object.__setattr__(found, attribute.name, default_of(attribute))
    return found


@cache
def _converter() -> Converter:
    return Converter(is_whole=True)


def _as_json(value: Any) -> Any:
    """Return the values of Python code as JSON values; arrays do not change."""
    if isinstance(value, Mapping):
        return {key: _as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return list(value) if set(map(type, value)) <= {int, float, str} else [_as_json(item) for item in value]
    if isinstance(value, date):
        return value.isoformat()
    return b64encode(value).decode() if isinstance(value, bytes) else value
