"""What an operation takes and gives: bodies and answers by media type, parameters by place and name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class SignaturePart:
    """One place of an operation with a schema of its own."""

    operation: str
    direction: str
    part: str
    schema: Json
    required: bool = False


def index_operations(document: Json) -> dict[str, Json]:
    """Operations by method and path, with {} for each variable part: what the variables are called is not sent."""
    found = {}
    for path, item in document.get("paths", {}).items():
        shared = item.get("parameters", [])
        for method, operation in item.items():
            if isinstance(operation, dict) and "responses" in operation:
                key = f"{method.upper()} {re.sub(r'{[^}]*}', '{}', path)}"
                places = {name: f"#{index}" for index, name in enumerate(re.findall(r"{([^}]*)}", path))}
                found[key] = {
                    **operation,
                    "parameters": [*shared, *operation.get("parameters", [])],
                    "x-places": places,
                }
    return found


def list_parts(key: str, operation: Json) -> Iterator[SignaturePart]:
    """All parts of one operation that have a schema."""
    body = operation.get("requestBody", {})
    for media, content in body.get("content", {}).items():
        yield SignaturePart(key, "request", f"body {media}", content.get("schema", {}), bool(body.get("required")))
    for parameter in operation["parameters"]:
        name = parameter["name"]
        if parameter["in"] == "path":
            name = operation["x-places"].get(name, name)
        schema = parameter.get("schema", {})
        yield SignaturePart(key, "request", f"{parameter['in']} {name}", schema, bool(parameter.get("required")))
    for status, answer in operation["responses"].items():
        for media, content in answer.get("content", {}).items():
            yield SignaturePart(key, "response", f"{status} {media}", content.get("schema", {}))
        for name, header in answer.get("headers", {}).items():
            yield SignaturePart(key, "response", f"{status} header {name}", header.get("schema", {}))
