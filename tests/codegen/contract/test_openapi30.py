"""The OpenAPI 3.0 form of a contract: valid by an independent validator, and equal in meaning."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_schema_validator import OAS30Validator
from openapi_spec_validator import OpenAPIV30SpecValidator

from support.exported_contract import VERSIONS, openapi_document
from tinkerwire_codegen.contract.bundle import INT64
from tinkerwire_codegen.contract.openapi30 import convert_schema, convert_to_openapi30

REF = {"$ref": "#/components/schemas/A"}
NULL = {"type": "null"}
VALUES: list[Any] = [None, True, 0, 1, 2, 1.5, 2**70, "", "a", "b", [], [1, 0.5], [1, 2, 3], ["a"], {}, {"a": 1}]


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_is_valid_openapi30(version: str) -> None:
    """The validator accepts the document, and nothing in it is of OpenAPI 3.1."""
    document = json.loads(json.dumps(convert_to_openapi30(openapi_document(version))))
    OpenAPIV30SpecValidator(document).validate()
    assert document["openapi"] == "3.0.3"
    assert not {"const", "prefixItems", "contentEncoding", "jsonSchemaDialect", "identifier"} & set(list_keys(document))


def list_keys(node: Any) -> list[str]:
    if isinstance(node, list):
        return [key for item in node for key in list_keys(item)]
    if not isinstance(node, dict):
        return []
    return [*node, *(key for item in node.values() for key in list_keys(item))]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": ["string", "null"]},
        {"type": ["integer", "string", "null"]},
        {"type": "integer", **INT64},
        {"type": "string", "const": "a"},
        {"type": ["string", "null"], "enum": ["a"]},
        {"type": "number", "exclusiveMinimum": 1},
        {"type": "number", "exclusiveMinimum": 1, "minimum": 0, "exclusiveMaximum": 2},
        {"type": "number", "exclusiveMinimum": 0, "minimum": 1},
        NULL,
        {"anyOf": [{"type": "string"}, NULL]},
        {"anyOf": [{"type": "string", "const": "a"}, NULL]},
        {"oneOf": [{"type": "string"}, {"type": "integer"}, NULL]},
        {"anyOf": [{"type": "array", "items": {"type": "integer"}}, NULL]},
        {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        {"type": "object", "properties": {"a": {"type": ["string", "null"]}}, "additionalProperties": False},
        {"type": "object", "additionalProperties": {"type": ["integer", "null"]}},
        {"type": "array", "items": True},
        {"type": "array", "items": False},
        {"not": {"type": "string"}},
    ],
    ids=str,
)
def test_converted_schema_accepts_the_same_values(schema: dict[str, Any]) -> None:
    """Validators of both versions agree on every value, except that a format may be an annotation only."""
    before = Draft202012Validator(schema)
    after = OAS30Validator(convert_schema(schema, "#"), format_checker=OAS30Validator.FORMAT_CHECKER)
    for value in VALUES:
        assert after.is_valid(value) == before.is_valid(value), value


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({**REF, "description": "It."}, {"allOf": [REF], "description": "It."}),
        (REF, REF),
        ({"anyOf": [REF, NULL], "default": None}, {"allOf": [REF], "nullable": True}),
        ({"type": "string", "contentEncoding": "base64"}, {"type": "string", "format": "byte"}),
        (
            {"type": "array", "prefixItems": [{"type": "integer", **INT64}, {"type": "number"}], "maxItems": 2},
            {"type": "array", "items": {"type": "number"}, "maxItems": 2},
        ),
        (
            {"type": "array", "prefixItems": [{"type": "boolean"}, {"type": "string"}]},
            {"type": "array", "items": {"anyOf": [{"type": "boolean"}, {"type": "string"}]}},
        ),
        ({"type": "string", "examples": ["a", "b"]}, {"type": "string", "example": "a"}),
    ],
)
def test_forms_that_generators_know(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    """References keep their names, and what OpenAPI 3.0 lacks gets its usual form there."""
    assert convert_schema(schema, "#") == expected


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"patternProperties": {"a": {}}}, "#/A: OpenAPI 3.0 has no patternProperties"),
        ({"properties": {"b": {"if": {}}}}, "#/A/properties/b: OpenAPI 3.0 has no if"),
        ({"contentEncoding": "base32"}, "#/A: OpenAPI 3.0 has no contentEncoding 'base32'"),
    ],
)
def test_inexpressible_schema_is_rejected(schema: dict[str, Any], message: str) -> None:
    """The error names the place and the keyword."""
    with pytest.raises(ValueError, match=message):
        convert_schema(schema, "#/A")
