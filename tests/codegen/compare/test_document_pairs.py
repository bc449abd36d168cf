"""Edits of a document of OpenAPI: credentials, servers, parameters, bodies, tags, webhooks and callbacks."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from tinkerwire_codegen.compare.contracts import compare_contracts
from tinkerwire_codegen.compare.documents import unescape_pointer

Json = dict[str, Any]

FOLDER = Path(__file__).parent
BASE: Json = yaml.safe_load((FOLDER / "pets.yaml").read_text())
PAIRS: dict[str, list[Any]] = yaml.safe_load((FOLDER / "document_pairs.yaml").read_text())


def apply_edits(edits: list[list[Any]], base: Json = BASE) -> Json:
    """Return a copy of a document with edits."""
    document = copy.deepcopy(base)
    for pointer, *value in edits:
        *steps, last = [unescape_pointer(step) for step in pointer.split("/")[1:]]
        node: Any = document
        for step in steps:
            node = node[int(step)] if isinstance(node, list) else node[step]
        if last == "+":
            node.append(value[0])
        elif value:
            node[int(last) if isinstance(node, list) else last] = value[0]
        else:
            del node[int(last) if isinstance(node, list) else last]
    return document


@pytest.mark.parametrize("name", PAIRS)
def test_edit_has_the_expected_level_and_reason(name: str) -> None:
    """The worst change of each edit has the level and reason of the table."""
    edits, level, reason = PAIRS[name]
    changes = compare_contracts(BASE, apply_edits(edits))
    if level == "none":
        assert changes == []
        return
    assert changes, "no change"
    assert changes[0].level == level, changes
    worst = [change.reason for change in changes if change.level == level]
    assert any(reason in text for text in worst), worst


def test_path_moves_between_server_and_operation() -> None:
    """A path that moves from the servers to the operations changes nothing on the wire."""
    moved = apply_edits([["/servers", [{"url": "https://api.example.com"}]]])
    moved["paths"] = {f"/v1{path}": item for path, item in moved["paths"].items()}
    assert compare_contracts(BASE, moved) == []


def test_renamed_components_change_nothing() -> None:
    """The names of components are not sent."""
    text = yaml.safe_dump(BASE)
    for name in BASE["components"]["schemas"]:
        text = text.replace(f"#/components/schemas/{name}", f"#/components/schemas/{name}V2")
    renamed = yaml.safe_load(text)
    schemas = renamed["components"]["schemas"]
    renamed["components"]["schemas"] = {f"{name}V2": schema for name, schema in schemas.items()}
    assert compare_contracts(BASE, renamed) == []


@pytest.mark.parametrize(
    "document",
    [
        {"openapi": "3.1.0", "paths": None, "components": None},
        {"openapi": "3.1.0", "paths": {"/a": None}, "components": {"schemas": None}},
        {"openapi": "3.1.0", "paths": {"/a": {"get": {"parameters": None, "requestBody": None, "responses": None}}}},
        {"openapi": "3.1.0", "paths": {"/a": {"get": {"responses": {"200": {"headers": {"A": None}}}}}}},
        {"openapi": "3.1.0", "paths": {"/a": {"get": {"requestBody": {"content": {"text/plain": None}}}}}},
        {"openapi": "3.1.0", "paths": {"/a": {"get": {"requestBody": {"content": {"text/plain": {"schema": None}}}}}}},
    ],
)
def test_documents_with_empty_entries_compare(document: Json) -> None:
    """Entries without a value, as YAML has them, count as omitted."""
    assert compare_contracts(document, document) == []
    assert any(change.where == "GET /pets" for change in compare_contracts(document, BASE))
