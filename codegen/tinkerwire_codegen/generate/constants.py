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
    constants = [
        (name, value, f"Constant of {schema_name}.") for name, (schema_name, value) in _constants(document).items()
    ]
    constants += [
        (
            "PROTOBUF_OPERATIONS",
            _protobuf_operations(document),
            "Operations whose requests may be protobuf, each with the operation that receives the message.",
        ),
        (
            "RESULT_TYPES",
            {name: operation["x-result"] for name, operation in operations(document) if "x-result" in operation},
            "Result type of each operation that the server queues.",
        ),
    ]
    return HEADER + "".join(
        f'{name}: {_annotation(value)} = {value!r}\n"""{doc}"""\n' for name, value, doc in constants
    )


def _constants(document: Json) -> dict[str, tuple[str, Any]]:
    """Return the schema and the value of each constant by name."""
    return {
        name: (schema_name, value)
        for schema_name, schema in document["components"]["schemas"].items()
        for name, value in schema.get(MARK, {}).items()
    }


def operations(document: Json) -> Iterator[tuple[str, Json]]:
    """Yield every operation with its name."""
    for item in document["paths"].values():
        for operation in item.values():
            if isinstance(operation, dict) and "operationId" in operation:
                yield operation["operationId"], operation


def _protobuf_operations(document: Json) -> dict[str, str]:
    targets = {}
    for name, operation in operations(document):
        if "application/x-protobuf" in operation.get("requestBody", {}).get("content", {}):
            targets[name] = name
        if "x-protobuf-operation" in operation:
            targets[name] = operation["x-protobuf-operation"]
    return dict(sorted(targets.items()))


def _annotation(value: Any) -> str:
    if isinstance(value, dict):
        return "Mapping[str, str]"
    return type(value).__name__
