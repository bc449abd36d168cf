"""Keywords with values that JSON Schema does not allow; real documents have some."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jsonschema_rs

Json = dict[str, Any]

TYPES = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})


def rename_malformed(schema: Json) -> Json:
    """Return a schema whose malformed keywords have names that no validator knows.

    The comparison does not understand such names, so it reports a change of them as that.
    """
    return {
        f"{key} (malformed)" if key in CHECKS and not CHECKS[key](item) else key: item for key, item in schema.items()
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_size(value: Any) -> bool:
    return _is_number(value) and value >= 0 and float(value).is_integer()


def _is_schema(value: Any) -> bool:
    return isinstance(value, dict | bool)


def _are_schemas(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_schema, value))


def _is_map(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_schema, value.values()))


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value) and len(set(value)) == len(value)


def _is_type(value: Any) -> bool:
    return value in TYPES if isinstance(value, str) else _are_texts(value) and bool(value) and TYPES.issuperset(value)


@lru_cache(maxsize=4096)
def _is_pattern(value: Any) -> bool:
    try:
        jsonschema_rs.Draft202012Validator({"pattern": value})
    except (jsonschema_rs.ValidationError, ValueError):
        return False
    return isinstance(value, str)


CHECKS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _is_size),
    **dict.fromkeys(("minContains", "maxContains"), _is_size),
    **dict.fromkeys(("anyOf", "oneOf", "allOf", "prefixItems"), _are_schemas),
    **dict.fromkeys(("items", "additionalProperties", "not", "if", "then", "else", "contains"), _is_schema),
    **dict.fromkeys(("propertyNames", "unevaluatedItems", "unevaluatedProperties", "contentSchema"), _is_schema),
    **dict.fromkeys(("properties", "dependentSchemas", "$defs"), _is_map),
    **dict.fromkeys(("format", "contentEncoding", "contentMediaType", "$ref"), lambda value: isinstance(value, str)),
    "multipleOf": lambda value: _is_number(value) and value > 0,
    "uniqueItems": lambda value: isinstance(value, bool),
    "enum": lambda value: isinstance(value, list),
    "required": _are_texts,
    "type": _is_type,
    "pattern": _is_pattern,
    "patternProperties": lambda value: _is_map(value) and all(map(_is_pattern, value)),
    "dependentRequired": lambda value: isinstance(value, dict) and all(map(_are_texts, value.values())),
}
"""The checks of keywords by name."""
