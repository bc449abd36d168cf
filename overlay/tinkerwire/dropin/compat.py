"""Functions of the official SDK that scripts about serialization import."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PYDANTIC_V2 = True
"""Models have the methods of pydantic 2."""


def get_model_fields(model: type[Any]) -> Mapping[str, Any]:
    """Return ``model.model_fields``."""
    fields: Mapping[str, Any] = model.model_fields
    return fields


def model_copy(model: Any, *, deep: bool = False) -> Any:
    """Return ``model.model_copy``, with its options."""
    return model.model_copy(deep=deep)


def model_dump(model: Any, **options: Any) -> dict[str, Any]:
    """Return ``model.model_dump``, with its options."""
    values: dict[str, Any] = model.model_dump(**options)
    return values


def model_json(model: Any, *, indent: int | None = None) -> str:
    """Return ``model.model_dump_json``."""
    text: str = model.model_dump_json(indent=indent)
    return text


def model_parse(model: type[Any], data: Any) -> Any:
    """Return ``model.model_validate`` of data."""
    return model.model_validate(data)


def parse_obj(model: type[Any], value: object) -> Any:
    """Return ``model.model_validate`` of a value."""
    return model.model_validate(value)
