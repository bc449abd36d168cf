"""Input of the generators: the documents of one wire version, and the bodies that its official SDK sent."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from tests.rigs.official.venv import ROOT

from tinkerwire_codegen.contract.export import build_openapi, export

SCHEMA = ROOT / "schema"
CAPTURES = ROOT / "tests" / "facts" / "captures.json"
FORMS = {"openapi.json": "openapi-json", "openapi-3.0.json": "openapi-3.0", "schema.json": "json-schema"}
PROTO = "tinker_public.proto"
MESSAGE_BODIES = frozenset({"forward_backward"})
"""Paths whose captured bodies may be protobuf messages, written as JSON."""


class Body(NamedTuple):
    """A captured body, and the schema or message that describes it."""

    type_name: str
    value: dict[str, Any]


def write_documents(folder: Path, version: str) -> None:
    """Write the documents of ``version``; versions before protobuf get no .proto."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, form in FORMS.items():
        (folder / name).write_text(export(SCHEMA, version, form), encoding="utf-8")
    if has_proto(version):
        (folder / PROTO).write_text(export(SCHEMA, version, "proto"), encoding="utf-8")


def has_proto(version: str) -> bool:
    """Return whether ``version`` has protobuf messages."""
    try:
        export(SCHEMA, version, "proto")
    except ValueError:
        return False
    return True


def list_bodies(version: str) -> tuple[list[Body], list[Body]]:
    """List all captured bodies of ``version``: those in JSON, and those in protobuf."""
    paths = build_openapi(SCHEMA, version)["paths"]
    in_json, in_protobuf = [], []
    for capture in json.loads(CAPTURES.read_text(encoding="utf-8")):
        for request in capture["requests"]:
            if capture["version"] != version or request["body"] is None:
                continue
            operation = _find_operation(paths, request["method"], request["path"])
            content = operation["requestBody"]["content"]
            if request["path"] in MESSAGE_BODIES and "data" in request["body"]:
                in_protobuf.append(Body("ForwardBackwardRequest", request["body"]))
            else:
                reference = content["application/json"]["schema"]["$ref"]
                in_json.append(Body(reference.rpartition("/")[2], request["body"]))
    return in_json, in_protobuf


def _find_operation(paths: dict[str, Any], method: str, path: str) -> dict[str, Any]:
    for template, item in paths.items():
        pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(template))
        if method.lower() in item and re.fullmatch(pattern, f"/api/v1/{path.partition('?')[0]}"):
            operation: dict[str, Any] = item[method.lower()]
            return operation
    raise ValueError(f"{method} {path}: the document has no such operation")
