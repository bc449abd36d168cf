"""Texts and stated constraints of exported documents: each version describes itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from support.contract_documents import list_parts
from support.exported_contract import SCHEMA, VERSIONS, openapi_document
from tinkerwire_base.conversion.versioning import parse_version
from tinkerwire_codegen.contract.bundle import load
from tinkerwire_codegen.contract.export import convert_to_json_schema
from tinkerwire_codegen.contract.protobuf import load_proto

CONTRACT = load(SCHEMA)
MESSAGES = {declaration.name for declaration in load_proto(SCHEMA).declarations}
VALUES = {"api_key"}
"""Names of fields that are also values, which descriptions may name in any version."""


def list_texts(document: Any) -> Iterator[tuple[str, str]]:
    for place, node in list_parts(document):
        yield from ((place, node[key]) for key in ("description", "summary") if isinstance(node.get(key), str))


def list_names(document: dict[str, Any]) -> set[str]:
    """List the names of types, fields, operations and parameters that a word of a text can only mean."""
    names = set(document["components"]["schemas"])
    for schema in document["components"]["schemas"].values():
        names |= schema.get("properties", {}).keys()
    for path, item in document["paths"].items():
        names |= set(re.findall(r"\w+", path))
        for operation in item.values():
            names |= {operation["operationId"], *(parameter["name"] for parameter in operation.get("parameters", []))}
    return {name for name in names if "_" in name or re.match(r"[A-Z][a-z]+[A-Z]", name)}


ALL_NAMES = list_names(CONTRACT)


@pytest.mark.parametrize("version", VERSIONS)
def test_descriptions_name_no_later_version(version: str) -> None:
    """A reader of one version learns nothing about versions that came after it."""
    for place, text in list_texts(openapi_document(version)):
        for mentioned in re.findall(r"\b0\.\d+\.\d+\b", text):
            assert parse_version(mentioned) <= parse_version(version), f"{place}: {text}"


@pytest.mark.parametrize("version", VERSIONS)
def test_descriptions_name_only_what_the_version_has(version: str) -> None:
    """Types, fields and operations that a description names are in the document, or are protobuf messages."""
    document = openapi_document(version)
    known = list_names(document) | MESSAGES | VALUES
    for place, text in list_texts(document):
        missing = set(re.findall(r"\w+", text)) & ALL_NAMES - known
        assert not missing, f"{place}: {text}"


@pytest.mark.parametrize("version", ["0.1.0", "0.38.0"])
def test_tags_without_operations_are_left_out(version: str) -> None:
    """The groups of the document have operations: wire 0.1.0 has no sessions."""
    document = openapi_document(version)
    tags = {tag["name"] for tag in document["tags"]}
    assert tags == {tag for item in document["paths"].values() for op in item.values() for tag in op["tags"]}
    assert ("session" in tags) == (version != "0.1.0")


def is_valid(version: str, name: str, value: dict[str, Any]) -> bool:
    document = convert_to_json_schema(openapi_document(version))
    return bool(Draft202012Validator({**document, "$ref": f"#/$defs/{name}"}).is_valid(value))


@pytest.mark.parametrize(
    ("version", "ttl", "valid"),
    [("0.28.1", 1, True), ("0.29.1", 3599, False), ("0.29.1", 3600, True), ("0.38.0", 315360001, False)],
)
def test_stated_limits_of_ttl_are_exported(version: str, ttl: int, valid: bool) -> None:
    """The SDK states 1 hour to 10 years since 0.29.1; null keeps its meaning."""
    for name, body in (
        ("SaveWeightsRequest", {"model_id": "m"}),
        ("SaveWeightsForSamplerRequest", {"model_id": "m"}),
        ("SaveWeightsExternalRequest", {"model_id": "m", "path": "a"}),
        ("SetCheckpointTtlRequest", {}),
    ):
        assert is_valid(version, name, {**body, "ttl_seconds": ttl}) is valid, name
        assert is_valid(version, name, {**body, "ttl_seconds": None}), name


def test_stated_rules_between_fields_are_exported() -> None:
    """A sample of a session has a seq_id, and logprobs of the last tokens need logprobs of the prompt."""
    chunk = {"type": "encoded_text", "tokens": [1]}
    body: dict[str, Any] = {"prompt": {"chunks": [chunk]}, "sampling_params": {}}
    assert is_valid("0.38.0", "SampleRequest", body)
    assert not is_valid("0.38.0", "SampleRequest", {**body, "sampling_session_id": "s"})
    assert is_valid("0.38.0", "SampleRequest", {**body, "sampling_session_id": "s", "seq_id": 0})
    assert not is_valid("0.38.0", "SampleRequest", {**body, "prompt_logprobs_last_n": 1})
    assert not is_valid("0.38.0", "SampleRequest", {**body, "prompt_logprobs_last_n": 0, "prompt_logprobs": True})
    assert is_valid("0.38.0", "SampleRequest", {**body, "prompt_logprobs_last_n": 1, "prompt_logprobs": True})
    assert "prompt_logprobs_last_n" not in str(openapi_document("0.32.0"))


def test_deprecated_fields_are_marked() -> None:
    """The audit log has event_details since 0.26.2, which makes three fields obsolete."""
    for version, expected in (("0.25.0", False), ("0.26.2", True), ("0.38.0", True)):
        fields = openapi_document(version)["components"]["schemas"]["AuditLogEntry"]["properties"]
        assert {name for name, field in fields.items() if field.get("deprecated")} == (
            {"model_id", "tinker_path", "purpose"} if expected else set()
        )
