"""The plain document of a version, valid by an independent validator of each format."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from support.exported_contract import SCHEMA, export_text, openapi_document
from support.exported_contract import VERSIONS as ALL_VERSIONS
from tinkerwire_codegen.cli import main
from tinkerwire_codegen.contract.export import FORMATS, export
from tinkerwire_codegen.contract.protobuf import FILE, compile_descriptors
from tinkerwire_codegen.contract.source import LOADER

VERSIONS = ("0.1.0", "0.4.1", "0.16.1", "0.25.0", "0.38.0")


def load_export(version: str, form: str) -> dict[str, Any]:
    text = export_text(version, form)
    exported: dict[str, Any] = yaml.load(text, LOADER) if form == "openapi-yaml" else json.loads(text)
    return exported


@pytest.mark.parametrize("version", VERSIONS)
def test_openapi_is_valid_and_plain(version: str) -> None:
    """YAML and JSON are equal; the document names its version and has no marks of ours."""
    document = load_export(version, "openapi-json")
    OpenAPIV31SpecValidator(document).validate()
    assert document == load_export(version, "openapi-yaml")
    assert document["info"]["version"] == version
    kept = {"x-sdk-version", "x-sdk-method", "x-evidence", "x-contract-version"}
    assert not [key for key in list_marks(document) if key not in kept]


def list_marks(node: Any) -> list[str]:
    if isinstance(node, list):
        return [key for item in node for key in list_marks(item)]
    if not isinstance(node, dict):
        return []
    keys = [key for key, item in node.items() if key.startswith("x-") and "schema" not in str(item)]
    return keys + [key for item in node.values() for key in list_marks(item)]


@pytest.mark.parametrize("version", VERSIONS)
def test_json_schema_is_valid(version: str) -> None:
    """The metaschema accepts it, and a type can be used by reference."""
    document = load_export(version, "json-schema")
    Draft202012Validator.check_schema(document)
    chunks = Draft202012Validator({**document, "$ref": "#/$defs/ModelInput"})
    assert chunks.is_valid({"chunks": [{"tokens": [1, 2], "type": "encoded_text"}]})
    assert not chunks.is_valid({"chunks": [{"tokens": ["a"], "type": "encoded_text"}]})


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_tagged_unions_are_one_of_with_required_tags(version: str) -> None:
    """Each union with a discriminator is oneOf; the mapping names its members, and each requires its tag."""
    schemas = openapi_document(version)["components"]["schemas"]
    unions = [schema for schema in schemas.values() if "discriminator" in schema]
    assert unions
    for union in unions:
        tag, mapping = union["discriminator"]["propertyName"], union["discriminator"]["mapping"]
        assert [member["$ref"] for member in union["oneOf"]] == list(mapping.values())
        assert "anyOf" not in union
        for value, target in mapping.items():
            member = schemas[target.rpartition("/")[2]]
            assert member["properties"][tag]["const"] == value
            assert tag in member["required"]


@pytest.mark.parametrize(
    ("version", "is_tagged"),
    [("0.2.0", True), ("0.3.0", False), ("0.4.1", False), ("0.16.1", False), ("0.18.2", True), ("0.38.0", True)],
)
def test_chunk_tags_are_those_that_clients_send(version: str, is_tagged: bool) -> None:
    """The official clients of 0.3.0 to 0.16.1 send no tags of chunks, so keys select the member there."""
    check = Draft202012Validator({**load_export(version, "json-schema"), "$ref": "#/$defs/ModelInput"})
    assert check.is_valid({"chunks": [{"tokens": [1, 2]}]}) is not is_tagged
    assert check.is_valid({"chunks": [{"tokens": [1, 2], "type": "encoded_text"}]})
    assert not check.is_valid({"chunks": [{"tokens": [1, 2], "type": "image"}]})
    union = load_export(version, "openapi-json")["components"]["schemas"]["ModelInputChunk"]
    assert ("discriminator" in union) is is_tagged
    assert "oneOf" in union


@pytest.mark.parametrize("version", VERSIONS)
def test_openapi_python_client_accepts_the_document(version: str, tmp_path: Path) -> None:
    """The generator of endpoint stubs parses the whole document; its configuration names the binary media types."""
    (tmp_path / "openapi.json").write_text(export_text(version, "openapi-json"))
    overrides = dict.fromkeys(("application/x-protobuf", "application/gzip"), "application/octet-stream")
    (tmp_path / "config.json").write_text(json.dumps({"content_type_overrides": overrides, "post_hooks": []}))
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--fail-on-warning", "--meta", "none"]
    command += ["--path", "openapi.json", "--config", "config.json", "--output-path", "client"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("version", ["0.18.2", "0.22.7", "0.30.4", "0.38.0"])
def test_exported_proto_compiles(tmp_path: Path, version: str) -> None:
    """The .proto of a version compiles and has no version comments."""
    text = export(SCHEMA, version, "proto")
    (tmp_path / FILE).write_text(text)
    assert compile_descriptors(tmp_path / FILE)
    assert "since:" not in text


def test_operations_list_common_headers() -> None:
    """Each request but GET has X-Idempotency-Key, and from 0.34.0 responses may have deprecation notes."""
    for version, noted in (("0.16.1", False), ("0.38.0", True)):
        for item in load_export(version, "openapi-json")["paths"].values():
            for method, operation in item.items():
                headers = {p["name"] for p in operation.get("parameters", []) if p["in"] == "header"}
                assert ("X-Idempotency-Key" in headers) == (method != "get")
                assert ("x-sdk-method" in headers) == noted
                assert ("x-deprecation-note" in operation["responses"]["default"]["headers"]) == noted


def test_version_without_protobuf_is_rejected() -> None:
    """The error names the first version with protobuf messages."""
    with pytest.raises(ValueError, match=r"0\.16\.1 has no protobuf messages; 0\.18\.2 is the first"):
        export(SCHEMA, "0.16.1", "proto")


def test_unknown_format_is_rejected() -> None:
    """The error lists the formats."""
    with pytest.raises(ValueError, match=r"'raml' is unknown; give one of openapi-yaml, openapi-json, openapi-3\.0"):
        export(SCHEMA, "0.16.1", "raml")


@pytest.mark.parametrize("form", FORMATS)
def test_command_writes_file_or_standard_output(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file and standard output hold the result of the function."""
    file = tmp_path / "out"
    assert main(["export", "--wire", "0.38.0", "--format", form]) == 0
    assert main(["export", "--wire", "0.38.0", "--format", form, "--out", str(file)]) == 0
    assert capsys.readouterr().out == file.read_text() == export_text("0.38.0", form)


def test_command_rejects_malformed_version(capsys: pytest.CaptureFixture[str]) -> None:
    """The command exits with 2 and prints the reason to standard error."""
    assert main(["export", "--wire", "newest", "--format", "proto"]) == 2
    assert "expected numbers separated by dots, such as 0.16.1, got 'newest'" in capsys.readouterr().err
