"""From the faults that a JSON Schema validator finds to items that name a field and a reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import orjson
from jsonschema_rs import ValidationError

from tinkerwire._server.http.responses import ErrorDetail

MAX_ITEMS = 20
"""A list of a million wrong numbers is told in this many items."""


def items(errors: Iterable[ValidationError], where: str) -> list[ErrorDetail]:
    """One item per fault, at most :data:`MAX_ITEMS`.

    Args:
        where: what was validated, the first part of every ``loc``: body or query.
    """
    found = (item for error in errors for item in _items(error, where))
    return list(islice(found, MAX_ITEMS))


def _items(error: ValidationError, where: str) -> Iterator[ErrorDetail]:
    kind: Any = error.kind
    place = [where, *error.instance_path]
    name = kind.name
    if name in ("anyOf", "oneOf"):
        yield from _union_items(error, where)
    elif name == "required":
        yield _item([*place, kind.property], "this field is required", "missing")
    elif name == "additionalProperties":
        for key in kind.unexpected:
            yield _item(
                [*place, key], "this field is not known here; check its name or leave it out", "extra_forbidden"
            )
    elif name == "type":
        types = sorted(kind.types, key=lambda name: name == "null")
        yield _item(place, f"expected {' or '.join(types)}, got {_shown(error.instance)}", f"{types[0]}_type")
    elif name == "enum":
        options = ", ".join(map(str, kind.options))
        yield _item(place, f"expected one of {options}; got {_shown(error.instance)}", "enum")
    elif name == "const":
        yield _item(place, f"expected {_shown(kind.expected_value)}, got {_shown(error.instance)}", "literal_error")
    elif name in ("minimum", "maximum"):
        bound = "at least" if name == "minimum" else "at most"
        yield _item(place, f"expected {bound} {kind.limit}, got {_shown(error.instance)}", name)
    else:
        yield _item(place, _cut(error.message), name)


def _union_items(error: ValidationError, where: str) -> Iterator[ErrorDetail]:
    """The faults of the member that was most likely meant; of all, what was expected, when none looks alike."""
    kind: Any = error.kind
    members: list[list[ValidationError]] = kind.context
    own_place = list(error.instance_path)
    alike = [errors for errors in members if not any(_is_foreign(each, own_place) for each in errors)]
    if alike:
        best = min(alike, key=lambda errors: (_has_other_tag(errors, own_place), _strangeness(errors), len(errors)))
        for each in best:
            yield from _items(each, where)
        return
    types = sorted(dict.fromkeys(_types(error)), key=lambda name: name == "null")
    yield _item([where, *own_place], f"expected {' or '.join(types)}, got {_shown(error.instance)}", "union_type")


def _is_foreign(error: ValidationError, place: list[Any]) -> bool:
    """Whether the value is of another JSON type than this member of the union."""
    kind: Any = error.kind
    if list(error.instance_path) != place:
        return False
    inner = getattr(kind, "context", None)
    return kind.name == "type" or bool(inner and all(any(_is_foreign(x, place) for x in member) for member in inner))


def _types(error: ValidationError) -> list[str]:
    """All JSON types that would have done in place of the value."""
    kind: Any = error.kind
    inner = [name for member in getattr(kind, "context", []) for each in member for name in _types(each)]
    return [*getattr(kind, "types", []), *inner]


def _has_other_tag(errors: list[ValidationError], place: list[Any]) -> bool:
    """Whether the value says by a tag that it is another member."""
    return any(each.kind.name == "const" and len(each.instance_path) == len(place) + 1 for each in errors)


def _strangeness(errors: list[ValidationError]) -> int:
    """How many keys are missing or unknown."""
    kinds: list[Any] = [each.kind for each in errors]
    unknown: list[str] = [key for kind in kinds if kind.name == "additionalProperties" for key in kind.unexpected]
    missing: list[str] = [kind.property for kind in kinds if kind.name == "required"]
    return len(unknown) + len(missing)


def _item(place: list[Any], message: str, kind: str) -> ErrorDetail:
    return {"loc": place, "msg": message, "type": kind}


def _shown(value: Any) -> str:
    try:
        return _cut(orjson.dumps(value).decode())
    except orjson.JSONEncodeError:
        return _cut(repr(value))


def _cut(text: str) -> str:
    return text if len(text) <= 200 else text[:200] + " ..."
