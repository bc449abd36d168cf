"""What is wrong with a bundled contract, in words that name the place, before any generator sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from tinkerwire_base import mixins

Json = dict[str, Any]


def check_contract(document: Json) -> None:
    """Raise ValueError with one line per fault of a contract."""
    # In this order, as each trusts what those before it have seen.
    found = list(_misshapen(document)) or list(_unsound(document)) or list(_not_openapi(document))
    if found:
        raise ValueError("the contract is not sound:\n" + "\n".join(dict.fromkeys(found)))


def _misshapen(document: Json) -> Iterator[str]:
    """Schemas that are no JSON Schema."""
    judge = Draft202012Validator(Draft202012Validator.META_SCHEMA)
    for name, schema in document["components"]["schemas"].items():
        place = f"#/components/schemas/{name}"
        if not isinstance(schema, dict):
            yield f"{place}: expected a mapping, got {schema!r:.100}"
            continue
        for error in judge.iter_errors(schema):
            steps = "".join(f"/{step}" for step in error.absolute_path)
            yield f"{place}{steps}: {error.instance!r:.100} is not what JSON Schema allows here"
        for field, detail in schema.get("properties", {}).items():
            if isinstance(detail, bool):
                yield f"{place}/properties/{field}: expected a mapping, got {detail!r:.100}"


def _unsound(document: Json) -> Iterator[str]:
    for name, schema in document["components"]["schemas"].items():
        place = f"#/components/schemas/{name}"
        if not name.isidentifier():
            yield f"{place}: {name!r} cannot be the name of a class"
        if schema.get("x-mixin") and not hasattr(mixins, str(schema["x-mixin"])):
            yield f"{place}: x-mixin {schema['x-mixin']} is not in tinkerwire_base.mixins"
        properties = schema.get("properties", {})
        for field in schema.get("x-essential", []):
            if field not in properties:
                yield f"{place}: x-essential {field!r} is none of its properties"
        yield from (f"{place}: required {field!r} is none of its properties" for field in _missing(schema, properties))
        for field, detail in properties.items():
            if "enum" in detail or "properties" in detail:
                yield f"{place}/properties/{field}: give it a name of its own under components.schemas and a $ref"
            if "default" in detail and "$ref" not in str(detail):
                for error in Draft202012Validator(detail).iter_errors(detail["default"]):
                    yield f"{place}/properties/{field}/default: {error.message}"
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if not str(operation.get("operationId", "")).isidentifier():
                yield f"#/paths/{path}/{method}: needs an operationId, which becomes the name of a function"


def _missing(schema: Json, properties: Json) -> list[str]:
    return [field for field in schema.get("required", []) if field not in properties]


def _not_openapi(document: Json) -> Iterator[str]:
    for error in OpenAPIV31SpecValidator(document).iter_errors():
        steps = "".join(f"/{step}" for step in error.absolute_path)
        yield f"#{steps}: {error.message:.300}"
