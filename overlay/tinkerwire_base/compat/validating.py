"""Validation of dicts by the rules of pydantic's ``model_validate``, and schemas for pydantic."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from datetime import date
from functools import cache
from typing import Any, TypeVar

from ..conversion.converter import Converter

T = TypeVar("T")


def validate(cls: type[T], value: Any) -> T:
    """Return the model of a dict.

    Raises:
        ValueError: a value does not fit.
    """
    model: T = _converter().structure(_as_json(value), cls)
    return model


def core_schema(cls: Any) -> Any:
    """Return the core schema of a model: ``model_validate`` reads it, ``model_dump`` writes it."""
    from pydantic_core import core_schema as core  # noqa: PLC0415  (pydantic is calling)

    def write(value: Any, info: Any) -> Any:
        return value.model_dump(mode=info.mode, exclude_none=info.exclude_none, exclude_defaults=info.exclude_defaults)

    def read(value: Any) -> Any:
        try:
            return cls.model_validate(value)
        except TypeError as error:
            raise ValueError(str(error)) from None

    return core.no_info_plain_validator_function(
        read, serialization=core.plain_serializer_function_ser_schema(write, info_arg=True)
    )


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
