"""Small values that a schema takes, each of which tries one more thing: a property, an enum value, a bound, a null."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]

UNKNOWN_PROPERTY = "property_to_come"
"""Name of a property that no contract knows."""

ANYTHING: tuple[Any, ...] = (0, "a", None, [], {})
FORMATS = {"date-time": "2025-01-01T00:00:00Z", "date": "2025-01-01", "binary": ""}


class ExampleGenerator:
    """Makes values for the schemas of a document; numbers and texts of ``others`` are tried where they fit."""

    def __init__(self, document: Json, others: Iterable[Any] = ()) -> None:
        self._schemas: Json = document.get("components", {}).get("schemas", {})
        self._numbers: list[float] = []
        self._texts: list[str] = []
        for node in others:
            self._collect(node)
        self._known: dict[str, list[Any]] = {}

    def generate(self, schema: Any) -> list[Any]:
        """Values of a schema, the smallest first; not all need be valid where a schema contradicts itself."""
        if not isinstance(schema, dict) or not schema:
            return list(ANYTHING)
        if "$ref" in schema:
            return self._named(schema["$ref"].rpartition("/")[2])
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return _unique(value for member in schema[key] for value in self.generate(member))
        if "allOf" in schema:
            merged: Json = {}
            for part in schema["allOf"]:
                merged |= self._schemas.get(part.get("$ref", "").rpartition("/")[2], part)
            return self.generate(merged)
        if "const" in schema:
            return [schema["const"]]
        if "enum" in schema:
            return list(schema["enum"])
        kind = schema.get("type") or _implied(schema)
        kinds = kind if isinstance(kind, list) else [kind]
        return _unique(value for each in kinds for value in self._typed(each, schema))

    def _named(self, name: str) -> list[Any]:
        if name not in self._known:
            self._known[name] = []  # a schema inside itself adds nothing new
            self._known[name] = self.generate(self._schemas.get(name, {}))
        return self._known[name]

    def _typed(self, kind: Any, schema: Json) -> list[Any]:
        if kind == "object":
            return self._objects(schema)
        if kind == "array":
            return self._arrays(schema)
        if kind in ("integer", "number"):
            return self._counts(kind, schema)
        if kind == "string":
            return self._strings(schema)
        if kind == "boolean":
            return [False, True]
        return [None] if kind == "null" else list(ANYTHING)

    def _objects(self, schema: Json) -> list[Any]:
        properties = schema.get("properties", {})
        base = {name: (self.generate(properties.get(name, {})) or [None])[0] for name in schema.get("required", [])}
        found: list[Any] = [base]
        for name, detail in properties.items():
            found += [{**base, name: value} for value in self.generate(detail)]
        more = schema.get("additionalProperties", True)
        if isinstance(more, dict):
            found += [{**base, UNKNOWN_PROPERTY: value} for value in self.generate(more)]
        elif more:
            found.append({**base, UNKNOWN_PROPERTY: 0})
        return _unique(found)

    def _arrays(self, schema: Json) -> list[Any]:
        heads = [self.generate(part) for part in schema.get("prefixItems", [])]
        base = [values[0] for values in heads if values]
        least = max(schema.get("minItems", 0), 0)
        items = self.generate(schema.get("items", {})) if schema.get("items") is not False else []
        while items and len(base) < least:
            base.append(items[0])
        found: list[Any] = [] if heads and least == 0 and schema.get("items") is False else [base]
        found += [[], base] if heads and least == 0 else []
        for index, values in enumerate(heads):
            found += [[*base[:index], value, *base[index + 1 :]] for value in values]
        found += [[*base[: max(least - 1, len(heads))], value] for value in items]
        return _unique(found)

    def _counts(self, kind: str, schema: Json) -> list[Any]:
        low: Any = schema.get("minimum", schema.get("exclusiveMinimum", -math.inf))
        high: Any = schema.get("maximum", schema.get("exclusiveMaximum", math.inf))
        tries: list[Any] = [0, 1, -1, *(bound for bound in (low, high) if math.isfinite(bound))]
        tries += [point + step for point in self._numbers for step in (-1, 0, 1)]
        tries += [0.5] if kind == "number" else []
        whole = [each for each in tries if kind == "number" or float(each).is_integer()]
        return _unique(each for each in whole if low <= each <= high)

    def _strings(self, schema: Json) -> list[Any]:
        if schema.get("contentEncoding") == "base64":
            return ["YQ=="]
        if schema.get("format") in FORMATS:
            return [FORMATS[schema["format"]]]
        least = schema.get("minLength", 0)
        found = ["a" * max(least, 1), "a" * least, *self._texts]
        if "maxLength" in schema:
            found.append("a" * schema["maxLength"])
        return _unique(found)

    def _collect(self, node: Any) -> None:
        """Bounds and texts of another document's schemas, which show where the two differ."""
        if isinstance(node, dict):
            for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
                bound = node.get(key)
                if isinstance(bound, int | float) and -(2**62) < bound < 2**62 and bound not in self._numbers:
                    self._numbers.append(bound)
            for key in ("minLength", "maxLength"):
                if isinstance(node.get(key), int):
                    self._texts += ["a" * max(node[key] + step, 0) for step in (-1, 0, 1)]
            for item in node.values():
                self._collect(item)
        elif isinstance(node, list):
            for item in node:
                self._collect(item)


def _implied(schema: Json) -> str:
    return (
        "object" if "properties" in schema or "additionalProperties" in schema else "array" if "items" in schema else ""
    )


def _unique(values: Iterable[Any]) -> list[Any]:
    """The values without repetitions, in order; 1, 1.0 and true are three."""
    return list({json.dumps(value, sort_keys=True): value for value in values}.values())
