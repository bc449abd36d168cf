"""Generator of the constants that clients and servers share, as a module that imports nothing but typing names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MARK = "x-constants"
Json = dict[str, Any]

HEADER = '''"""Constants of the wire, which clients and servers share."""

from __future__ import annotations

from collections.abc import Mapping

'''


def generate_constants(document: Json) -> str:
    """Return the source of the module of constants."""
    tables: Json = {
        **collect_constants(document),
        "PROTOBUF_OPERATIONS": _protobuf_operations(document),
        "RESULT_TYPES": {name: op["x-result"] for name, op in operations(document) if "x-result" in op},
    }
    docs = {
        "PROTOBUF_OPERATIONS": "The operations whose requests may be protobuf, and the operation that takes each.",
        "RESULT_TYPES": "The type of the result of each operation that the server queues.",
    }
    text = HEADER
    for name, value in tables.items():
        text += f"{name}: {_annotation(value)} = {value!r}\n"
        if name in docs:
            text += f'"""{docs[name]}"""\n'
    return text


def collect_constants(document: Json) -> Json:
    """Return the constants of all schemas by name.

    Raises:
        ValueError: two schemas define the same constant.
    """
    constants: Json = {}
    for schema_name, schema in document["components"]["schemas"].items():
        for name, value in schema.get(MARK, {}).items():
            if name in constants:
                raise ValueError(f"#/components/schemas/{schema_name}: {MARK} {name} is defined twice; keep one")
            constants[name] = value
    return constants


def operations(document: Json) -> Iterator[tuple[str, Json]]:
    """Yield every operation with its name."""
    for item in document["paths"].values():
        for operation in item.values():
            if isinstance(operation, dict) and "operationId" in operation:
                yield operation["operationId"], operation


def _protobuf_operations(document: Json) -> dict[str, str]:
    found = {}
    for name, operation in operations(document):
        if "application/x-protobuf" in operation.get("requestBody", {}).get("content", {}):
            found[name] = name
        if "x-protobuf-operation" in operation:
            found[name] = operation["x-protobuf-operation"]
    return dict(sorted(found.items()))


def _annotation(value: Any) -> str:
    if isinstance(value, dict):
        return "Mapping[str, str]"
    return type(value).__name__
