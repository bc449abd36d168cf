"""Links between operations: each leads to an operation, parameters and fields that its version has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.exported_contract import VERSIONS, openapi_document

Json = dict[str, Any]


def list_operations(document: Json) -> dict[str, Json]:
    return {operation["operationId"]: operation for item in document["paths"].values() for operation in item.values()}


def list_links(document: Json) -> Iterator[tuple[str, Json, Json, Json]]:
    """Yield the operation, its response, and each link of the response."""
    for name, operation in list_operations(document).items():
        for response in operation["responses"].values():
            for link in response.get("links", {}).values():
                yield name, operation, response, link


def resolve(document: Json, schema: Json) -> Json:
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def has_value(document: Json, schema: Json, steps: list[str]) -> bool:
    """Return whether a JSON pointer can lead to a value of a schema."""
    schema = resolve(document, schema)
    members = [*schema.get("anyOf", []), *schema.get("oneOf", [])]
    if members:
        return any(has_value(document, member, steps) for member in members)
    if not steps:
        return True
    inner = schema["items"] if steps[0].isdigit() else schema.get("properties", {}).get(steps[0])
    return inner is not None and has_value(document, inner, steps[1:])


def is_resolvable(document: Json, operation: Json, response: Json, expression: str) -> bool:
    if expression.startswith("$request.path."):
        return expression.removeprefix("$request.path.") in {p["name"] for p in operation["parameters"]}
    schema = response["content"]["application/json"]["schema"]
    return has_value(document, schema, expression.removeprefix("$response.body#/").split("/"))


@pytest.mark.parametrize("version", VERSIONS)
def test_links_lead_to_what_the_version_has(version: str) -> None:
    """The operation, its parameters and the fields of its body exist, and so do the values of the response."""
    document = openapi_document(version)
    operations = list_operations(document)
    links = list(list_links(document))
    assert links
    for name, operation, response, link in links:
        target = operations[link["operationId"]]
        assert link["description"].endswith("."), name
        assert {*link.get("parameters", {})} <= {p["name"] for p in target.get("parameters", [])}, (name, link)
        fields = json.loads(link.get("requestBody", "{}"))
        for field in fields:
            body = target["requestBody"]["content"]["application/json"]["schema"]
            assert has_value(document, body, [field]), (name, link)
        expressions = [*link.get("parameters", {}).values(), *(text.strip("{}") for text in fields.values())]
        for expression in expressions:
            assert is_resolvable(document, operation, response, expression), (name, link)


@pytest.mark.parametrize("version", ["0.3.0", "0.16.1", "0.38.0"])
def test_links_lead_from_a_session_to_samples(version: str) -> None:
    """A reader reaches the model, its future, its checkpoint, and a sampler on the checkpoint."""
    steps = {(name, link["operationId"]) for name, _, _, link in list_links(openapi_document(version))}
    assert {
        ("create_session", "create_model"),
        ("create_model", "retrieve_future"),
        ("retrieve_future", "save_weights_for_sampler"),
        ("save_weights_for_sampler", "retrieve_future"),
        ("retrieve_future", "create_sampling_session"),
        ("create_sampling_session", "asample"),
        ("asample", "retrieve_future"),
    } <= steps
