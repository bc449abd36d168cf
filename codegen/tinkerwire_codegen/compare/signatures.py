"""The signature of an operation: bodies and responses by media type, parameters by place and name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

METHODS = frozenset({"get", "put", "post", "delete", "options", "head", "patch", "trace", "query"})
IGNORED_HEADERS = frozenset({"accept", "content-type", "authorization"})
"""Headers that OpenAPI describes elsewhere; parameters of these names have no meaning."""

OPPOSITE = {"request": "response", "response": "request"}


@dataclass(frozen=True)
class SignaturePart:
    """One place of an operation that has a schema; ``key`` identifies it, ``part`` names it for people."""

    operation: str
    direction: str
    key: str
    part: str
    schema: Any
    required: bool = False
    details: Json = field(default_factory=dict)


def index_operations(document: Json) -> dict[str, Json]:
    """Index operations by method and path; variables become {}, because their names are not sent.

    Webhooks and callbacks are operations that the server calls: their directions are reversed.
    """
    operations: dict[str, Json] = {}
    for path, item in document.get("paths", {}).items():
        _add_operations(operations, "", path, item)
    for name, item in document.get("webhooks", {}).items():
        _add_operations(operations, f"webhook {name} ", "", item)
    for operation in list(operations.values()):
        for name, callback in operation.get("callbacks", {}).items():
            for expression, item in callback.items():
                if isinstance(item, dict):
                    prefix = f"{operation['x-key']} callback {name} "
                    _add_operations(operations, prefix, expression, item)
    return operations


def _add_operations(operations: dict[str, Json], prefix: str, path: str, item: Json) -> None:
    for method, operation in (item or {}).items():
        if method.lower() in METHODS and isinstance(operation, dict):
            shape = path if prefix else re.sub(r"{[^}]*}", "{}", path)
            key = f"{prefix}{method.upper()} {shape}".strip()
            places = {name: f"#{index}" for index, name in enumerate(re.findall(r"{([^}]*)}", path))}
            operations[key] = {
                **operation,
                "parameters": [*item.get("parameters", []), *operation.get("parameters", [])],
                "responses": {
                    normalize_status(status): value for status, value in operation.get("responses", {}).items()
                },
                "servers": operation.get("servers") or item.get("servers"),
                "x-places": {} if prefix else places,
                "x-reversed": bool(prefix),
                "x-key": key,
            }


def list_parts(key: str, operation: Json) -> Iterator[SignaturePart]:
    """List all parts of one operation that have a schema."""
    sent, returned = ("response", "request") if operation.get("x-reversed") else ("request", "response")
    body = operation.get("requestBody", {})
    for media, content in body.get("content", {}).items():
        name = f"body {normalize_media_type(media)}"
        yield SignaturePart(key, sent, name, name, _schema(content), bool(body.get("required")), content)
    for parameter in operation["parameters"]:
        if parameter["in"] == "header" and parameter["name"].lower() in IGNORED_HEADERS:
            continue
        places = operation["x-places"] if parameter["in"] == "path" else {}
        name = f"{parameter['in']} {places.get(parameter['name'], parameter['name'])}"
        identity = name.lower() if parameter["in"] == "header" else name
        required = bool(parameter.get("required"))
        yield SignaturePart(key, sent, identity, name, _schema(_inside(parameter)), required, parameter)
    for status, response in operation["responses"].items():
        for media, content in response.get("content", {}).items():
            name = f"{status} {normalize_media_type(media)}"
            yield SignaturePart(key, returned, name, name, _schema(content), details=content)
        for header, detail in response.get("headers", {}).items():
            if header.lower() == "content-type":
                continue
            name = f"{status} header {header}"
            required = bool(detail.get("required"))
            details = {"in": "header", **detail}
            identity = f"{status} header {header.lower()}"
            yield SignaturePart(key, returned, identity, name, _schema(_inside(detail)), required, details)


def normalize_status(status: str | int) -> str:
    """Return a status in the form in which equal ones have equal texts."""
    text = str(status)
    return text.upper() if text[:1].isdigit() else text


def normalize_media_type(media: str) -> str:
    """Return a media type in the form in which equal ones have equal texts."""
    first, *parameters = [part.strip().lower().replace('"', "") for part in media.split(";")]
    if first.endswith(("/json", "+json")):
        # JSON is always UTF-8, and has no such parameter.
        parameters = [parameter for parameter in parameters if parameter != "charset=utf-8"]
    return ";".join([first, *sorted(parameters)])


def _inside(parameter: Json) -> Json:
    """Return what holds the schema: the parameter, or its only media type."""
    content = parameter.get("content") or {}
    return next(iter(content.values()), {}) if content else parameter


def _schema(holder: Json) -> Any:
    return holder.get("schema", {})
