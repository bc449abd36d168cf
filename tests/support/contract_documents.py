"""Small contracts for tests of versions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tinkerwire_base.conversion.versioning import project

TEXT: dict[str, Any] = {"type": "string"}
NULL: dict[str, Any] = {"type": "null"}


def document(schemas: dict[str, Any] | None = None, paths: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a contract with these schemas and paths."""
    info = {"x-versions": ["0.1.0", "0.3.0", "0.16.1"], "x-models-since": "0.3.0"}
    return {"openapi": "3.1.0", "info": info, "paths": paths or {}, "components": {"schemas": schemas or {}}}


def project_schemas(version: str, **schemas: Any) -> dict[str, Any]:
    """Return the schemas of a contract at a version."""
    projected: dict[str, Any] = project(document(schemas), version)["components"]["schemas"]
    return projected


def ref(name: str, **keywords: Any) -> dict[str, Any]:
    """Return a reference to a schema."""
    return {"$ref": f"#/components/schemas/{name}", **keywords}


def operation(**parts: Any) -> dict[str, Any]:
    """Return an operation with a response."""
    return {"responses": {"200": {"description": "Done."}}, **parts}


def list_parts(node: Any, place: str = "#") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield all mappings of a document, each with its place."""
    if isinstance(node, list):
        for index, item in enumerate(node):
            yield from list_parts(item, f"{place}/{index}")
    elif isinstance(node, dict):
        yield place, node
        for key, item in node.items():
            yield from list_parts(item, f"{place}/{key}")
