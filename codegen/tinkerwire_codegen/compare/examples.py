"""Small example values of a schema; each tries one more thing: a property, an enum value, a bound, a null."""

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
    """Generator of example values for the schemas of a document.

    It also tries the numbers and strings of ``others`` where they fit.
    """

    def __init__(self, document: Json, others: Iterable[Any] = ()) -> None:
        """Initialize with the document, and documents whose numbers and strings are tried too."""
        self._schemas: Json = document.get("components", {}).get("schemas", {})
        self._numbers: list[float] = []
        self._texts: list[str] = []
        for node in others:
            self._collect(node)
        self._known: dict[str, list[Any]] = {}

    def generate(self, schema: Any) -> list[Any]:
        """Generate values of a schema, the smallest first; a schema that contradicts itself may give invalid ones."""
        if not isinstance(schema, dict) or not schema:
            return list(ANYTHING)
        if "$ref" in schema:
            return self._component(schema["$ref"].rpartition("/")[2])
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
        kind = schema.get("type") or _infer_type(schema)
        kinds = kind if isinstance(kind, list) else [kind]
        return _unique(value for type_name in kinds for value in self._typed(type_name, schema))

    def _component(self, name: str) -> list[Any]:
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
            return self._numbers_of(kind, schema)
        if kind == "string":
            return self._strings(schema)
        if kind == "boolean":
            return [False, True]
        return [None] if kind == "null" else list(ANYTHING)

    def _objects(self, schema: Json) -> list[Any]:
        properties = schema.get("properties", {})
        base = {name: (self.generate(properties.get(name, {})) or [None])[0] for name in schema.get("required", [])}
        examples: list[Any] = [base]
        for name, detail in properties.items():
            examples += [{**base, name: value} for value in self.generate(detail)]
        additional = schema.get("additionalProperties", True)
        if isinstance(additional, dict):
            examples += [{**base, UNKNOWN_PROPERTY: value} for value in self.generate(additional)]
        elif additional:
            examples.append({**base, UNKNOWN_PROPERTY: 0})
        return _unique(examples)

    def _arrays(self, schema: Json) -> list[Any]:
        prefix = [self.generate(part) for part in schema.get("prefixItems", [])]
        base = [values[0] for values in prefix if values]
        minimum = max(schema.get("minItems", 0), 0)
        items = self.generate(schema.get("items", {})) if schema.get("items") is not False else []
        while items and len(base) < minimum:
            base.append(items[0])
        examples: list[Any] = [] if prefix and minimum == 0 and schema.get("items") is False else [base]
        examples += [[], base] if prefix and minimum == 0 else []
        for index, values in enumerate(prefix):
            examples += [[*base[:index], value, *base[index + 1 :]] for value in values]
        examples += [[*base[: max(minimum - 1, len(prefix))], value] for value in items]
        return _unique(examples)

    def _numbers_of(self, kind: str, schema: Json) -> list[Any]:
        low: Any = schema.get("minimum", schema.get("exclusiveMinimum", -math.inf))
        high: Any = schema.get("maximum", schema.get("exclusiveMaximum", math.inf))
        candidates: list[Any] = [0, 1, -1, *(bound for bound in (low, high) if math.isfinite(bound))]
        candidates += [point + step for point in self._numbers for step in (-1, 0, 1)]
        candidates += [0.5] if kind == "number" else []
        allowed = [number for number in candidates if kind == "number" or float(number).is_integer()]
        return _unique(number for number in allowed if low <= number <= high)

    def _strings(self, schema: Json) -> list[Any]:
        if schema.get("contentEncoding") == "base64":
            return ["YQ=="]
        if schema.get("format") in FORMATS:
            return [FORMATS[schema["format"]]]
        minimum = schema.get("minLength", 0)
        examples = ["a" * max(minimum, 1), "a" * minimum, *self._texts]
        if "maxLength" in schema:
            examples.append("a" * schema["maxLength"])
        return _unique(examples)

    def _collect(self, node: Any) -> None:
        """Collect bounds and string lengths of another document's schemas, where two contracts may differ."""
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


def _infer_type(schema: Json) -> str:
    return (
        "object" if "properties" in schema or "additionalProperties" in schema else "array" if "items" in schema else ""
    )


def _unique(values: Iterable[Any]) -> list[Any]:
    """Remove repetitions and keep the order; 1, 1.0 and true are different values."""
    return list({json.dumps(value, sort_keys=True): value for value in values}.values())
