"""The plain document of one wire version, in a form that other tools read."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tinkerwire_base.conversion.versioning import parse_version, project

from .bundle import load
from .protobuf import load_proto, project_proto, render_proto

Json = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
PROTO_SINCE = "0.18.2"
COMPONENTS = "#/components/schemas/"


def export(folder: Path, version: str, form: str) -> str:
    """The contract in ``folder`` at ``version`` as text in one of FORMATS.

    Raises:
        ValueError: no such format, no such version, or one without binary messages where those are asked for.
    """
    if form not in FORMATS:
        raise ValueError(f"format {form!r} is not among {', '.join(FORMATS)}")
    return FORMATS[form](folder, version)


def openapi(folder: Path, version: str) -> Json:
    """The plain OpenAPI document of one version, with the headers of all operations written out."""
    document = project(load(folder), version)
    document["info"]["version"] = version
    plain: Json = _without_marks(_with_headers(document))
    return plain


def json_schema(folder: Path, version: str) -> Json:
    """The types of one version as one JSON Schema, each under $defs."""
    document = openapi(folder, version)
    return {
        "$schema": DIALECT,
        "title": document["info"]["title"],
        "description": f"Types of the Tinker wire, version {version}; each stands by itself under $defs.",
        "$defs": _moved(document["components"]["schemas"]),
    }


def _openapi_yaml(folder: Path, version: str) -> str:
    text: str = yaml.dump(openapi(folder, version), Dumper=_Plain, sort_keys=False, allow_unicode=True, width=110)
    return text


def _openapi_json(folder: Path, version: str) -> str:
    return json.dumps(openapi(folder, version), indent=2, ensure_ascii=False) + "\n"


def _json_schema(folder: Path, version: str) -> str:
    return json.dumps(json_schema(folder, version), indent=2, ensure_ascii=False) + "\n"


def _proto(folder: Path, version: str) -> str:
    if parse_version(version) < parse_version(PROTO_SINCE):
        raise ValueError(f"wire version {version} has no binary messages; {PROTO_SINCE} is the first that has")
    return render_proto(project_proto(load_proto(folder), version))


FORMATS: Mapping[str, Callable[[Path, str], str]] = {
    "openapi-yaml": _openapi_yaml,
    "openapi-json": _openapi_json,
    "json-schema": _json_schema,
    "proto": _proto,
}


class _Plain(yaml.SafeDumper):
    """Writes everything out in full, as few readers of OpenAPI know the anchors of YAML."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _with_headers(document: Json) -> Json:
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
                every = {**response.get("headers", {}), **copy.deepcopy(headers.get("response", {}))}
                if every:
                    response["headers"] = every
    return document


def _without_marks(node: Any) -> Any:
    """A document without what only our generators know; names of properties are no marks."""
    if isinstance(node, list):
        return [_without_marks(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: {name: _without_marks(item) for name, item in value.items()}
        if key in ("properties", "headers") and isinstance(value, dict)
        else _without_marks(value)
        for key, value in node.items()
        if not key.startswith("x-")
    }


def _moved(node: Any) -> Any:
    """Schemas with references to $defs; the discriminator, which JSON Schema does not know, is left out."""
    if isinstance(node, list):
        return [_moved(item) for item in node]
    if not isinstance(node, dict):
        return node
    found = {}
    for key, value in node.items():
        if key == "$ref" and isinstance(value, str):
            found[key] = "#/$defs/" + value.removeprefix(COMPONENTS)
        elif not (key == "discriminator" and "propertyName" in value):
            found[key] = _moved(value)
    return found
