"""The contract at one wire version against the facts read from the official SDK of that version."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .type_notation import canonicalize

Json = dict[str, Any]

SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "null"}
PROTOBUF = "application/x-protobuf"
FUTURE_RESULTS = "FutureRetrieveResponse"
IN_MEMORY = "#inmem"
"""Mark of a Python class in the place of a type: its JSON form, if it still has one, is that of the type."""

UNDESCRIBED_MEDIA_TYPES = frozenset({"application/grpc", "application/x-www-form-urlencoded"})
"""Kinds of endpoints that are not described: two gRPC calls of 0.21.0, and two calls of a third party."""


@dataclass(frozen=True)
class Difference:
    """One thing that the contract and the facts say differently; None on the side that lacks it."""

    kind: str
    where: str
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        return f"{self.kind} of {self.where}: contract {self.ours!r}, facts {self.theirs!r}"


def compare_facts(document: Json, facts: Json) -> list[Difference]:
    """Every difference between a projected contract and a fact file of the same version, in a fixed order.

    What the contract marks ``x-undeclared`` no type of the SDK declares: it is left out when it stands for
    itself, and written out where a type of the SDK uses it.
    """
    found = list(_Comparison(document, facts).differences())
    return sorted(found, key=lambda each: (each.where, each.kind, str(each.ours), str(each.theirs)))


def list_protobuf_messages(paths: Json) -> dict[str, list[str]]:
    """The messages that a protobuf body may be, by what it is the body of: a request, or an answer by status."""
    found: dict[str, list[str]] = {"request": [], "200": []}
    for item in paths.values():
        for operation in item.values():
            bodies = {"request": operation.get("requestBody", {}), **operation.get("responses", {})}
            for holder, body in bodies.items():
                schema = body.get("content", {}).get(PROTOBUF, {}).get("schema", {})
                found.setdefault(holder, []).extend(each["message"] for each in schema.get("x-messages", []))
    return found


class _Comparison:
    def __init__(self, document: Json, facts: Json) -> None:
        self.schemas: Json = document["components"]["schemas"]
        self.paths: Json = document["paths"]
        self.facts = facts
        self.types: Json = facts["types"]

    def differences(self) -> Iterator[Difference]:
        ours = {_called(name, each): each for name, each in self.schemas.items() if not each.get("x-undeclared")}
        yield from _sets("type", "types", set(ours), set(self.types))
        for name in ours.keys() & self.types.keys():
            yield from self._type(name, ours[name], self.types[name])
        results = set(self._members(self.schemas[FUTURE_RESULTS]))
        for future in self.facts["futures"]:
            name = self._json_form(future["result"])
            if name not in results and name not in self.facts.get("proto_response_types", ()):
                yield Difference("result", future["request_type"], None, future["result"])
        binary = self.facts.get("proto_response_types", [])
        yield from _sets("binary result", FUTURE_RESULTS, set(list_protobuf_messages(self.paths)["200"]), set(binary))
        yield from self._endpoints()

    def _type(self, name: str, ours: Json, theirs: Json) -> Iterator[Difference]:
        kind = theirs["kind"]
        if kind in ("literal", "enum"):
            yield from _sets("value", name, set(ours.get("enum", [])), set(theirs["values"]))
        elif kind == "alias":
            yield from self._same("target", name, self._text(ours), theirs["target"])
        elif kind == "union":
            members = {member for member in self._members(ours) if not self.schemas[member].get("x-undeclared")}
            yield from _sets("member", name, members, self._json_forms(theirs["members"]))
            tag = ours.get("discriminator", {}).get("propertyName")
            yield from self._same("discriminator", name, tag, theirs.get("discriminator"))
        else:
            strict = ours.get("additionalProperties") is False
            # A TypedDict knows neither strictness nor defaults.
            typed = kind != "typed_dict"
            yield from self._same("strictness", name, strict, theirs["strict"] if typed else strict)
            yield from self._fields(name, ours, theirs["fields"], defaults=typed)

    def _fields(self, name: str, ours: Json, theirs: Json, *, defaults: bool) -> Iterator[Difference]:
        properties = {
            _called(field, detail): (field, detail)
            for field, detail in ours.get("properties", {}).items()
            if not detail.get("x-undeclared")
        }
        yield from _sets("field", name, set(properties), set(theirs))
        for called in properties.keys() & theirs.keys():
            field, detail = properties[called]
            where, fact = f"{name}.{called}", theirs[called]
            yield from self._same("type", where, self._text(detail), fact["type"])
            yield from self._same("required", where, field in ours.get("required", []), fact["required"])
            if defaults and not fact["required"]:
                yield from self._same("default", where, detail.get("default", "<none>"), fact["default"])

    def _endpoints(self) -> Iterator[Difference]:
        ours = {
            f"{method.upper()} {re.sub(r'{[^}]*}', '{}', path)}": operation
            for path, item in self.paths.items()
            for method, operation in item.items()
        }
        theirs: Json = {
            name: fact
            for name, fact in self.facts["endpoints"].items()
            if not UNDESCRIBED_MEDIA_TYPES & set(fact.get("request_content_types", ()))
        }
        yield from _sets("endpoint", "endpoints", set(ours), set(theirs))
        for name in ours.keys() & theirs.keys():
            yield from self._endpoint(name, ours[name], theirs[name])

    def _endpoint(self, name: str, ours: Json, theirs: Json) -> Iterator[Difference]:
        query = {p["name"]: p["schema"] for p in ours.get("parameters", []) if p["in"] == "query"}
        facts = self._query_facts(theirs.get("query", {}))
        yield from _sets("query", name, set(query), set(facts))
        for parameter in query.keys() & facts.keys():
            where, fact = f"{name}?{parameter}", facts[parameter]
            yield from self._same("type", where, self._text(query[parameter]), fact["type"])
            yield from self._same("default", where, self._default(query[parameter]), fact.get("sdk_default"))
        yield from self._media_types(name, ours, theirs)
        body = _json_schema(ours.get("requestBody", {}))
        if theirs.get("request") == "inline":
            fields = self._follow(body).get("properties", {})
            yield from self._same("request", name, self._texts(fields), _canonical_values(theirs["body_fields"]))
        elif body or not str(theirs.get("request")).endswith(IN_MEMORY):
            request = self._json_form(theirs.get("request"))
            yield from self._same("request", name, self._text(body) if body else None, request)
        answer = ours["responses"].get("200", {})
        schema = _json_schema(answer)
        other = "bytes" if answer.get("content") else "null"
        yield from self._same("response", name, self._text(schema) if schema else other, theirs["response"])

    def _media_types(self, name: str, ours: Json, theirs: Json) -> Iterator[Difference]:
        content = ours.get("requestBody", {}).get("content", {})
        if content or theirs.get("request"):
            yield from _sets("media type", name, set(content), set(theirs.get("request_content_types", content)))

    def _query_facts(self, facts: Json) -> Json:
        """The query parameters one by one, where the facts name a type whose fields they are too."""
        found = dict(facts)
        for field, fact in self.types[found.pop("*")["type"]]["fields"].items() if "*" in facts else ():
            found[field] = {"type": fact["type"].removesuffix(" | null")}
        return {field: {**fact, "type": fact["type"].removesuffix(" | null")} for field, fact in found.items()}

    def _texts(self, fields: Json) -> Json:
        """The types of the fields of a body that no type declares, level by level."""
        found: Json = {}
        for field, detail in fields.items():
            inner = self._follow(detail).get("properties")
            found[field] = self._texts(inner) if inner else canonicalize(self._text(detail))
        return found

    def _json_forms(self, names: list[str]) -> set[str]:
        """The types among these names, without Python classes that have no JSON form any more."""
        return {self._json_form(name) for name in names if name in self.types or self._json_form(name) in self.types}

    def _json_form(self, name: Any) -> Any:
        return name.removesuffix(IN_MEMORY) if isinstance(name, str) else name

    def _same(self, kind: str, where: str, ours: Any, theirs: Any) -> Iterator[Difference]:
        if kind in ("type", "target"):
            ours, theirs = canonicalize(ours), canonicalize(_plain(theirs))
        if ours != theirs:
            yield Difference(kind, where, ours, theirs)

    def _members(self, schema: Json) -> list[str]:
        return [_name(member["$ref"]) for member in schema.get("anyOf", []) if "$ref" in member]

    def _follow(self, schema: Json) -> Json:
        followed: Json = self.schemas.get(_name(schema["$ref"]), {}) if "$ref" in schema else schema
        return followed

    def _default(self, schema: Json) -> Any:
        return schema.get("default", self._follow(schema).get("default"))

    def _text(self, schema: Json) -> str:
        """The type of a schema in the notation of the facts."""
        if "$ref" in schema:
            name = _name(schema["$ref"])
            target = self.schemas.get(name, {})
            called = _called(name, target)
            return called if called in self.types else self._text(target)
        if "anyOf" in schema:
            return " | ".join(map(self._text, self._without_openness(schema["anyOf"])))
        if "const" in schema:
            return json.dumps(schema["const"])
        if "enum" in schema:
            return " | ".join(map(json.dumps, schema["enum"]))
        kind = schema.get("type")
        if isinstance(kind, list):
            return " | ".join(self._text({**schema, "type": each}) for each in kind)
        if kind == "array":
            return self._array(schema)
        if kind == "object":
            return f"map[str, {self._text(_items(schema.get('additionalProperties')))}]"
        if kind == "string":
            formats = {"date-time": "datetime", "date": "str (iso)"}
            return (
                "bytes" if schema.get("contentEncoding") == "base64" else formats.get(schema.get("format", ""), "str")
            )
        return SCALARS.get(kind or "", "any")

    def _array(self, schema: Json) -> str:
        if "prefixItems" in schema:
            return f"tuple[{', '.join(map(self._text, schema['prefixItems']))}]"
        if schema.get("x-array") == "by-dtype":
            return "list[int] | list[float]"
        return f"list[{self._text(_items(schema.get('items')))}]"

    def _without_openness(self, members: list[Json]) -> list[Json]:
        """The members of a union but for the string beside an enum, which only lets new values through."""
        if any("enum" in self._follow(member) for member in members):
            return [member for member in members if member != {"type": "string"}]
        return members


def _sets(kind: str, where: str, ours: set[str], theirs: set[str]) -> Iterator[Difference]:
    for name in ours - theirs:
        yield Difference(kind, where, name, None)
    for name in theirs - ours:
        yield Difference(kind, where, None, name)


def _name(ref: str) -> str:
    return ref.rpartition("/")[2]


def _items(schema: Any) -> Json:
    return schema if isinstance(schema, dict) else {}


def _json_schema(holder: Json) -> Json:
    schema: Json = holder.get("content", {}).get("application/json", {}).get("schema", {})
    return schema


def _canonical_values(fields: Json) -> Json:
    return {
        field: _canonical_values(text) if isinstance(text, dict) else canonicalize(text)
        for field, text in fields.items()
    }


def _called(name: str, node: Json) -> str:
    """What the SDK calls a thing of the contract."""
    called: str = node.get("x-sdk-name", name)
    return called


def _plain(text: str) -> str:
    """A type of the facts without what is about Python alone."""
    for python, plain in ((IN_MEMORY, ""), ("str | datetime", "datetime"), ("datetime(tz)", "datetime")):
        text = text.replace(python, plain)
    return text
