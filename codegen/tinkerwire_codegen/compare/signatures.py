"""The signature of an operation: bodies and responses by media type, parameters by place and name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class SignaturePart:
    """One place of an operation that has a schema."""

    operation: str
    direction: str
    part: str
    schema: Json
    required: bool = False


def index_operations(document: Json) -> dict[str, Json]:
    """Index operations by method and path; variables become {}, because their names are not sent."""
    operations = {}
    for path, item in document.get("paths", {}).items():
        shared = item.get("parameters", [])
        for method, operation in item.items():
            if isinstance(operation, dict) and "responses" in operation:
                key = f"{method.upper()} {re.sub(r'{[^}]*}', '{}', path)}"
                places = {name: f"#{index}" for index, name in enumerate(re.findall(r"{([^}]*)}", path))}
                operations[key] = {
                    **operation,
                    "parameters": [*shared, *operation.get("parameters", [])],
                    "x-places": places,
                }
    return operations


def list_parts(key: str, operation: Json) -> Iterator[SignaturePart]:
    """List all parts of one operation that have a schema."""
    body = operation.get("requestBody", {})
    for media, content in body.get("content", {}).items():
        yield SignaturePart(key, "request", f"body {media}", content.get("schema", {}), bool(body.get("required")))
    for parameter in operation["parameters"]:
        name = parameter["name"]
        if parameter["in"] == "path":
            name = operation["x-places"].get(name, name)
        schema = parameter.get("schema", {})
        yield SignaturePart(key, "request", f"{parameter['in']} {name}", schema, bool(parameter.get("required")))
    for status, response in operation["responses"].items():
        for media, content in response.get("content", {}).items():
            yield SignaturePart(key, "response", f"{status} {media}", content.get("schema", {}))
        for name, header in response.get("headers", {}).items():
            yield SignaturePart(key, "response", f"{status} header {name}", header.get("schema", {}))
