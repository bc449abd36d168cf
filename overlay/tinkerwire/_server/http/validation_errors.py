"""Error details: JSON Schema errors as a list of fields, each with a reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import orjson
from jsonschema_rs import ValidationError

from tinkerwire._server.http.responses import ErrorDetail

MAX_DETAILS = 20
"""Maximum number of error details in a response; a list may contain a million wrong numbers."""
MAX_TEXT_LENGTH = 200


def error_details(errors: Iterable[ValidationError], source: str) -> list[ErrorDetail]:
    """Return one detail per error, at most :data:`MAX_DETAILS`.

    Args:
        errors: errors of the JSON Schema validator.
        source: the validated part of the request, body or query: the first part of every ``loc``.
    """
    details = (detail for error in errors for detail in _details(error, source))
    return list(islice(details, MAX_DETAILS))


def _details(error: ValidationError, source: str) -> Iterator[ErrorDetail]:
    kind: Any = error.kind
    path = [source, *error.instance_path]
    name = kind.name
    if name in ("anyOf", "oneOf"):
        yield from _union_details(error, source)
    elif name == "required":
        yield _detail([*path, kind.property], "this field is required", "missing")
    elif name == "additionalProperties":
        for key in kind.unexpected:
            yield _detail([*path, key], "unknown field; check its name or omit it", "extra_forbidden")
    elif name == "type":
        types = sorted(kind.types, key=lambda name: name == "null")
        yield _detail(path, f"expected {' or '.join(types)}, got {_format(error.instance)}", f"{types[0]}_type")
    elif name == "enum":
        options = ", ".join(map(str, kind.options))
        yield _detail(path, f"expected one of {options}; got {_format(error.instance)}", "enum")
    elif name == "const":
        yield _detail(path, f"expected {_format(kind.expected_value)}, got {_format(error.instance)}", "literal_error")
    elif name in ("minimum", "maximum"):
        bound = "at least" if name == "minimum" else "at most"
        yield _detail(path, f"expected {bound} {kind.limit}, got {_format(error.instance)}", name)
    else:
        yield _detail(path, _truncate(error.message), name)


def _union_details(error: ValidationError, source: str) -> Iterator[ErrorDetail]:
    """Return the details of the union member that fits best, or the expected types if none has the right type."""
    kind: Any = error.kind
    members: list[list[ValidationError]] = kind.context
    path = list(error.instance_path)
    candidates = [errors for errors in members if not any(_is_other_type(error, path) for error in errors)]
    if candidates:
        best = min(
            candidates, key=lambda errors: (_has_other_tag(errors, path), _key_mismatch_count(errors), len(errors))
        )
        for member_error in best:
            yield from _details(member_error, source)
        return
    types = sorted(dict.fromkeys(_expected_types(error)), key=lambda name: name == "null")
    yield _detail([source, *path], f"expected {' or '.join(types)}, got {_format(error.instance)}", "union_type")


def _is_other_type(error: ValidationError, path: list[Any]) -> bool:
    """Return whether the value at ``path`` has another JSON type than this member of the union."""
    kind: Any = error.kind
    if list(error.instance_path) != path:
        return False
    members = getattr(kind, "context", None)
    return kind.name == "type" or bool(
        members and all(any(_is_other_type(inner, path) for inner in member) for member in members)
    )


def _expected_types(error: ValidationError) -> list[str]:
    """Return all JSON types that the schema allows for the value."""
    kind: Any = error.kind
    nested = [name for member in getattr(kind, "context", []) for inner in member for name in _expected_types(inner)]
    return [*getattr(kind, "types", []), *nested]


def _has_other_tag(errors: list[ValidationError], path: list[Any]) -> bool:
    """Return whether the value has the tag of another union member."""
    return any(error.kind.name == "const" and len(error.instance_path) == len(path) + 1 for error in errors)


def _key_mismatch_count(errors: list[ValidationError]) -> int:
    """Return the number of missing and unknown keys."""
    kinds: list[Any] = [error.kind for error in errors]
    unknown: list[str] = [key for kind in kinds if kind.name == "additionalProperties" for key in kind.unexpected]
    missing: list[str] = [kind.property for kind in kinds if kind.name == "required"]
    return len(unknown) + len(missing)


def _detail(path: list[Any], message: str, kind: str) -> ErrorDetail:
    return {"loc": path, "msg": message, "type": kind}


def _format(value: Any) -> str:
    try:
        return _truncate(orjson.dumps(value).decode())
    except orjson.JSONEncodeError:
        return _truncate(repr(value))


def _truncate(text: str) -> str:
    return text if len(text) <= MAX_TEXT_LENGTH else text[:MAX_TEXT_LENGTH] + " ..."
