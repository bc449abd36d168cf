"""Documents of one operation, to compare schemas as bodies of requests and of responses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tinkerwire_codegen.compare.change import Change
from tinkerwire_codegen.compare.contracts import compare_contracts

Json = dict[str, Any]

TABLES = Path(__file__).parents[1] / "codegen" / "compare"

PAIRS: dict[str, list[str]] = yaml.safe_load((TABLES / "schema_pairs.yaml").read_text())
"""The table of pairs, by name."""

PAIRS_3_0: dict[str, list[str]] = yaml.safe_load((TABLES / "schema_pairs_3_0.yaml").read_text())

SAME = "written differently; the same values are accepted"
COMPONENTS = yaml.safe_load("""
Old: {type: object, required: [a], properties: {a: {type: string, maxLength: 9}}}
New: {type: object, required: [a], properties: {a: {type: string, maxLength: 9}}}
List[Old]: {type: array, items: {$ref: '#/components/schemas/Old'}}
Dynamic: {$dynamicAnchor: node, type: object, properties: {next: {$dynamicRef: '#node'}}}
Anchored: {$anchor: anchored, type: string}
Outer: {type: object, $defs: {inner: {type: integer}}}
Tree: {type: object, properties: {children: {type: array, items: {$ref: '#/components/schemas/Tree'}}}}
Tree2: {type: object, properties: {children: {type: array, items: {$ref: '#/components/schemas/Tree2'}}}}
SmallTree:
  type: object
  properties: {children: {type: array, maxItems: 2, items: {$ref: '#/components/schemas/SmallTree'}}}
""")


def write_document(schema: Any, direction: str, openapi: str = "3.1.0") -> Json:
    content = {"content": {"application/json": {"schema": schema}}}
    operation: Json = {"responses": {"200": {"description": "ok"}}}
    if direction == "request":
        operation["requestBody"] = {"required": True, **content}
    else:
        operation["responses"]["200"] |= content
    return {
        "openapi": openapi,
        "info": {"title": "t", "version": "1"},
        "paths": {"/a": {"post": operation}},
        "components": {"schemas": COMPONENTS},
    }


def compare(old: Any, new: Any, direction: str, openapi: str = "3.1.0") -> list[Change]:
    documents = [write_document(schema, direction, openapi) for schema in (old, new)]
    return compare_contracts(documents[0], documents[1])
