"""Lenient reading of descriptive responses: a value that is missing, null or garbled is read as None.

``x-essential`` of a schema lists the fields that are never read leniently: ids, paths, URLs and the lists themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, get_args, get_origin

import attrs
import cattrs

from ..reflection import essential_fields, fields_of, wire_name
from .structure_hooks import STRUCTURE_ERRORS, Hook, expected, is_dict, structure_only

Report = Callable[[str], None]
"""A function that logs the warning about a field that is read as None."""

_MAX_REASON = 200
_reported: set[str] = set()
"""Fields that this process has warned about."""


class EssentialError(cattrs.ClassValidationError):
    """An error in an essential field, which no field around it may turn into None."""


def lenient_fields(cls: type) -> list[attrs.Attribute[Any]]:
    """Return the fields of a model that may be read as None where the contract has a value."""
    essential = essential_fields(cls)
    return [] if essential is None else [a for a in fields_of(cls) if wire_name(a) not in essential]


def essential_texts(cls: type) -> list[attrs.Attribute[Any]]:
    """Return the essential fields of a model that are lists or maps of texts."""
    essential = essential_fields(cls) or ()
    return [a for a in fields_of(cls) if wire_name(a) in essential and a.type in (list[str], dict[str, str])]


def lenient_hook(conv: cattrs.Converter, name: str, tp: Any, report: Report) -> Hook:
    """Make the hook of a lenient field: a value that does not fit is None and causes one report.

    In a map only the entries that do not fit are None.
    """
    if is_dict(tp):
        item_type = get_args(tp)[1]
        read = lenient_hook(conv, f"an entry of {name}", item_type, report)
        inner = structure_only(dict, tp, lambda value, _: {key: read(item, item_type) for key, item in value.items()})
    else:
        inner = conv.get_structure_hook(tp)

    def structure(value: Any, kind: Any) -> Any:
        try:
            return inner(value, kind)
        except STRUCTURE_ERRORS as error:
            if _is_essential(error):
                raise
            if name not in _reported:
                _reported.add(name)
                # An error of a log handler must not lose the response.
                with suppress(Exception):
                    report(_warning(name, value, error))
            return None

    return structure


def structure_texts(value: Any, tp: Any) -> Any:
    """Read a list or map of texts and check each of them: essential texts are ids, paths or URLs."""
    kind = get_origin(tp)
    if type(value) is not kind:
        raise expected((kind,), value)
    for place, item in value.items() if kind is dict else enumerate(value):
        if type(item) is not str:
            raise TypeError(f"entry {place!r}: {expected((str,), item)}")
    return value


def lenient_structure(cls: type, inner: Hook) -> Hook:
    """Let ``inner``, which reads a model, also read objects without some of its lenient fields."""
    needed = dict.fromkeys(wire_name(a) for a in lenient_fields(cls) if a.default is attrs.NOTHING)

    def structure(value: Any, kind: Any) -> Any:
        try:
            return inner(value if needed.keys() <= value.keys() else needed | value, kind)
        except cattrs.ClassValidationError as error:
            raise EssentialError(error.message, error.exceptions, cls) from None
        except STRUCTURE_ERRORS as error:
            raise EssentialError(cls.__name__, [error], cls) from None

    return structure


def _is_essential(error: BaseException) -> bool:
    return isinstance(error, EssentialError) or any(map(_is_essential, getattr(error, "exceptions", ())))


def _warning(name: str, value: Any, error: BaseException) -> str:
    if value is None:
        reason = "missing or null"
    else:
        text = str(getattr(error, "exceptions", [error])[0])
        reason = f"not readable ({text[:_MAX_REASON]}{'...' if len(text) > _MAX_REASON else ''})"
    return f"{name} is {reason} in a response of the server and is read as None; later warnings are suppressed"
