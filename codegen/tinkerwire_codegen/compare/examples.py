"""Small example values of a schema; each tries one more thing: a property, an enum value, a bound, a null."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from .merging import (
    both,
    item_schema,
    kind_of,
    kinds_of,
    list_conjuncts,
    may_have,
    merge_conjuncts,
    property_schema,
)
from .patterns import list_texts

Json = dict[str, Any]

UNKNOWN_PROPERTY = "property_to_come"
"""Name of a property that no contract knows."""

UNKNOWN_PROPERTIES = (UNKNOWN_PROPERTY, *(f"{UNKNOWN_PROPERTY}_{index}" for index in range(2, 40)))

ANYTHING: tuple[Any, ...] = (0, "a", None, [], {}, 0.5, True, {"a": 0}, [0])
TEXTS = ("a", "", "A b", "é%{", "0", "2025-01-01")
FORMATS = {
    **{"date-time": "2025-01-01T00:00:00Z", "date": "2025-01-01", "time": "00:00:00Z", "duration": "P1D"},
    **{"email": "a@example.com", "idn-email": "a@example.com", "hostname": "example.com"},
    **{"idn-hostname": "example.com", "ipv4": "127.0.0.1", "ipv6": "::1", "uri": "https://example.com/"},
    **{"uri-reference": "/a", "iri": "https://example.com/", "iri-reference": "/a", "uri-template": "/{a}"},
    **{"uuid": "00000000-0000-4000-8000-000000000000", "json-pointer": "/a", "relative-json-pointer": "0"},
    **{"regex": "a", "url": "https://example.com/"},
}
ENCODED = {"base64": ("YQ==", "", "+/+/"), "base64url": ("YQ", "", "-_-_")}
MAX_VALUES = 160
MAX_SIZE = 3000
MAX_STEPS = 2**53
MAX_NODES = 400
SMALL_OBJECT = 12


@dataclass
class Hints:
    """Numbers, texts and names at which two schemas may differ."""

    numbers: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    patterns: list[str] = field(default_factory=list)


class ExampleGenerator:
    """Generator of example values for the schemas of a document."""

    def __init__(self, resolve: Callable[[str], Any]) -> None:
        """Initialize with the function that returns the target of a reference."""
        self._resolve = resolve
        self._known: dict[str, list[Any]] = {}
        self._open: set[str] = set()

    def generate(self, schema: Any, hints: Hints | None = None, depth: int = 2) -> list[Any]:
        """Generate values of a schema; if it has rules that exclude each other, some may be invalid.

        Below ``depth`` levels each place has one value only.
        """
        if hints is not None:
            return self._generate(schema, hints, depth)
        key = json.dumps([depth, schema], sort_keys=True)
        if key not in self._known:
            if key in self._open:
                return []  # a schema inside itself adds nothing new
            self._open.add(key)
            self._known[key] = self._generate(schema, Hints(), depth)
            self._open.discard(key)
        return self._known[key]

    def smallest(self, schema: Any) -> list[Any]:
        """Return a list of one small value, or of none."""
        return self.generate(schema, depth=0)[:1]

    def collect_hints(self, *nodes: Any) -> Hints:
        """Collect the numbers, lengths, names and values that occur in schemas, and in what they refer to closely."""
        hints, todo, count = Hints(), [(node, 0) for node in nodes], 0
        while todo and count < MAX_NODES:
            (node, depth), count = todo.pop(0), count + 1
            if isinstance(node, list):
                todo += [(item, depth) for item in node]
            elif isinstance(node, dict):
                _collect(node, hints)
                if "$ref" in node and depth < 2:
                    todo.append((self._resolve(node["$ref"]), depth + 1))
                todo += [
                    (item, depth)
                    for key, item in node.items()
                    if isinstance(item, dict | list) and key not in ("enum", "const")
                ]
        return hints

    def _generate(self, schema: Any, hints: Hints, depth: int) -> list[Any]:
        merged = merge_conjuncts(list_conjuncts(schema, self._resolve))
        if merged is False:
            return []
        parts = merged.get("allOf", [])
        for part in parts:
            choices = _choices(part)
            if choices:
                rest = {**merged, "allOf": [other for other in parts if other is not part]}
                values: list[Any] = []
                for choice in choices:
                    if not (values and depth <= 0):
                        values += self.generate(both(rest, choice), hints if depth > 0 else None, depth)
                return _unique(values)[:MAX_VALUES]
        if "enum" in merged:
            return list(merged["enum"])
        kinds = merged["type"]
        if depth <= 0 and len(kinds) == 7 - 1:
            return [0]
        found = [value for kind in sorted(kinds, key=_simplicity) for value in self._typed(kind, merged, hints, depth)]
        extra = [value for value in hints.values if _fits(value, merged)] if depth > 0 else []
        return _unique([*found, *extra])[:MAX_VALUES]

    def _typed(self, kind: str, schema: Json, hints: Hints, depth: int) -> list[Any]:
        if kind == "object":
            return self._objects(schema, hints, depth)
        if kind == "array":
            return self._arrays(schema, hints, depth)
        if kind in ("integer", "number"):
            return _numbers(kind, schema, hints)
        if kind == "string":
            return _strings(schema, hints)
        return [False, True] if kind == "boolean" else [None]

    def _objects(self, schema: Json, hints: Hints, depth: int) -> list[Any]:
        base: Json = {}
        for name in schema.get("required", []):
            base |= dict(zip([name], self.smallest(property_schema(schema, name)), strict=False))
        names = self._spare_names(schema)
        for _ in range(min(schema.get("minProperties", 0), 50) - len(base)):
            name = next((name for name in names if name not in base), None)
            if name is not None:
                base |= dict(zip([name], self.smallest(property_schema(schema, name)), strict=False))
        if depth <= 0:
            return [base]
        examples: list[Any] = [base]
        known = schema.get("properties", {})
        declared = {name: value for name in known for value in self.smallest(property_schema(schema, name))}
        filler = {name: value for name in names[:60] for value in self.smallest(property_schema(schema, name))}
        for size in hints.sizes:
            if len(base) < size <= len({**base, **filler}):
                spare = [name for name in filler if name not in base][: size - len(base)]
                examples.append({**base, **{name: filler[name] for name in spare}})
        examples.append({**base, **declared})
        is_small = len(known) <= SMALL_OBJECT
        for name in dict.fromkeys([*known, *hints.names, *names]):
            if name in known or name == UNKNOWN_PROPERTY or (name not in UNKNOWN_PROPERTIES and may_have(schema, name)):
                values = self.generate(property_schema(schema, name), hints if is_small else None, depth - 1)
                examples += [{**base, name: value} for value in values]
                examples += [{**base, **declared, name: value} for value in values] if is_small else []
        return _unique(examples)[: MAX_VALUES * 3]

    def _spare_names(self, schema: Json) -> list[str]:
        """Return names that an object may have beside its required ones, those of its properties first."""
        names = list(schema.get("properties", {}))
        for pattern in schema.get("patternProperties", {}):
            names += list_texts([pattern], None, 3)
        for part in schema.get("allOf", []):
            if "propertyNames" in part:
                names += [
                    str(value) for value in self.generate(part["propertyNames"], None, 1) if isinstance(value, str)
                ]
        return [*names, *UNKNOWN_PROPERTIES]

    def _arrays(self, schema: Json, hints: Hints, depth: int) -> list[Any]:
        minimum = min(schema.get("minItems", 0), 300)
        maximum = schema.get("maxItems", math.inf)
        prefix = schema.get("prefixItems", [])
        firsts = [values[0] for part in prefix if (values := self.generate(part, None, 0))]
        rest = self.generate(schema.get("items", True), None, max(depth - 1, 0))
        contained = [
            value
            for part in schema.get("allOf", [])
            if "contains" in part
            for value in self.smallest(part["contains"]) * part.get("minContains", 1)
        ]

        def fill(size: int) -> list[Any]:
            spare = _distinct(rest, size)
            return [*firsts[:size], *contained, *spare][:size] if size > len(firsts) else firsts[:size]

        base = fill(max(minimum, len(contained) and len(firsts) + len(contained)))
        if depth <= 0:
            return [base]
        sizes = {
            size
            for size in (0, 1, 2, len(prefix), len(prefix) + 1, *hints.sizes)
            if minimum <= size <= min(maximum, 300)
        }
        examples = [base, *(fill(size) for size in sorted(sizes))]
        width = max(minimum, 1)
        for index, part in enumerate(prefix):
            whole = fill(max(width, index + 1))
            examples += [[*whole[:index], value, *whole[index + 1 :]] for value in self.generate(part, None, depth - 1)]
        place = max(minimum - 1, len(firsts))
        examples += [[*fill(place), value] for value in rest]
        examples += [[*fill(place), value] for value in contained]
        for value in rest[:3]:
            examples += [
                [*firsts, *[value] * size]
                for size in {2, max(minimum, 2), *(s for s in hints.sizes if s < 300)}
                if size > 1
            ]
        return _unique(example for example in examples if minimum <= len(example) <= maximum)[: MAX_VALUES * 3]


def embed(generator: ExampleGenerator, steps: Iterable[tuple[Json, str | int]], value: Any) -> Any:
    """Return a value of the outermost schema that has ``value`` at the end of the steps, each a schema and a key."""
    for schema, key in reversed(list(steps)):
        if isinstance(key, str):
            base = (generator._objects(schema, Hints(), 0) or [{}])[0]
            value = {**base, key: value}
        else:
            items = [item for index in range(key) for item in generator.smallest(item_schema(schema, index))][:key]
            tail = [
                item
                for index in range(key + 1, min(schema.get("minItems", 0), 300))
                for item in generator.smallest(item_schema(schema, index))
            ]
            value = [*items, value, *tail]
    return value


def _choices(part: Json) -> list[Any]:
    for key in ("anyOf", "oneOf"):
        if key in part:
            return list(part[key])
    if "if" in part:
        return [both(part["if"], part.get("then", True)), both({"not": part["if"]}, part.get("else", True))]
    return []


def _numbers(kind: str, schema: Json, hints: Hints) -> list[Any]:
    low = max(schema.get("minimum", -math.inf), schema.get("exclusiveMinimum", -math.inf))
    high = min(schema.get("maximum", math.inf), schema.get("exclusiveMaximum", math.inf))
    bounds = [bound for bound in (low, high) if math.isfinite(bound)]
    steps = [part["multipleOf"] for part in schema.get("allOf", []) if "multipleOf" in part]
    points = [*bounds, *hints.numbers]
    candidates: list[Any] = [0, 1, -1, *points, *(point + step for point in points for step in (-1, 1))]
    if kind == "number":
        candidates += [0.5, 0.1, *(point + step for point in points for step in (-0.5, 0.5, -0.1, 0.1))]
    for step in steps:
        points = [point for point in points if abs(point / step) < MAX_STEPS]
        near = [math.ceil(point / step) for point in bounds if abs(point / step) < MAX_STEPS] or [0]
        candidates += [step * factor for start in near for factor in range(start - 2, start + 4)]
        candidates += [step * math.floor(point / step) for point in points if step]
    if math.isfinite(low) and math.isfinite(high):
        candidates.append((low + high) / 2)
    whole = [number for number in candidates if kind == "number" or float(number).is_integer()]
    exact = [int(number) if isinstance(number, float) and number.is_integer() else number for number in whole]
    return _unique(number for number in exact if low <= number <= high)


def _strings(schema: Json, hints: Hints) -> list[Any]:
    parts = schema.get("allOf", [])
    patterns = [part["pattern"] for part in parts if "pattern" in part]
    minimum, maximum = min(schema.get("minLength", 0), MAX_SIZE), schema.get("maxLength", math.inf)
    examples: list[Any] = [FORMATS[part["format"]] for part in parts if part.get("format") in FORMATS]
    examples += [text for part in parts for text in ENCODED.get(part.get("contentEncoding", ""), ())]
    examples += list_texts(patterns) if patterns else []
    for pattern in hints.patterns:
        examples += list_texts([*patterns], pattern, 4) if patterns else list_texts([], pattern, 4)
    sizes = [max(minimum, 1), minimum, *([maximum] if math.isfinite(maximum) else []), *hints.sizes]
    examples += ["a" * size for size in sizes if size <= MAX_SIZE]
    examples += [*TEXTS, *FORMATS.values(), *(text for texts in ENCODED.values() for text in texts)]
    return _unique(text for text in examples if minimum <= len(text) <= maximum)


def _distinct(values: list[Any], size: int) -> list[Any]:
    """Return values that differ as long as it is easy, and then the first one again."""
    result = list(values[:size])
    numbers = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
    texts = [value for value in values if isinstance(value, str)]
    while values and len(result) < size:
        if numbers:
            numbers.append(max(numbers) + 1)
            result.append(numbers[-1])
        elif texts:
            texts.append(f"{texts[0]}{len(texts)}")
            result.append(texts[-1])
        else:
            result.append(values[0])
    return result


def _collect(node: Json, hints: Hints) -> None:
    for key, item in node.items():
        is_number = isinstance(item, int | float) and not isinstance(item, bool)
        if key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf") and is_number:
            hints.numbers.append(item)
        elif key.startswith(("min", "max")) and is_number:
            hints.sizes += [max(int(item) + step, 0) for step in (-1, 0, 1) if int(item) + step <= MAX_SIZE]
        elif key == "prefixItems" and isinstance(item, list):
            hints.sizes += [len(item), len(item) + 1]
        elif key == "const":
            hints.values.append(item)
        elif key == "enum" and isinstance(item, list):
            hints.values += item
        elif key in ("properties", "dependentRequired", "dependentSchemas") and isinstance(item, dict):
            hints.names += item
        elif key == "patternProperties" and isinstance(item, dict):
            hints.names += [text for pattern in item for text in list_texts([pattern], None, 2)]
        elif key == "pattern" and isinstance(item, str):
            hints.patterns.append(item)


def _fits(value: Any, schema: Json) -> bool:
    return kind_of(value) in kinds_of(schema)


def _simplicity(kind: str) -> int:
    return ("integer", "number", "string", "boolean", "array", "object", "null").index(kind)


def is_base64(text: str) -> bool:
    """Report whether a text is base64 with its padding."""
    return re.fullmatch(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", text) is not None


def is_base64url(text: str) -> bool:
    """Report whether a text is base64 for URLs, with or without its padding."""
    return re.fullmatch(r"(?:[\w-]{4})*(?:[\w-]{2}(?:==)?|[\w-]{3}=?)?", text, re.ASCII) is not None


def _unique(values: Iterable[Any]) -> list[Any]:
    """Remove repetitions and keep the order; 1, 1.0 and true are different values."""
    return list({json.dumps(value, sort_keys=True): value for value in values}.values())
