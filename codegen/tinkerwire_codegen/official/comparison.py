"""Comparison of the contract at one wire version with the facts read from the official SDK of that version."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .release.problems import is_unread
from .type_notation import canonicalize

Json = dict[str, Any]

SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "null"}
PROTOBUF = "application/x-protobuf"
FUTURE_RESULTS = "FutureRetrieveResponse"
IN_MEMORY = "#inmem"
"""Suffix of a Python class used as a type; its JSON form, if it still has one, is that of the type."""

UNDESCRIBED_MEDIA_TYPES = frozenset({"application/grpc", "application/x-www-form-urlencoded"})
"""Media types of endpoints outside the contract: two gRPC calls of 0.21.0, and two calls of a third party."""


@dataclass(frozen=True)
class Difference:
    """One thing that differs between contract and facts; None on the side that lacks it."""

    kind: str
    where: str
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        """Describe the difference in one line."""
        return f"{self.kind} of {self.where}: contract {self.ours!r}, facts {self.theirs!r}"

    def sort_key(self) -> tuple[str, str, str, str]:
        """Return the key of the fixed order of differences."""
        return self.where, self.kind, str(self.ours), str(self.theirs)


def compare_facts(document: Json, facts: Json) -> list[Difference]:
    """Find every difference between a projected contract and a fact file of the same version, in a fixed order.

    No type of the SDK declares what the contract marks ``x-undeclared``. The comparison skips such a type, and inlines
    it where a type of the SDK uses it.
    """
    return sorted(_Comparison(document, facts).differences(), key=Difference.sort_key)


def compare_type(document: Json, facts: Json, name: str) -> list[Difference]:
    """Find the differences of one type, by its name in the SDK."""
    comparison = _Comparison(document, facts)
    schemas = {_sdk_name(key, schema): schema for key, schema in comparison.schemas.items()}
    if schemas[name].get("x-undeclared"):
        return [Difference("type", "types", name, None)]
    return list(comparison.compare_type(name, schemas[name], facts["types"][name]))


def compare_sets(kind: str, where: str, ours: set[str], theirs: set[str]) -> Iterator[Difference]:
    """Yield a difference for each name that only one side has."""
    for name in ours - theirs:
        yield Difference(kind, where, name, None)
    for name in theirs - ours:
        yield Difference(kind, where, None, name)


def list_protobuf_messages(paths: Json) -> dict[str, list[str]]:
    """List the messages that a protobuf body may be, for requests and for each response status."""
    messages: dict[str, list[str]] = {"request": [], "200": []}
    for item in paths.values():
        for operation in item.values():
            bodies = {"request": operation.get("requestBody", {}), **operation.get("responses", {})}
            for holder, body in bodies.items():
                schema = body.get("content", {}).get(PROTOBUF, {}).get("schema", {})
                entries = schema.get("x-protobuf-messages", [])
                messages.setdefault(holder, []).extend(entry["message"] for entry in entries)
    return messages


def list_operations(document: Json) -> Json:
    """Return the operations by method and path, with {} for each variable."""
    return {
        f"{method.upper()} {re.sub(r'{[^}]*}', '{}', path)}": operation
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }


def list_unread_endpoints(document: Json, facts: Json) -> set[str]:
    """List the endpoints that the facts lack, but that a call whose path is not understood may send."""
    methods = facts.get("unread_methods", ())
    return {key for key in list_operations(document) if key.partition(" ")[0] in methods} - set(facts["endpoints"])


class _Comparison:
    def __init__(self, document: Json, facts: Json) -> None:
        self.document = document
        self.schemas: Json = document["components"]["schemas"]
        self.paths: Json = document["paths"]
        self.facts = facts
        self.types: Json = facts["types"]

    def differences(self) -> Iterator[Difference]:
        """Yield all differences, unsorted."""
        ours = {
            _sdk_name(name, schema): schema for name, schema in self.schemas.items() if not schema.get("x-undeclared")
        }
        yield from compare_sets("type", "types", set(ours), set(self.types))
        for name in ours.keys() & self.types.keys():
            yield from self.compare_type(name, ours[name], self.types[name])
        results = set(self._members(self.schemas.get(FUTURE_RESULTS, {})))
        for future in self.facts["futures"]:
            name = self._json_form(future["result"])
            if name not in results and name not in self.facts.get("proto_response_types", ()):
                yield Difference("result", future["request_type"], None, future["result"])
        protobuf_results = self.facts.get("proto_response_types", [])
        yield from compare_sets(
            "protobuf result", FUTURE_RESULTS, set(list_protobuf_messages(self.paths)["200"]), set(protobuf_results)
        )
        yield from self._compare_endpoints()

    def compare_type(self, name: str, ours: Json, theirs: Json) -> Iterator[Difference]:
        """Yield the differences of one type."""
        kind = theirs["kind"]
        if kind in ("literal", "enum"):
            yield from compare_sets("value", name, set(ours.get("enum", [])), set(theirs["values"]))
        elif kind == "alias":
            yield from self._compare_values("target", name, self._render_type(ours), theirs["target"])
        elif kind == "union":
            members = {member for member in self._members(ours) if not self.schemas[member].get("x-undeclared")}
            yield from compare_sets("member", name, members, self._json_forms(theirs["members"]))
            tag = ours.get("discriminator", {}).get("propertyName")
            yield from self._compare_values("discriminator", name, tag, theirs.get("discriminator"))
        else:
            is_strict = ours.get("additionalProperties") is False
            # A TypedDict has neither strictness nor defaults.
            has_defaults = kind != "typed_dict"
            yield from self._compare_values(
                "strictness", name, is_strict, theirs["strict"] if has_defaults else is_strict
            )
            yield from self._compare_fields(name, ours, theirs["fields"], defaults=has_defaults)

    def _compare_fields(self, name: str, ours: Json, theirs: Json, *, defaults: bool) -> Iterator[Difference]:
        properties = {
            _sdk_name(field, detail): (field, detail)
            for field, detail in ours.get("properties", {}).items()
            if not detail.get("x-undeclared")
        }
        yield from compare_sets("field", name, set(properties), set(theirs))
        for sdk_name in properties.keys() & theirs.keys():
            field, detail = properties[sdk_name]
            where, fact = f"{name}.{sdk_name}", theirs[sdk_name]
            yield from self._compare_values("type", where, self._render_type(detail), fact["type"])
            if defaults and is_unread(fact.get("default")):
                continue
            yield from self._compare_values("required", where, field in ours.get("required", []), fact["required"])
            if defaults and not fact["required"]:
                yield from self._compare_values("default", where, detail.get("default", "<none>"), fact["default"])

    def _compare_endpoints(self) -> Iterator[Difference]:
        ours = list_operations(self.document)
        theirs: Json = {
            name: fact
            for name, fact in self.facts["endpoints"].items()
            if not UNDESCRIBED_MEDIA_TYPES & set(fact.get("request_content_types", ()))
        }
        unread = list_unread_endpoints(self.document, self.facts)
        yield from compare_sets("endpoint", "endpoints", set(ours) - unread, set(theirs))
        for name in ours.keys() & theirs.keys():
            yield from self._compare_endpoint(name, ours[name], theirs[name])

    def _compare_endpoint(self, name: str, ours: Json, theirs: Json) -> Iterator[Difference]:
        query = {p["name"]: p["schema"] for p in ours.get("parameters", []) if p["in"] == "query"}
        facts = self._query_facts(theirs.get("query", {}))
        # The unread part of the query may hold the parameters that seem to be gone.
        known = set(query) & set(facts) if theirs.get("query_unread") else set(query)
        yield from compare_sets("query", name, known, set(facts))
        for parameter in query.keys() & facts.keys():
            where, fact = f"{name}?{parameter}", facts[parameter]
            yield from self._compare_values("type", where, self._render_type(query[parameter]), fact["type"])
            yield from self._compare_values("default", where, self._default(query[parameter]), fact.get("sdk_default"))
        yield from self._compare_media_types(name, ours, theirs)
        body = _json_schema(ours.get("requestBody", {}))
        if theirs.get("body_unread"):
            pass  # The unread part of the body may hold the fields that seem to be gone.
        elif theirs.get("request") == "inline":
            fields = self._follow(body).get("properties", {})
            yield from self._compare_values(
                "request", name, self._render_types(fields), _canonicalize_fields(theirs["body_fields"])
            )
        elif body or not str(theirs.get("request")).endswith(IN_MEMORY):
            request = self._json_form(theirs.get("request"))
            yield from self._compare_values("request", name, self._render_type(body) if body else None, request)
        ok_response = ours["responses"].get("200", {})
        schema = _json_schema(ok_response)
        fallback = "bytes" if ok_response.get("content") else "null"
        yield from self._compare_values(
            "response", name, self._render_type(schema) if schema else fallback, theirs["response"]
        )

    def _compare_media_types(self, name: str, ours: Json, theirs: Json) -> Iterator[Difference]:
        content = ours.get("requestBody", {}).get("content", {})
        if content or theirs.get("request"):
            yield from compare_sets("media type", name, set(content), set(theirs.get("request_content_types", content)))

    def _query_facts(self, facts: Json) -> Json:
        """Return the query parameters by name; a type in the facts is replaced by its fields."""
        parameters = dict(facts)
        for field, fact in self.types[parameters.pop("*")["type"]]["fields"].items() if "*" in facts else ():
            parameters[field] = {"type": fact["type"].removesuffix(" | null")}
        return {field: {**fact, "type": fact["type"].removesuffix(" | null")} for field, fact in parameters.items()}

    def _render_types(self, fields: Json) -> Json:
        """Render the types of an inline body's fields, level by level."""
        texts: Json = {}
        for field, detail in fields.items():
            inner = self._follow(detail).get("properties")
            texts[field] = self._render_types(inner) if inner else canonicalize(self._render_type(detail))
        return texts

    def _json_forms(self, names: list[str]) -> set[str]:
        """Return the types among these names; Python classes without a JSON form are left out."""
        return {self._json_form(name) for name in names if name in self.types or self._json_form(name) in self.types}

    def _json_form(self, name: Any) -> Any:
        return name.removesuffix(IN_MEMORY) if isinstance(name, str) else name

    def _compare_values(self, kind: str, where: str, ours: Any, theirs: Any) -> Iterator[Difference]:
        if kind in ("type", "target"):
            ours, theirs = canonicalize(ours), canonicalize(_wire_type(theirs))
        if ours != theirs:
            yield Difference(kind, where, ours, theirs)

    def _members(self, schema: Json) -> list[str]:
        return [_name(member["$ref"]) for member in schema.get("anyOf", []) if "$ref" in member]

    def _follow(self, schema: Json) -> Json:
        followed: Json = self.schemas.get(_name(schema["$ref"]), {}) if "$ref" in schema else schema
        return followed

    def _default(self, schema: Json) -> Any:
        return schema.get("default", self._follow(schema).get("default"))

    def _render_type(self, schema: Json) -> str:
        """Render the type of a schema in the notation of the facts."""
        if "$ref" in schema:
            name = _name(schema["$ref"])
            target = self.schemas.get(name, {})
            sdk_name = _sdk_name(name, target)
            return sdk_name if sdk_name in self.types else self._render_type(target)
        if "anyOf" in schema:
            return " | ".join(map(self._render_type, self._without_open_string(schema["anyOf"])))
        if "const" in schema:
            return json.dumps(schema["const"])
        if "enum" in schema:
            return " | ".join(map(json.dumps, schema["enum"]))
        kind = schema.get("type")
        if isinstance(kind, list):
            return " | ".join(self._render_type({**schema, "type": name_}) for name_ in kind)
        if kind == "array":
            return self._array(schema)
        if kind == "object":
            return f"map[str, {self._render_type(_items(schema.get('additionalProperties')))}]"
        if kind == "string":
            formats = {"date-time": "datetime", "date": "str (iso)"}
            return (
                "bytes" if schema.get("contentEncoding") == "base64" else formats.get(schema.get("format", ""), "str")
            )
        return SCALARS.get(kind or "", "any")

    def _array(self, schema: Json) -> str:
        if "prefixItems" in schema:
            return f"tuple[{', '.join(map(self._render_type, schema['prefixItems']))}]"
        if schema.get("x-array") == "by-dtype":
            return "list[int] | list[float]"
        return f"list[{self._render_type(_items(schema.get('items')))}]"

    def _without_open_string(self, members: list[Json]) -> list[Json]:
        """Remove the string beside an enum, which only lets new values through."""
        if any("enum" in self._follow(member) for member in members):
            return [member for member in members if member != {"type": "string"}]
        return members


def _name(ref: str) -> str:
    return ref.rpartition("/")[2]


def _items(schema: Any) -> Json:
    return schema if isinstance(schema, dict) else {}


def _json_schema(holder: Json) -> Json:
    schema: Json = holder.get("content", {}).get("application/json", {}).get("schema", {})
    return schema


def _canonicalize_fields(fields: Json) -> Json:
    return {
        field: _canonicalize_fields(text) if isinstance(text, dict) else canonicalize(text)
        for field, text in fields.items()
    }


def _sdk_name(name: str, node: Json) -> str:
    """Return the SDK's name of a thing of the contract."""
    sdk_name: str = node.get("x-sdk-name", name)
    return sdk_name


def _wire_type(text: str) -> str:
    """Remove from a type of the facts what concerns Python alone."""
    for python, wire in ((IN_MEMORY, ""), ("str | datetime", "datetime"), ("datetime(tz)", "datetime")):
        text = text.replace(python, wire)
    return text
