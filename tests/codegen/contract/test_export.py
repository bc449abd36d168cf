"""The plain document of a version, valid by an independent validator of each format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from tinkerwire_codegen.cli import main
from tinkerwire_codegen.contract.export import FORMATS, export
from tinkerwire_codegen.contract.protobuf import FILE, compile_descriptors

SCHEMA = Path(__file__).parents[3] / "schema"
VERSIONS = ("0.1.0", "0.4.1", "0.16.1", "0.25.0", "0.38.0")


def load_export(version: str, form: str) -> dict[str, Any]:
    text = export(SCHEMA, version, form)
    exported: dict[str, Any] = yaml.safe_load(text) if form == "openapi-yaml" else json.loads(text)
    return exported


@pytest.mark.parametrize("version", VERSIONS)
def test_openapi_is_valid_and_plain(version: str) -> None:
    """YAML and JSON are equal; the document names its version and has no marks of ours."""
    document = load_export(version, "openapi-json")
    OpenAPIV31SpecValidator(document).validate()
    assert document == load_export(version, "openapi-yaml")
    assert document["info"]["version"] == version
    assert not [key for key in list_marks(document) if key not in ("x-sdk-version", "x-sdk-method")]


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
    assert chunks.is_valid({"chunks": [{"tokens": [1, 2]}]})
    assert not chunks.is_valid({"chunks": [{"tokens": ["a"]}]})


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
    with pytest.raises(ValueError, match="'raml' is unknown; give one of openapi-yaml, openapi-json, json-schema"):
        export(SCHEMA, "0.16.1", "raml")


@pytest.mark.parametrize("form", FORMATS)
def test_command_writes_file_or_standard_output(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file and standard output hold the result of the function."""
    file = tmp_path / "out"
    assert main(["export", "--wire", "0.38.0", "--format", form]) == 0
    assert main(["export", "--wire", "0.38.0", "--format", form, "--out", str(file)]) == 0
    assert capsys.readouterr().out == file.read_text() == export(SCHEMA, "0.38.0", form)


def test_command_rejects_malformed_version(capsys: pytest.CaptureFixture[str]) -> None:
    """The command exits with 2 and prints the reason to standard error."""
    assert main(["export", "--wire", "newest", "--format", "proto"]) == 2
    assert "expected numbers separated by dots, such as 0.16.1, got 'newest'" in capsys.readouterr().err
