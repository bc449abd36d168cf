"""The plain document of a version, valid by the judges of each format."""

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


def loaded(version: str, form: str) -> dict[str, Any]:
    text = export(SCHEMA, version, form)
    found: dict[str, Any] = yaml.safe_load(text) if form == "openapi-yaml" else json.loads(text)
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_openapi_is_valid_and_plain(version: str) -> None:
    """YAML and JSON say the same; the document names its version and has no marks of ours."""
    document = loaded(version, "openapi-json")
    OpenAPIV31SpecValidator(document).validate()
    assert document == loaded(version, "openapi-yaml")
    assert document["info"]["version"] == version
    assert not [key for key in marks(document) if key not in ("x-sdk-version", "x-sdk-method")]


def marks(node: Any) -> list[str]:
    if isinstance(node, list):
        return [key for item in node for key in marks(item)]
    if not isinstance(node, dict):
        return []
    here = [key for key, item in node.items() if key.startswith("x-") and "schema" not in str(item)]
    return here + [key for item in node.values() for key in marks(item)]


@pytest.mark.parametrize("version", VERSIONS)
def test_json_schema_is_valid(version: str) -> None:
    """The metaschema takes it, and a type can be used by reference."""
    document = loaded(version, "json-schema")
    Draft202012Validator.check_schema(document)
    chunks = Draft202012Validator({**document, "$ref": "#/$defs/ModelInput"})
    assert chunks.is_valid({"chunks": [{"tokens": [1, 2]}]})
    assert not chunks.is_valid({"chunks": [{"tokens": ["a"]}]})


@pytest.mark.parametrize("version", ["0.18.2", "0.22.7", "0.30.4", "0.38.0"])
def test_proto_is_taken_by_protoc(tmp_path: Path, version: str) -> None:
    """The .proto of a version compiles and has no times in it."""
    text = export(SCHEMA, version, "proto")
    (tmp_path / FILE).write_text(text)
    assert compile_descriptors(tmp_path / FILE)
    assert "since:" not in text


def test_headers_of_all_operations_are_written_out() -> None:
    """Each request but GET has X-Idempotency-Key, and from 0.34.0 answers may carry deprecation notes."""
    for version, noted in (("0.16.1", False), ("0.38.0", True)):
        for item in loaded(version, "openapi-json")["paths"].values():
            for method, operation in item.items():
                headers = {p["name"] for p in operation.get("parameters", []) if p["in"] == "header"}
                assert ("X-Idempotency-Key" in headers) == (method != "get")
                assert ("x-sdk-method" in headers) == noted
                assert ("x-deprecation-note" in operation["responses"]["default"]["headers"]) == noted


def test_a_version_without_binary_messages_is_refused() -> None:
    """The error says since when there are any."""
    with pytest.raises(ValueError, match=r"0\.16\.1 has no protobuf messages; 0\.18\.2 is the first"):
        export(SCHEMA, "0.16.1", "proto")


def test_an_unknown_format_is_refused() -> None:
    """The error names those there are."""
    with pytest.raises(ValueError, match="'raml' is unknown; give one of openapi-yaml, openapi-json, json-schema"):
        export(SCHEMA, "0.16.1", "raml")


@pytest.mark.parametrize("form", FORMATS)
def test_the_command_writes_a_file_or_to_standard_output(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both hold what the function gives."""
    file = tmp_path / "out"
    assert main(["export", "--wire", "0.38.0", "--format", form]) == 0
    assert main(["export", "--wire", "0.38.0", "--format", form, "--out", str(file)]) == 0
    assert capsys.readouterr().out == file.read_text() == export(SCHEMA, "0.38.0", form)


def test_the_command_refuses_a_version_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    """2 and the reason on standard error."""
    assert main(["export", "--wire", "newest", "--format", "proto"]) == 2
    assert "'newest' is not numbers" in capsys.readouterr().err
