"""The plain document of one wire version, in formats that other tools read."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tinkerwire_base.conversion.versioning import NO_VERSION, parse_version, project

from .bundle import load
from .evidence import MARK, add_evidence, load_evidence
from .openapi30 import convert_to_openapi30
from .protobuf import load_proto, project_proto, render_proto
from .unions import write_exclusive_unions

Json = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
COMPONENTS = "#/components/schemas/"
KEPT_MARKS = frozenset({MARK, "x-contract-version"})
"""Marks that exported documents have."""


def export(folder: Path, version: str, format_name: str) -> str:
    """Export the contract in ``folder`` at ``version`` in one of FORMATS.

    Raises:
        ValueError: the format or the version is unknown, or the version has no protobuf messages to export.
    """
    if format_name not in FORMATS:
        raise ValueError(f"format {format_name!r} is unknown; give one of {', '.join(FORMATS)}")
    return FORMATS[format_name](folder, version)


def build_openapi(folder: Path, version: str) -> Json:
    """Build the plain OpenAPI document of one version; each operation lists its headers."""
    document = project(load(folder), version)
    document["info"]["version"] = version
    _remove_unused_tags(document)
    _add_headers(document)
    _write_link_bodies(document)
    evidence = load_evidence(folder)
    if evidence:
        add_evidence(document, evidence, version)
    stated = _apply_stated(write_exclusive_unions(document))
    plain: Json = _remove_marks(_open_tuples(stated))
    return plain


def build_json_schema(folder: Path, version: str) -> Json:
    """Build one JSON Schema with the types of one version under $defs."""
    return convert_to_json_schema(build_openapi(folder, version))


def convert_to_json_schema(document: Json) -> Json:
    """Return the JSON Schema with the types of a plain document; ``document`` does not change."""
    info = document["info"]
    return {
        "$schema": DIALECT,
        "title": info["title"],
        "description": f"Types of the Tinker wire, version {info['version']}; one entry under $defs each.",
        "$defs": _to_json_schema(document["components"]["schemas"]),
    }


def _openapi_yaml(folder: Path, version: str) -> str:
    text: str = yaml.dump(
        build_openapi(folder, version), Dumper=_PlainDumper, sort_keys=False, allow_unicode=True, width=110
    )
    return text


def _openapi_json(folder: Path, version: str) -> str:
    return json.dumps(build_openapi(folder, version), indent=2, ensure_ascii=False) + "\n"


def _openapi30(folder: Path, version: str) -> str:
    return json.dumps(convert_to_openapi30(build_openapi(folder, version)), indent=2, ensure_ascii=False) + "\n"


def _json_schema(folder: Path, version: str) -> str:
    return json.dumps(build_json_schema(folder, version), indent=2, ensure_ascii=False) + "\n"


def _proto(folder: Path, version: str) -> str:
    proto = load_proto(folder)
    if not proto.declarations:
        raise ValueError(f"contract {folder}: has no protobuf messages; choose another format")
    first = min((declaration.availability.since or NO_VERSION for declaration in proto.declarations), key=parse_version)
    if parse_version(version) < parse_version(first):
        raise ValueError(f"wire version {version} has no protobuf messages; {first} is the first version that has")
    return render_proto(project_proto(proto, version))


FORMATS: Mapping[str, Callable[[Path, str], str]] = {
    "openapi-yaml": _openapi_yaml,
    "openapi-json": _openapi_json,
    "openapi-3.0": _openapi30,
    "json-schema": _json_schema,
    "proto": _proto,
}


class _PlainDumper(yaml.SafeDumper):
    """Dumper without YAML anchors, because few readers of OpenAPI support them."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _add_headers(document: Json) -> Json:
    """Add the headers of all operations to each operation."""
    headers = document.pop("x-headers", {})
    for item in document["paths"].values():
        for method, operation in item.items():
            common = [
                {key: value for key, value in header.items() if key != "x-methods"}
                for header in headers.get("request", [])
                if method in header["x-methods"]
            ]
            if common:
                operation["parameters"] = [*operation.get("parameters", []), *copy.deepcopy(common)]
            for response in operation["responses"].values():
                merged = {**response.get("headers", {}), **copy.deepcopy(headers.get("response", {}))}
                if merged:
                    response["headers"] = merged
    return document


def _remove_unused_tags(document: Json) -> None:
    used = {tag for item in document["paths"].values() for operation in item.values() for tag in operation["tags"]}
    document["tags"] = [tag for tag in document["tags"] if tag["name"] in used]


def _write_link_bodies(document: Json) -> None:
    """Write the bodies of links as JSON texts, because the parser of openapi-generator rejects objects there."""
    for item in document["paths"].values():
        for operation in item.values():
            for response in operation["responses"].values():
                for link in response.get("links", {}).values():
                    if isinstance(link.get("requestBody"), dict):
                        fields = {name: f"{{{expression}}}" for name, expression in link["requestBody"].items()}
                        link["requestBody"] = json.dumps(fields)


def _apply_stated(node: Any) -> Any:
    """Add the constraints that the SDK states in words; those between fields need fields that the version has."""
    if isinstance(node, list):
        return [_apply_stated(item) for item in node]
    if not isinstance(node, dict):
        return node
    applied = {key: _apply_stated(value) for key, value in node.items()}
    stated = dict(node.get("x-stated", {}))
    if "dependentRequired" in stated:
        rules = stated.pop("dependentRequired").items()
        kept = {field: others for field, others in rules if {field, *others} <= node["properties"].keys()}
        stated |= {"dependentRequired": kept} if kept else {}
    return applied | stated


def _open_tuples(node: Any) -> Any:
    """Leave out ``items: false`` of tuples whose length maxItems fixes; openapi-python-client cannot parse it."""
    if isinstance(node, list):
        return [_open_tuples(item) for item in node]
    if not isinstance(node, dict):
        return node
    is_closed = node.get("items") is False and node.get("maxItems") == len(node.get("prefixItems", []))
    return {key: _open_tuples(value) for key, value in node.items() if not (is_closed and key == "items")}


def _remove_marks(node: Any) -> Any:
    """Remove the marks that only our generators read; properties whose names look like marks stay."""
    if isinstance(node, list):
        return [_remove_marks(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: {name: _remove_marks(item) for name, item in value.items()}
        if key in ("properties", "headers") and isinstance(value, dict)
        else _remove_marks(value)
        for key, value in node.items()
        if key in KEPT_MARKS or not key.startswith("x-")
    }


def _to_json_schema(node: Any) -> Any:
    """Point references to $defs; remove the discriminator, which JSON Schema does not have."""
    if isinstance(node, list):
        return [_to_json_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    schema = {}
    for key, value in node.items():
        if key == "$ref" and isinstance(value, str):
            schema[key] = "#/$defs/" + value.removeprefix(COMPONENTS)
        elif not (key == "discriminator" and "propertyName" in value):
            schema[key] = _to_json_schema(value)
    return schema
