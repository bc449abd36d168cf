"""Comparison of two wire versions: whether the bytes of a request mean the same in both."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import orjson

from tinkerwire_base.call import JSON
from tinkerwire_generated.protobuf import MESSAGE_FIELDS

from .._server.http.openapi import Document, load_contract
from .._wire.dialect import BATCH_OPERATIONS, Dialect
from .._wire.protobuf_messages import has_field

NO_MEANING = frozenset({"description", "summary", "title", "deprecated", "example", "examples", "externalDocs"})
"""Keys of a schema that do not change what it accepts."""


def has_same_json(operation: str, version: str, dialect: Dialect) -> bool:
    """Return whether JSON requests of an operation have one schema in a version and in all versions of a dialect."""
    if operation in BATCH_OPERATIONS and operation in dialect.protobuf_operations:
        return False
    signature = _signature(operation, version)
    return signature is not None and all(
        _signature(operation, other) == signature for other in {dialect.min_version, dialect.max_version}
    )


def has_same_protobuf(version: str, dialect: Dialect) -> bool:
    """Return whether a server takes the protobuf batches of clients of a version: it has all their fields."""
    return dialect.protobuf_operations == BATCH_OPERATIONS and _is_subset(version, dialect.max_version)


@lru_cache(maxsize=4096)
def _signature(operation: str, version: str) -> bytes | None:
    """Return a text that is equal for equal schemas of body and query; None if the version lacks the operation."""
    document = load_contract(version)
    found = next(
        (item for path in document["paths"].values() for item in path.values() if item["operationId"] == operation),
        None,
    )
    if found is None:
        return None
    body = found.get("requestBody", {}).get("content", {}).get(JSON, {}).get("schema")
    parameters = [item for item in found.get("parameters", []) if item["in"] in ("query", "path")]
    return orjson.dumps(_plain(document, [body, parameters], ()), option=orjson.OPT_SORT_KEYS)


def _plain(document: Document, node: Any, inside: tuple[str, ...]) -> Any:
    """Return a schema with all references resolved, except for those that lead back into themselves."""
    if isinstance(node, list):
        return [_plain(document, item, inside) for item in node]
    if not isinstance(node, dict):
        return node
    reference = node.get("$ref")
    if isinstance(reference, str):
        name = reference.rpartition("/")[2]
        if name in inside:
            return name
        return _plain(document, document["components"]["schemas"][name], (*inside, name))
    return {key: _plain(document, item, inside) for key, item in node.items() if key not in NO_MEANING}


@lru_cache(maxsize=4096)
def _is_subset(version: str, other: str) -> bool:
    return all(
        has_field(other, message, field)
        for message, fields in MESSAGE_FIELDS.items()
        for field in fields
        if has_field(version, message, field)
    )
