"""The contract is valid OpenAPI at every version, described, dated, and as the generators need it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from support.contract_documents import list_parts
from tinkerwire_base.conversion.versioning import parse_version, project, union_document
from tinkerwire_codegen.contract.bundle import INT64, check_refs, load
from tinkerwire_codegen.contract.protobuf import describe_proto, load_proto, project_proto
from tinkerwire_codegen.official.comparison import list_protobuf_messages

CONTRACT = load(Path(__file__).parents[3] / "schema")
PROTO = load_proto(Path(__file__).parents[3] / "schema")
SCHEMAS: dict[str, Any] = CONTRACT["components"]["schemas"]
PINNED = ("0.1.0", "0.4.1", "0.6.3", "0.16.1", "0.18.2", "0.25.0", "0.30.4", "0.38.0")
VERSIONS = (
    *("0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.4.1", "0.5.1", "0.6.0", "0.6.3", "0.7.0", "0.8.1", "0.9.0"),
    *("0.10.0", "0.11.0", "0.12.0", "0.13.1", "0.14.0", "0.15.0", "0.16.1", "0.18.2", "0.19.0", "0.20.0"),
    *("0.21.0", "0.22.7", "0.23.4", "0.24.1", "0.25.0", "0.26.2", "0.27.2", "0.28.1", "0.29.1", "0.30.4"),
    *("0.31.0", "0.32.0", "0.33.1", "0.34.0", "0.35.0", "0.36.0", "0.38.0"),
)
"""The wire versions that were read; nothing in the contract can change at another one."""


def list_operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for operation in item.values():
            yield path, operation


def test_bundled_document_is_openapi() -> None:
    """The bundled document with all its marks passes the validator."""
    OpenAPIV31SpecValidator(CONTRACT).validate()


@pytest.mark.parametrize("version", PINNED)
def test_each_version_is_openapi(version: str) -> None:
    """The document of one version passes the validator and has no version marks."""
    document = project(CONTRACT, version)
    OpenAPIV31SpecValidator(document).validate()
    assert not re.search(r"x-(since|until|absent|history|enum-since|enum-until)", repr(document))


@pytest.mark.parametrize("version", VERSIONS)
def test_each_reference_has_a_target_in_its_version(version: str) -> None:
    """In every version that was read, each reference has a target."""
    check_refs(project(CONTRACT, version))


def test_union_of_all_versions_is_openapi() -> None:
    """The document that models are generated from passes the validator."""
    OpenAPIV31SpecValidator(union_document(CONTRACT)).validate()


def test_everything_is_described() -> None:
    """Every schema, property, parameter, header and response has a description that ends in a full stop."""
    described = {f"schema {name}": schema for name, schema in SCHEMAS.items()}
    for name, schema in SCHEMAS.items():
        described |= {f"{name}.{field}": detail for field, detail in schema.get("properties", {}).items()}
    for path, operation in list_operations(CONTRACT):
        described |= {f"{path} {p['name']}": p for p in operation.get("parameters", [])}
        for status, response in operation["responses"].items():
            described[f"{path} {status}"] = response
            described |= {f"{path} {status} {h}": v for h, v in response.get("headers", {}).items()}
        assert operation["summary"].endswith("."), path
        described[f"{path} {operation['operationId']}"] = operation
    undescribed = [
        location for location, node in described.items() if not str(node.get("description", "")).endswith(".")
    ]
    assert not undescribed, [(key, described[key].get("description")) for key in undescribed]


def test_every_mark_names_a_version_that_was_read() -> None:
    """Only versions that were read can appear; any other would be a guess."""
    for place, node in list_parts(CONTRACT):
        versions = [node.get("x-since"), node.get("x-until"), *node.get("x-enum-since", {}).values()]
        versions += [entry["until"] for entry in node.get("x-history", [])]
        versions += [end for gap in node.get("x-absent", []) for end in gap.values()]
        assert {v for v in versions if v is not None} <= set(VERSIONS), place


def test_every_schema_and_operation_is_dated() -> None:
    """Schemas and operations have x-since."""
    assert [name for name, schema in SCHEMAS.items() if "x-since" not in schema] == []
    assert [path for path, operation in list_operations(CONTRACT) if "x-since" not in operation] == []


def test_every_enum_union_and_object_has_a_name() -> None:
    """Generators invent no names; null, and a string beside an enum, do not count as union members."""
    for place, node in list_parts(SCHEMAS):
        if place.count("/") == 1 or re.fullmatch(r"#/\w+/x-history/\d+/schema", place):
            continue
        assert "enum" not in node, place
        assert not isinstance(node.get("properties"), dict) or "type" not in node, place
        members = [member for member in node.get("anyOf", []) if member != {"type": "null"}]
        if len(members) > 1:
            enum, text = members
            assert "enum" in SCHEMAS[enum["$ref"].rpartition("/")[2]], place
            assert text == {"type": "string"}, place


def test_schemas_use_only_what_generators_support() -> None:
    """Unions are anyOf, pairs are closed, and every integer has the bounds of 64 bits or its own."""
    for place, node in list_parts(SCHEMAS):
        assert not {"oneOf", "allOf", "not", "if", "patternProperties"} & node.keys(), place
        if "prefixItems" in node:
            assert node["items"] is False, place
            assert node["minItems"] == node["maxItems"] == len(node["prefixItems"]), place
        if "integer" in (node.get("type"), *_list_marks(node.get("type"))):
            assert node.keys() >= INT64.keys(), place


def _list_marks(kind: Any) -> list[str]:
    return kind if isinstance(kind, list) else []


def test_type_tags_are_constant_and_optional() -> None:
    """Clients of wire 0.3.0 to 0.16.1 send no type tag, so servers cannot require it; older chunks had it."""
    for name, schema in SCHEMAS.items():
        if name in ("EncodedTextChunkParam", "ImageAssetPointerChunkParam"):
            continue
        tag = schema.get("properties", {}).get("type")
        if tag and "const" in tag:
            assert tag["default"] == tag["const"], name
            assert "type" not in schema.get("required", []), name


def test_operations_have_names_tags_and_parameters() -> None:
    """Operation names are unique, each has one tag of the document, and its path parameters are declared."""
    names = [operation["operationId"] for _, operation in list_operations(CONTRACT)]
    assert len(names) == len(set(names))
    tags = {tag["name"] for tag in CONTRACT["tags"]}
    for path, operation in list_operations(CONTRACT):
        assert len(operation["tags"]) == 1 and set(operation["tags"]) <= tags, path
        declared = {p["name"] for p in operation.get("parameters", []) if p["in"] == "path"}
        assert declared == set(re.findall(r"{(\w+)}", path)), path
        assert all(p["required"] for p in operation.get("parameters", []) if p["in"] == "path"), path
        assert "default" in operation["responses"], path
        assert ("requestBody" in operation) <= ("422" in operation["responses"]), path


@pytest.mark.parametrize("version", VERSIONS)
def test_protobuf_bodies_are_messages_of_their_version(version: str) -> None:
    """The messages of protobuf bodies exist in the .proto at each version."""
    message_names = [
        name for names in list_protobuf_messages(project(CONTRACT, version)["paths"]).values() for name in names
    ]
    assert set(message_names) <= describe_proto(project_proto(PROTO, version))["messages"].keys()
    assert bool(message_names) == (parse_version(version) >= parse_version("0.18.2"))


def test_loading_is_deterministic() -> None:
    """The bundle depends on its files only, including the order of its keys."""
    second_contract = load(Path(__file__).parents[3] / "schema")
    assert repr(second_contract) == repr(CONTRACT)


HEAD = "openapi: 3.1.0\ninfo: {title: t, version: 0.3.0}\nx-families: [one, two]\n"


def write(folder: Path, **files: str) -> Path:
    for name, text in {"openapi": HEAD, "one": "{}", "two": "{}", **files}.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


def test_schema_in_two_files_is_rejected(tmp_path: Path) -> None:
    """The error names the schema and both files."""
    twice = "components: {schemas: {A: {type: string}}}"
    with pytest.raises(ValueError, match=r"schemas A is defined in one\.yaml and in two\.yaml"):
        load(write(tmp_path, one=twice, two=twice))


def test_path_in_two_files_is_rejected(tmp_path: Path) -> None:
    """A path belongs to one family too."""
    with pytest.raises(ValueError, match=r"path /a is defined in one\.yaml and in two\.yaml"):
        load(write(tmp_path, one="paths: {/a: {}}", two="paths: {/a: {}}"))


def test_reference_without_target_is_rejected(tmp_path: Path) -> None:
    """The error names the reference and its place."""
    text = "components: {schemas: {A: {properties: {b: {$ref: '#/components/schemas/B'}}}}}"
    with pytest.raises(ValueError, match=r"#/components/schemas/A/properties/b: #/components/schemas/B does not exist"):
        load(write(tmp_path, one=text))


def test_discriminator_without_target_is_rejected(tmp_path: Path) -> None:
    """Targets of discriminators are references too."""
    tag = "{propertyName: type, mapping: {b: '#/components/schemas/B'}}"
    text = f"components: {{schemas: {{A: {{discriminator: {tag}}}}}}}"
    with pytest.raises(ValueError, match=r"discriminator/mapping/b: #/components/schemas/B does not exist"):
        load(write(tmp_path, one=text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a list", "must be a mapping, got list"),
        ("a: [", "must be YAML"),
        ("components: {examples: {}}", r"components\.examples"),
    ],
)
def test_malformed_file_is_rejected(tmp_path: Path, text: str, message: str) -> None:
    """The error names the file and the problem."""
    with pytest.raises(ValueError, match=rf"two\.yaml:[12]: .*{message}"):
        load(write(tmp_path, two=text))


def test_missing_family_is_rejected(tmp_path: Path) -> None:
    """The error names the missing file."""
    folder = write(tmp_path)
    (folder / "two.yaml").unlink()
    with pytest.raises(ValueError, match=r"two\.yaml: file does not exist"):
        load(folder)


def test_shared_parameters_and_responses_are_copied(tmp_path: Path) -> None:
    """Each place gets a full copy that can change independently."""
    text = """
components:
  parameters: {P: {name: p, in: query, schema: {type: integer}}}
  responses: {R: {description: Done.}}
"""
    response = "{'200': {$ref: '#/components/responses/R'}}"
    get = f"{{parameters: [{{$ref: '#/components/parameters/P'}}], responses: {response}}}"
    document = load(write(tmp_path, one=text, two=f"paths: {{/a: {{get: {get}}}, /b: {{get: {get}}}}}"))
    assert document["components"] == {"schemas": {}}
    first, second = document["paths"]["/a"]["get"], document["paths"]["/b"]["get"]
    assert first == second
    assert first["parameters"] == [{"name": "p", "in": "query", "schema": {"type": "integer", **INT64}}]
    assert first["parameters"][0] is not second["parameters"][0]


def test_existing_integer_bounds_stay(tmp_path: Path) -> None:
    """The bounds of 64 bits only fill in missing bounds."""
    document = load(write(tmp_path, one="components: {schemas: {A: {type: [integer, 'null'], minimum: 0}}}"))
    assert document["components"]["schemas"]["A"] == {**INT64, "type": ["integer", "null"], "minimum": 0}
