"""The rules of single keywords in a proof that one schema accepts every value of another."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from .merging import kinds_of, longest_array, may_have, property_schema
from .patterns import is_included

Json = dict[str, Any]

WIDER_FORMATS = {
    **{"email": {"idn-email"}, "hostname": {"idn-hostname"}, "float": {"double"}},
    **{"uri": {"uri-reference", "iri", "iri-reference"}, "uri-reference": {"iri-reference"}, "iri": {"iri-reference"}},
}
NUMBERS = frozenset({"integer", "fraction"})
STRINGS, ARRAYS, OBJECTS = frozenset({"string"}), frozenset({"array"}), frozenset({"object"})


@dataclass(frozen=True)
class Failure:
    """A keyword that the proof does not show to hold, and the property that it concerns, if it is one."""

    keyword: str
    name: str = ""


class Prover(Protocol):
    """The part of the prover that the rules use."""

    @property
    def reverse(self) -> Prover:
        """The prover of the other direction."""
        ...

    def proves(self, inner: Any, outer: Any) -> bool:
        """Report whether ``outer`` is shown to accept all values of ``inner``."""
        ...

    def accepts(self, outer: Any, value: Any) -> bool:
        """Report whether an outer schema accepts a value."""
        ...


Check = Callable[[Prover, Json, Json], Iterator[Failure]]


@dataclass(frozen=True)
class Rule:
    """The rule of one keyword, and the kinds of values that it concerns; all kinds if it has none."""

    check: Check
    kinds: frozenset[str] | None = None


def _parts(schema: Json, keyword: str) -> list[Json]:
    return [part for part in schema.get("allOf", []) if keyword in part]


def _nothing(prover: Prover, inner: Json, outer: Json) -> Iterator[Failure]:
    """Yield nothing, for a keyword that the prover compares itself."""
    yield from ()


def _bound(keyword: str) -> Check:
    sign = 1 if keyword in ("minimum", "exclusiveMinimum") else -1
    plain, exclusive = ("minimum", "exclusiveMinimum") if sign == 1 else ("maximum", "exclusiveMaximum")

    def check(prover: Prover, inner: Json, outer: Json) -> Iterator[Failure]:
        limit = sign * outer[keyword]
        low, above = sign * inner.get(plain, -sign * math.inf), sign * inner.get(exclusive, -sign * math.inf)
        if "fraction" not in kinds_of(inner):
            # Integers above 3 are at least 4.
            low = max(low if math.isinf(low) else math.ceil(low), above if math.isinf(above) else math.floor(above) + 1)
        holds = max(low, above) >= limit if keyword == plain else low > limit or above >= limit
        if not holds:
            yield Failure(keyword)

    return check


def _multiple(prover: Prover, inner: Json, outer: Json) -> Iterator[Failure]:
    step = Fraction(str(outer["multipleOf"]))
    known = [Fraction(str(part["multipleOf"])) for part in _parts(inner, "multipleOf")]
    if "fraction" not in kinds_of(inner):
        known.append(Fraction(1))
    if not any((factor / step).denominator == 1 for factor in known):
        yield Failure("multipleOf")


def _size(keyword: str) -> Check:
    def check(prover: Prover, inner: Json, outer: Json) -> Iterator[Failure]:
        known = inner.get(keyword, 0 if keyword.startswith("min") else math.inf)
        if keyword == "maxItems":
            known = longest_array(inner)
        elif keyword == "minProperties":
            known = max(known, len(inner.get("required", [])))
        elif keyword == "maxProperties" and inner.get("additionalProperties") is False:
            known = min(known, math.inf if "patternProperties" in inner else len(inner.get("properties", {})))
        if known < outer[keyword] if keyword.startswith("min") else known > outer[keyword]:
            yield Failure(keyword)

    return check


def _pattern(prover: Prover, inner: Json, outer: Json) -> Iterator[Failure]:
    if not is_included([part["pattern"] for part in _parts(inner, "pattern")], outer["pattern"]):
        yield Failure("pattern")


def _format(prover: Prover, inner: Json, outer: Json) -> Iterator[Failure]:
    known = {part["format"] for part in _parts(inner, "format")}
    wider = {name for part in known for name in WIDER_FORMATS.get(part, ())}
    of_numbers = outer["format"] in ("float", "double")
    if outer["format"] not in known | wider and kinds_of(inner) & (NUMBERS if of_numbers else STRINGS | NUMBERS):
        yield Failure("format")


def _same(keyword: str) -> Check:
    def check(prover: Prover, inner: Json, outer: Json) -> Iterator[Failure]:
        if not any(part[keyword] == outer[keyword] for part in _parts(inner, keyword)):
            yield Failure(keyword)

    return check


def _content_schema(prover: Prover, inner: Json, outer: Json) -> Iterator[Failure]:
    if not any(prover.proves(part["contentSchema"], outer["contentSchema"]) for part in _parts(inner, "contentSchema")):
        yield Failure("contentSchema")


def _unique(prover: Prover, inner: Json, outer: Json) -> Iterator[Failure]:
    if outer["uniqueItems"] and not inner.get("uniqueItems") and longest_array(inner) > 1:
        yield Failure("uniqueItems")


def _contains(prover: Prover, inner: Json, outer: Json) -> Iterator[Failure]:
    schema, least, most = outer["contains"], outer.get("minContains", 1), outer.get("maxContains", math.inf)
    parts = _parts(inner, "contains")
    has_enough = least == 0 or any(
        part.get("minContains", 1) >= least and prover.proves(part["contains"], schema) for part in parts
    )
    if not has_enough and not inner.get("prefixItems") and inner.get("minItems", 0) >= least:
        has_enough = prover.proves(inner.get("items", True), schema)
    if not has_enough:
        yield Failure("contains")
    has_few = longest_array(inner) <= most or any(
        part.get("maxContains", math.inf) <= most and prover.reverse.proves(schema, part["contains"]) for part in parts
    )
    if not has_few:
        yield Failure("maxContains")


def _required(prover: Prover, inner: Json, outer: Json) -> Iterator[Failure]:
    yield from (Failure("required", name) for name in outer["required"] if name not in inner.get("required", []))


def _dependent_required(prover: Prover, inner: Json, outer: Json) -> Iterator[Failure]:
    for trigger, names in outer["dependentRequired"].items():
        known = {*inner.get("required", [])}
        for part in _parts(inner, "dependentRequired"):
            known |= {*part["dependentRequired"].get(trigger, [])}
        if may_have(inner, trigger) and not known >= set(names):
            yield Failure("dependentRequired")


def _dependent_schemas(prover: Prover, inner: Json, outer: Json) -> Iterator[Failure]:
    for trigger, schema in outer["dependentSchemas"].items():
        known = [part["dependentSchemas"].get(trigger, True) for part in _parts(inner, "dependentSchemas")]
        if may_have(inner, trigger) and not any(prover.proves(part, schema) for part in [*known, inner]):
            yield Failure("dependentSchemas")


def _property_names(prover: Prover, inner: Json, outer: Json) -> Iterator[Failure]:
    schema = outer["propertyNames"]
    if any(
        prover.proves({"allOf": [part["propertyNames"], {"type": "string"}]}, schema)
        for part in [*_parts(inner, "propertyNames"), {"propertyNames": True}]
    ):
        return
    is_closed = inner.get("additionalProperties") is False and "patternProperties" not in inner
    names = [name for name in inner.get("properties", {}) if property_schema(inner, name) is not False]
    if not is_closed or not all(prover.accepts(schema, name) for name in names):
        yield Failure("propertyNames")


STRUCTURAL = (
    *("type", "enum", "const", "properties", "patternProperties", "additionalProperties", "items", "prefixItems"),
    *("anyOf", "oneOf", "allOf", "not", "if", "then", "else", "minContains", "maxContains"),
)
CONTENT_RULES: dict[str, Rule] = {
    **{keyword: Rule(_nothing) for keyword in STRUCTURAL},
    **{
        keyword: Rule(_bound(keyword), NUMBERS)
        for keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
    },
    **{keyword: Rule(_size(keyword), STRINGS) for keyword in ("minLength", "maxLength")},
    **{keyword: Rule(_size(keyword), ARRAYS) for keyword in ("minItems", "maxItems")},
    **{keyword: Rule(_size(keyword), OBJECTS) for keyword in ("minProperties", "maxProperties")},
    **{keyword: Rule(_same(keyword), STRINGS) for keyword in ("contentEncoding", "contentMediaType")},
    "multipleOf": Rule(_multiple, NUMBERS),
    "pattern": Rule(_pattern, STRINGS),
    "format": Rule(_format),
    "contentSchema": Rule(_content_schema, STRINGS),
    "uniqueItems": Rule(_unique, ARRAYS),
    "contains": Rule(_contains, ARRAYS),
    "required": Rule(_required, OBJECTS),
    "dependentRequired": Rule(_dependent_required, OBJECTS),
    "dependentSchemas": Rule(_dependent_schemas, OBJECTS),
    "propertyNames": Rule(_property_names, OBJECTS),
}
"""The rules by keyword; the proof understands no other keywords."""
