"""Checks of a bundled contract, which report each error with its place before a generator runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from tinkerwire_base import mixins
from tinkerwire_base.conversion.versioning import parse_version

Json = dict[str, Any]


def check_contract(document: Json) -> None:
    """Raise ValueError with one line per error of the contract."""
    # In this order: each check relies on the ones before.
    errors = list(_json_schema_errors(document)) or list(_generator_errors(document)) or list(_openapi_errors(document))
    if errors:
        raise ValueError("the contract has errors:\n" + "\n".join(dict.fromkeys(errors)))


def _json_schema_errors(document: Json) -> Iterator[str]:
    """Yield the schemas that are not valid JSON Schema."""
    validator = Draft202012Validator(Draft202012Validator.META_SCHEMA)
    for name, schema in document["components"]["schemas"].items():
        place = f"#/components/schemas/{name}"
        if not isinstance(schema, dict):
            yield f"{place}: expected a mapping, got {schema!r:.100}"
            continue
        for error in validator.iter_errors(schema):
            steps = "".join(f"/{step}" for step in error.absolute_path)
            yield f"{place}{steps}: {error.instance!r:.100} is not valid JSON Schema"
        for field, detail in schema.get("properties", {}).items():
            if isinstance(detail, bool):
                yield f"{place}/properties/{field}: expected a mapping, got {detail!r:.100}"


def _generator_errors(document: Json) -> Iterator[str]:
    """Yield what the generators cannot use: bad names, unknown fields in marks, wrong defaults."""
    yield from _invalid_versions(document["info"])
    yield from _repeated_constants(document["components"]["schemas"])
    for name, schema in document["components"]["schemas"].items():
        place = f"#/components/schemas/{name}"
        if not name.isidentifier():
            yield f"{place}: {name!r} cannot be the name of a class"
        if schema.get("x-mixin") and not hasattr(mixins, str(schema["x-mixin"])):
            yield f"{place}: x-mixin {schema['x-mixin']} is not in tinkerwire_base.mixins"
        yield from _invalid_constants(place, schema)
        yield from _ambiguous_members(place, schema, document["components"]["schemas"])
        properties = schema.get("properties", {})
        for field in schema.get("x-essential", []):
            if field not in properties:
                yield f"{place}: x-essential {field!r} is not one of its properties"
        yield from (
            f"{place}: required {field!r} is not one of its properties"
            for field in _missing_properties(schema, properties)
        )
        for field, detail in properties.items():
            if "enum" in detail or "properties" in detail:
                yield f"{place}/properties/{field}: must be a $ref to a named schema under components.schemas"
            if "default" in detail and "$ref" not in str(detail):
                for error in Draft202012Validator(detail).iter_errors(detail["default"]):
                    yield f"{place}/properties/{field}/default: {error.message}"
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if not str(operation.get("operationId", "")).isidentifier():
                yield f"#/paths/{path}/{method}: operationId must be an identifier, because it names a function"
            if "x-result" in operation and operation["x-result"] not in document["components"]["schemas"]:
                yield f"#/paths/{path}/{method}: x-result {operation['x-result']!r} is not the name of a schema"


def _invalid_versions(info: Json) -> Iterator[str]:
    """Yield a message unless the contract lists its versions in order, up to its own version."""
    versions = info.get("x-versions")
    if not isinstance(versions, list) or not versions:
        yield f"#/info: x-versions must list the wire versions, such as [{info.get('version')}], got {versions!r:.100}"
        return
    if versions != sorted(set(versions), key=parse_version):
        yield "#/info/x-versions: the versions must be in order and differ"
    if versions[-1] != info.get("version"):
        yield f"#/info/x-versions: the last version must be the version of the contract, {info.get('version')}"
    if info.get("x-models-since") not in versions:
        yield f"#/info: x-models-since must be one of x-versions, got {info.get('x-models-since')!r}"


def _repeated_constants(schemas: Json) -> Iterator[str]:
    """Yield a message for each constant that an earlier schema defines too."""
    owners: dict[str, str] = {}
    for schema_name, schema in schemas.items():
        for name in schema.get("x-constants", {}):
            owner = owners.setdefault(name, schema_name)
            if owner != schema_name:
                yield f"#/components/schemas/{schema_name}/x-constants: {name} is a constant of {owner} already"


def _invalid_constants(place: str, schema: Json) -> Iterator[str]:
    """Yield a message for every constant that no Python constant can express."""
    for name, value in schema.get("x-constants", {}).items():
        if not (name.isidentifier() and name.isupper()):
            yield f"{place}/x-constants: {name!r} must be the name of a constant, such as MAX_INPUTS"
        values = value.values() if isinstance(value, dict) else [value]
        if not all(isinstance(item, str) or (item is value and type(item) is int) for item in values):
            yield f"{place}/x-constants/{name}: expected a text, an integer, or a mapping of texts, got {value!r:.100}"


def _ambiguous_members(place: str, union: Json, schemas: Json) -> Iterator[str]:
    """Yield a message for each member of a union of objects that no tag selects."""
    names = [member.get("$ref", "").rpartition("/")[2] for member in union.get("anyOf", [])]
    objects = {name: schemas[name]["properties"] for name in names if "properties" in schemas.get(name, {})}
    tag = union.get("discriminator", {}).get("propertyName")
    if tag is None:
        if len(objects) > 1 and not union.get("x-untagged"):
            yield f"{place}: a union of objects must have a discriminator, or the mark x-untagged"
        return
    mapping = union["discriminator"].get("mapping", {})
    for name, properties in objects.items():
        value = properties.get(tag, {}).get("const")
        if mapping.get(value, "").rpartition("/")[2] != name:
            yield f"{place}/discriminator: {name}.{tag} must be a const that the mapping maps to {name}, got {value!r}"


def _missing_properties(schema: Json, properties: Json) -> list[str]:
    return [field for field in schema.get("required", []) if field not in properties]


def _openapi_errors(document: Json) -> Iterator[str]:
    """Yield the errors of the OpenAPI validator."""
    for error in OpenAPIV31SpecValidator(document).iter_errors():
        steps = "".join(f"/{step}" for step in error.absolute_path)
        yield f"#{steps}: {error.message:.300}"
