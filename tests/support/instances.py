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
JSON_VALUES = (
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4) | st.lists(st.integers(-9, 9), max_size=2)
)
KEYWORDS = frozenset(
    {"$ref", "type", "const", "enum", "anyOf", "discriminator", "properties", "required", "additionalProperties"}
    | {"items", "prefixItems", "minItems", "maxItems", "minimum", "maximum", "format", "contentEncoding", "default"}
    | {"exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength"}
    | {"description", "x-array", "x-mixin", "x-dataclass", "x-undeclared", "x-sdk-name", "x-protobuf-only"}
    | {"deprecated", "x-stated", "x-essential", "x-untagged", "x-example", "x-constants"}
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
            self._strategies[key] = st.deferred(lambda: self._make_strategy(self.schemas[name], unknown_keys))
        return self._strategies[key]

    def is_valid(self, name: str, value: Any) -> bool:
        """Return whether a value fits a named schema."""
        return bool(self.validator(name).is_valid(value))

    def meaning(self, schema: Json, value: Any) -> Any:
        """Reduce a value to its meaning: null, default and absent become equal, times become datetimes."""
        schema = self._resolve(schema)
        if "anyOf" in schema:
            fitting = [self._resolve(m) for m in schema["anyOf"] if self._inline(m).is_valid(value)]
            # Among several objects without a tag, the object with most of the keys.
            keys = value.keys() if isinstance(value, dict) else set()
            return self.meaning(max(fitting, key=lambda m: len(keys & m.get("properties", {}).keys())), value)
        if isinstance(value, dict):
            properties, required = schema.get("properties", {}), schema.get("required", [])
            additional = schema.get("additionalProperties")
            parts = {key: properties.get(key, additional if isinstance(additional, dict) else {}) for key in value}
            meanings = {key: self.meaning(part, value[key]) for key, part in parts.items()}
            return {
                key: item
                for key, item in meanings.items()
                if key in required or (item is not None and item != self._default(parts[key]))
            }
        if isinstance(value, list):
            item_schemas = schema.get("prefixItems") or [schema.get("items", {})] * len(value)
            return [self.meaning(part, item) for part, item in zip(item_schemas, value, strict=True)]
        return parse_timestamp(value) if schema.get("format") == "date-time" else value

    def _default(self, schema: Json) -> Any:
        default = self._resolve(schema).get("default")
        return self.meaning(schema, default) if isinstance(default, dict) else default

    def _validator(self, name: str) -> Draft202012Validator:
        return self._inline({"$ref": PREFIX + name})

    def _inline(self, schema: Json) -> Draft202012Validator:
        # References lead into the components, wherever the schema itself stands.
        return Draft202012Validator({**schema, "components": {"schemas": self.schemas}})

    def _resolve(self, schema: Json) -> Json:
        name = schema.get("$ref", "").removeprefix(PREFIX)
        return {**self._resolve(self.schemas[name]), **schema, "$ref": ""} if name else schema

    def _make_strategy(self, schema: Json, unknown_keys: bool) -> Strategy:
        assert schema.keys() <= KEYWORDS, f"{schema.keys() - KEYWORDS}: keywords that no strategy is made for"
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
            return st.one_of([self._make_strategy({**schema, "type": type_name}, unknown_keys) for type_name in kind])
        return JSON_VALUES if kind is None else getattr(self, f"_{kind}")(schema, unknown_keys)

    def _any_of(self, members: list[Json], tag: str | None, unknown_keys: bool) -> Strategy:
        if tag is not None:
            members = [
                {**member, "required": {tag, *member.get("required", [])}} for member in map(self._resolve, members)
            ]
        strategy = st.one_of([self._make_strategy(member, unknown_keys) for member in members])
        objects = [member for member in map(self._resolve, members) if member.get("type") == "object"]
        known_keys = {key for member in objects for key in member.get("properties", {})}
        # Unknown keys alone do not identify an object.
        blurred = len(objects) > 1 and unknown_keys
        if not blurred:
            return strategy
        return strategy.filter(lambda v: not isinstance(v, dict) or not v or known_keys & v.keys())

    def _object(self, schema: Json, unknown_keys: bool) -> Strategy:
        additional = schema.get("additionalProperties", True)
        if "properties" not in schema:
            values = self._make_strategy(additional, unknown_keys) if additional is not True else JSON_VALUES
            return st.dictionaries(NAMES, values, max_size=3)
        properties = {
            name: detail for name, detail in schema["properties"].items() if not is_marked_protobuf_only(detail)
        }
        fields = {name: self._make_strategy(detail, unknown_keys) for name, detail in properties.items()}
        required = schema.get("required", [])
        known_fields = st.fixed_dictionaries(
            {name: fields[name] for name in required},
            optional={name: field for name, field in fields.items() if name not in required},
        )
        if additional is False or not unknown_keys:
            return known_fields
        unknown = st.dictionaries(NAMES.map("new-{}".format) | st.just("extra_fields"), JSON_VALUES, max_size=2)
        return st.builds(lambda unknown_fields, fields: {**unknown_fields, **fields}, unknown, known_fields)

    def _array(self, schema: Json, unknown_keys: bool) -> Strategy:
        if "prefixItems" in schema:
            return st.tuples(*[self._make_strategy(item, unknown_keys) for item in schema["prefixItems"]]).map(list)
        min_items, max_items = schema.get("minItems", 0), schema.get("maxItems", 4)
        return st.lists(self._make_strategy(schema["items"], unknown_keys), min_size=min_items, max_size=max_items)

    def _string(self, schema: Json, _: bool) -> Strategy:
        if schema.get("format") == "date-time":
            return MOMENTS.map(datetime.isoformat) | MOMENTS.map(lambda m: m.replace(tzinfo=None).isoformat() + "Z")
        if schema.get("contentEncoding") == "base64":
            return st.binary(max_size=9).map(lambda content: b64encode(content).decode())
        return st.text(min_size=schema.get("minLength", 0), max_size=schema.get("maxLength", 8))

    def _integer(self, schema: Json, _: bool) -> Strategy:
        return st.integers(schema["minimum"], schema["maximum"])

    def _number(self, schema: Json, _: bool) -> Strategy:
        validator = Draft202012Validator(schema)
        minimum = max((schema[key] for key in ("minimum", "exclusiveMinimum") if key in schema), default=None)
        maximum = min((schema[key] for key in ("maximum", "exclusiveMaximum") if key in schema), default=None)
        floats = st.floats(minimum, maximum, allow_nan=False, allow_infinity=False)
        return (floats | st.integers(-9, 9)).filter(validator.is_valid)

    def _boolean(self, schema: Json, _: bool) -> Strategy:
        return st.booleans()

    def _null(self, schema: Json, _: bool) -> Strategy:
        return st.none()


@st.composite
def tensors(draw: st.DrawFn) -> Json:
    """Return a strategy for tensors whose data, dtype and shape agree."""
    dtype = draw(st.sampled_from(["int64", "float32"]))
    integers = st.integers(-(2**63), 2**63 - 1)
    floats = st.floats(width=32, allow_nan=False, allow_infinity=False)
    values = draw(st.lists(integers if dtype == "int64" else floats))
    shapes: list[Any] = [None, [len(values)], [1, len(values)], [len(values), 1]]
    tensor = {"data": values, "dtype": dtype, "shape": draw(st.sampled_from(shapes))}
    return tensor if tensor["shape"] is not None or draw(st.booleans()) else {"data": values, "dtype": dtype}


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
