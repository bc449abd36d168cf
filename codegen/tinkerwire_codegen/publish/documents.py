"""Documents of one wire version, as files to download."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import yaml

from ..contract.evidence import MARK as EVIDENCE
from ..contract.export import build_openapi, convert_to_json_schema, export
from ..contract.openapi30 import convert_to_openapi30
from ..contract.protobuf import FILE as PROTO
from .sharing import share_parts

Json = dict[str, Any]

DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

TITLES = {
    "openapi.yaml": "OpenAPI 3.1 (YAML)",
    "openapi.json": "OpenAPI 3.1 (JSON)",
    "openapi-3.0.json": "OpenAPI 3.0 (JSON)",
    "schema.json": "JSON Schema",
    PROTO: "protobuf",
}
"""Titles of the files of a version, by name; versions without protobuf messages lack the last one."""


def write_documents(folder: Path, version: str, target: Path) -> tuple[list[str], Json]:
    """Write the documents of one version of the contract in ``folder`` to ``target``.

    Returns:
        The names of the files, and the OpenAPI document.

    Parts that a document repeats are its components, JSON has no spaces, and only OpenAPI 3.1 has the evidence. This
    keeps the folder small.
    """
    # YAML writes an object that occurs twice as anchor and alias; a document that was parsed has no such objects.
    document = json.loads(json.dumps(build_openapi(folder, version)))
    shared = share_parts(copy.deepcopy(document))
    texts: dict[str, str] = {
        "openapi.yaml": yaml.dump(
            shared, Dumper=DUMPER, sort_keys=False, allow_unicode=True, width=110, default_flow_style=None
        ),
        "openapi.json": _to_json(shared),
        "openapi-3.0.json": _to_json(share_parts(_remove_evidence(convert_to_openapi30(copy.deepcopy(document))))),
        "schema.json": _to_json(_remove_evidence(convert_to_json_schema(document))),
    }
    proto = _export_proto(folder, version)
    if proto:
        texts[PROTO] = proto
    target.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (target / name).write_text(text, encoding="utf-8")
    return list(texts), document


def _export_proto(folder: Path, version: str) -> str | None:
    """Return the protobuf messages of a version; None for versions that have no messages."""
    if not (folder / PROTO).exists():
        return None
    try:
        return export(folder, version, "proto")
    except ValueError as error:
        if "has no protobuf messages" in str(error):
            return None
        raise


def _remove_evidence(node: Any) -> Any:
    if isinstance(node, list):
        return [_remove_evidence(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {key: _remove_evidence(value) for key, value in node.items() if key != EVIDENCE}


def _to_json(document: Json) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))
