"""Comparison of two wire versions: whether the bytes of a request mean the same in both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from tinkerwire_base.call import JSON, PROTOBUF
from tinkerwire_generated.protobuf import MESSAGE_FIELDS

from .._server.http.openapi import Document, load_contract
from .._wire.dialect import BATCH_OPERATIONS, Dialect
from .._wire.protobuf_messages import has_field

NO_MEANING = frozenset({"description", "summary", "title", "deprecated", "example", "examples", "externalDocs"})
"""Keys of a schema that do not change what it accepts."""
NUMBER_OPERATIONS = BATCH_OPERATIONS | {"asample"}
"""Operations with long lists of numbers. A field that their bodies leave out means the same in all versions."""


def has_same_json(operation: str, version: str, dialect: Dialect, content: bytes | None = None) -> bool:
    """Return whether a JSON request of an operation means the same in a version and in all versions of a dialect.

    Args:
        operation: the operation.
        version: the client's version.
        dialect: the dialect of the upstream.
        content: the body. That of a batch or a sample may mean the same although the schemas differ: if it has nothing
            that differs. None: only equal schemas count.
    """
    if operation in BATCH_OPERATIONS and operation in dialect.protobuf_operations:
        return False
    own = _schema(operation, version)
    if own is None:
        return False
    return all(
        _lacks_differences(operation, version, other, content) for other in {dialect.min_version, dialect.max_version}
    )


def fits_all(operation: str, versions: Sequence[str], media: str, content: bytes) -> bool:
    """Return whether a body means the same in all versions that a client may speak: the first has what others have.

    Args:
        operation: the operation.
        versions: the versions, the likeliest first.
        media: the media type of the body.
        content: the body, not compressed.
    """
    if media == PROTOBUF:
        return all(_is_subset(other, versions[0]) for other in versions[1:])
    return media == JSON and all(_lacks_differences(operation, versions[0], other, content) for other in versions[1:])


def _lacks_differences(operation: str, version: str, other: str, content: bytes | None) -> bool:
    texts = _differing_texts(operation, version, other)
    if not texts:
        return texts is not None
    if content is None:
        return False
    # An escape may hide a name.
    return operation in NUMBER_OPERATIONS and b"\\" not in content and not any(text in content for text in texts)


def has_same_protobuf(version: str, dialect: Dialect) -> bool:
    """Return whether a server takes the protobuf batches of clients of a version: it has all their fields."""
    return dialect.protobuf_operations == BATCH_OPERATIONS and _is_subset(version, dialect.max_version)


class _Incomparable(Exception):
    """Two schemas differ in a way that no text in a body shows."""


@lru_cache(maxsize=4096)
def _differing_texts(operation: str, version: str, other: str) -> frozenset[bytes] | None:
    """Return texts of which a body has one if it means something else in another version; none for equal schemas.

    None: the versions differ in other ways, or one lacks the operation.
    """
    first, second = _schema(operation, version), _schema(operation, other)
    if first is None or second is None:
        return None
    try:
        return frozenset(f'"{text}"'.encode() for text in _differences(first, second))
    except _Incomparable:
        return None


def _differences(first: Any, second: Any) -> Iterator[str]:
    if first == second:
        return
    if not isinstance(first, dict) or not isinstance(second, dict):
        raise _Incomparable
    if first.get("required") != second.get("required"):
        # A field that is missing leaves no text, but one that all objects of this schema have shows the object.
        always = set(first.get("required", ())) & set(second.get("required", ()))
        if not always:
            raise _Incomparable
        yield max(sorted(always), key=len)
        return
    for key in first.keys() | second.keys():
        one, two = first.get(key), second.get(key)
        if one == two:
            continue
        if key == "properties" and one is not None and two is not None:
            for name in one.keys() | two.keys():
                if name in one and name in two:
                    yield from _differences(one[name], two[name])
                else:
                    yield name
        elif key == "enum" and one is not None and two is not None:
            yield from map(str, set(one) ^ set(two))
        elif key in ("anyOf", "oneOf") and one is not None and two is not None:
            yield from _union_differences(one, two)
        elif key == "discriminator" and one is not None and two is not None:
            # The tags of the members are compared.
            if one["propertyName"] != two["propertyName"]:
                raise _Incomparable
        elif key in ("items", "additionalProperties"):
            yield from _differences(one, two)
        else:
            raise _Incomparable


def _union_differences(first: list[Any], second: list[Any]) -> Iterator[str]:
    if len(first) == len(second):
        for member, other in zip(first, second, strict=True):
            yield from _differences(member, other)
        return
    one, two = _by_tag(first), _by_tag(second)
    for tag in one.keys() | two.keys():
        if tag in one and tag in two:
            yield from _differences(one[tag], two[tag])
        else:
            yield tag


def _by_tag(members: list[Any]) -> dict[str, Any]:
    """Return the members of a union by the value of their field ``type``."""
    tagged = {member.get("properties", {}).get("type", {}).get("const"): member for member in members}
    if len(tagged) != len(members) or not all(isinstance(tag, str) for tag in tagged):
        raise _Incomparable
    return tagged


@lru_cache(maxsize=4096)
def _schema(operation: str, version: str) -> Any:
    """Return the schema of body and query with all references resolved; None if the version lacks the operation."""
    document = load_contract(version)
    found = next(
        (item for path in document["paths"].values() for item in path.values() if item["operationId"] == operation),
        None,
    )
    if found is None:
        return None
    body = found.get("requestBody", {}).get("content", {}).get(JSON, {}).get("schema")
    parameters = {
        item["name"]: item["schema"] for item in found.get("parameters", []) if item["in"] in ("query", "path")
    }
    return {"items": _plain(document, body, ()), "parameters": _plain(document, parameters, ())}


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
