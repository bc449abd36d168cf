"""Strategies for JSON values of a schema, with exactly the keywords that the contract uses.

Beyond the keywords they follow the contract's prose: a tensor's data fits its dtype and shape.
"""

from __future__ import annotations

from base64 import b64encode
from datetime import datetime, timezone
from functools import cache
from typing import Any

from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tinkerwire_base.conversion.versioning import is_marked_protobuf_only
from tinkerwire_base.timestamps import parse_timestamp

Json = dict[str, Any]
Strategy = st.SearchStrategy[Any]

PREFIX = "#/components/schemas/"
NAMES = st.text("abcxyz_-é", min_size=1, max_size=6)
MOMENTS = st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1), timezones=st.just(timezone.utc))
ANYTHING = (
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4) | st.lists(st.integers(-9, 9), max_size=2)
)
KNOWN = frozenset(
    {"$ref", "type", "const", "enum", "anyOf", "discriminator", "properties", "required", "additionalProperties"}
    | {"items", "prefixItems", "minItems", "maxItems", "minimum", "maximum", "format", "contentEncoding", "default"}
    | {"exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength"}
    | {"description", "x-array", "x-mixin", "x-dataclass", "x-undeclared", "x-sdk-name", "x-protobuf-only"}
    | {"x-essential", "x-untagged", "x-example", "x-constants"}
)


class Instances:
    """Strategies, validators and meanings of the schemas of one plain document."""

    def __init__(self, document: Json) -> None:
        self.schemas: Json = document["components"]["schemas"]
        self._strategies: dict[str, Strategy] = {}
        self.validator = cache(self._validator)

    def of(self, name: str, *, unknown_keys: bool = True) -> Strategy:
        """Return a strategy for a named schema; open objects get unknown keys unless disabled."""
        key = f"{name} {unknown_keys}"
        if key not in self._strategies:
            self._strategies[key] = st.deferred(lambda: self._by(self.schemas[name], unknown_keys))
        return self._strategies[key]

    def is_valid(self, name: str, value: Any) -> bool:
        """Return whether a value fits a named schema."""
        return bool(self.validator(name).is_valid(value))

    def meaning(self, schema: Json, value: Any) -> Any:
        """Reduce a value to its meaning: null, default and absent become equal, times become datetimes."""
        schema = self._resolved(schema)
        if "anyOf" in schema:
            fitting = [self._resolved(m) for m in schema["anyOf"] if self._inline(m).is_valid(value)]
            # Among several objects without a tag, the object with most of the keys.
            keys = value.keys() if isinstance(value, dict) else set()
            return self.meaning(max(fitting, key=lambda m: len(keys & m.get("properties", {}).keys())), value)
        if isinstance(value, dict):
            known, required = schema.get("properties", {}), schema.get("required", [])
            rest = schema.get("additionalProperties")
            parts = {key: known.get(key, rest if isinstance(rest, dict) else {}) for key in value}
            found = {key: self.meaning(part, value[key]) for key, part in parts.items()}
            return {
                key: item
                for key, item in found.items()
                if key in required or (item is not None and item != self._default(parts[key]))
            }
        if isinstance(value, list):
            each = schema.get("prefixItems") or [schema.get("items", {})] * len(value)
            return [self.meaning(part, item) for part, item in zip(each, value, strict=True)]
        return parse_timestamp(value) if schema.get("format") == "date-time" else value

    def _default(self, schema: Json) -> Any:
        default = self._resolved(schema).get("default")
        return self.meaning(schema, default) if isinstance(default, dict) else default

    def _validator(self, name: str) -> Draft202012Validator:
        return self._inline({"$ref": PREFIX + name})

    def _inline(self, schema: Json) -> Draft202012Validator:
        # References lead into the components, wherever the schema itself stands.
        return Draft202012Validator({**schema, "components": {"schemas": self.schemas}})

    def _resolved(self, schema: Json) -> Json:
        name = schema.get("$ref", "").removeprefix(PREFIX)
        return {**self._resolved(self.schemas[name]), **schema, "$ref": ""} if name else schema

    def _by(self, schema: Json, unknown_keys: bool) -> Strategy:
        assert schema.keys() <= KNOWN, f"{schema.keys() - KNOWN}: keywords that no strategy is made for"
        if schema.get("$ref"):
            return self.of(schema["$ref"].removeprefix(PREFIX), unknown_keys=unknown_keys)
        if "const" in schema:
            return st.just(schema["const"])
        if "enum" in schema:
            return st.sampled_from(schema["enum"])
        if "anyOf" in schema:
            tag = None if schema.get("x-untagged") else schema.get("discriminator", {}).get("propertyName")
            return self._any_of(schema["anyOf"], tag, unknown_keys)
        if schema.get("x-mixin") == "TensorDataMixin":
            return tensors() | sparse_matrices() if "sparse_crow_indices" in schema["properties"] else tensors()
        kind = schema.get("type")
        if isinstance(kind, list):
            return st.one_of([self._by({**schema, "type": each}, unknown_keys) for each in kind])
        return ANYTHING if kind is None else getattr(self, f"_{kind}")(schema, unknown_keys)

    def _any_of(self, members: list[Json], tag: str | None, unknown_keys: bool) -> Strategy:
        if tag is not None:
            members = [
                {**plain, "required": {tag, *plain.get("required", [])}} for plain in map(self._resolved, members)
            ]
        found = st.one_of([self._by(member, unknown_keys) for member in members])
        objects = [plain for plain in map(self._resolved, members) if plain.get("type") == "object"]
        known = {key for plain in objects for key in plain.get("properties", {})}
        # Unknown keys alone do not identify an object.
        blurred = len(objects) > 1 and unknown_keys
        return found.filter(lambda v: not isinstance(v, dict) or not v or known & v.keys()) if blurred else found

    def _object(self, schema: Json, unknown_keys: bool) -> Strategy:
        rest = schema.get("additionalProperties", True)
        if "properties" not in schema:
            return st.dictionaries(NAMES, self._by(rest, unknown_keys) if rest is not True else ANYTHING, max_size=3)
        properties = {
            name: detail for name, detail in schema["properties"].items() if not is_marked_protobuf_only(detail)
        }
        fields = {name: self._by(detail, unknown_keys) for name, detail in properties.items()}
        required = schema.get("required", [])
        known = st.fixed_dictionaries(
            {name: fields[name] for name in required},
            optional={name: field for name, field in fields.items() if name not in required},
        )
        if rest is False or not unknown_keys:
            return known
        unknown = st.dictionaries(NAMES.map("new-{}".format) | st.just("extra_fields"), ANYTHING, max_size=2)
        return st.builds(lambda more, own: {**more, **own}, unknown, known)

    def _array(self, schema: Json, unknown_keys: bool) -> Strategy:
        if "prefixItems" in schema:
            return st.tuples(*[self._by(item, unknown_keys) for item in schema["prefixItems"]]).map(list)
        least, most = schema.get("minItems", 0), schema.get("maxItems", 4)
        return st.lists(self._by(schema["items"], unknown_keys), min_size=least, max_size=most)

    def _string(self, schema: Json, _: bool) -> Strategy:
        if schema.get("format") == "date-time":
            return MOMENTS.map(datetime.isoformat) | MOMENTS.map(lambda m: m.replace(tzinfo=None).isoformat() + "Z")
        if schema.get("contentEncoding") == "base64":
            return st.binary(max_size=9).map(lambda data: b64encode(data).decode())
        return st.text(min_size=schema.get("minLength", 0), max_size=schema.get("maxLength", 8))

    def _integer(self, schema: Json, _: bool) -> Strategy:
        return st.integers(schema["minimum"], schema["maximum"])

    def _number(self, schema: Json, _: bool) -> Strategy:
        judge = Draft202012Validator(schema)
        least = max((schema[key] for key in ("minimum", "exclusiveMinimum") if key in schema), default=None)
        most = min((schema[key] for key in ("maximum", "exclusiveMaximum") if key in schema), default=None)
        floats = st.floats(least, most, allow_nan=False, allow_infinity=False)
        return (floats | st.integers(-9, 9)).filter(judge.is_valid)

    def _boolean(self, schema: Json, _: bool) -> Strategy:
        return st.booleans()

    def _null(self, schema: Json, _: bool) -> Strategy:
        return st.none()


@st.composite
def tensors(draw: st.DrawFn) -> Json:
    """Return a strategy for tensors whose data, dtype and shape agree."""
    dtype = draw(st.sampled_from(["int64", "float32"]))
    whole = st.integers(-(2**63), 2**63 - 1)
    data = draw(st.lists(whole if dtype == "int64" else st.floats(width=32, allow_nan=False, allow_infinity=False)))
    shapes: list[Any] = [None, [len(data)], [1, len(data)], [len(data), 1]]
    found = {"data": data, "dtype": dtype, "shape": draw(st.sampled_from(shapes))}
    return found if found["shape"] is not None or draw(st.booleans()) else {"data": data, "dtype": dtype}


@st.composite
def sparse_matrices(draw: st.DrawFn) -> Json:
    """Return a strategy for matrices in compressed rows with indices in range."""
    width = draw(st.integers(1, 3))
    rows = draw(st.lists(st.sets(st.integers(0, width - 1)).map(sorted), max_size=3))
    columns = [column for row in rows for column in row]
    starts = [sum(map(len, rows[:position])) for position in range(len(rows) + 1)]
    return {
        "data": draw(st.lists(st.integers(-9, 9), min_size=len(columns), max_size=len(columns))),
        "dtype": draw(st.sampled_from(["int64", "float32"])),
        "shape": [len(rows), width],
        "sparse_crow_indices": starts,
        "sparse_col_indices": columns,
    }
