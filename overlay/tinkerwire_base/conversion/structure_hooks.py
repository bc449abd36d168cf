"""Structure hooks: read each kind of type from JSON, strictly at the top, without a look into plain lists."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, get_args, get_origin

import cattrs

from ..reflection import members_of
from ..short_repr import short_repr
from ..timestamps import parse_timestamp
from ..unset import UnsetType

Hook = Callable[[Any, Any], Any]

STRUCTURE_ERRORS = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    cattrs.BaseValidationError,
    cattrs.ForbiddenExtraKeysError,
)
"""The errors that a value that does not fit can raise."""

_SCALARS = (bool, int, float, str, type(None))
_JSON_NAMES = {
    "ndarray": "array",
    "dict": "object",
    "list": "array",
    "NoneType": "null",
    "str": "string",
    "tuple": "array",
}


def is_plain(tp: Any) -> bool:
    """Return whether the JSON form of a type is its Python form, so that no conversion is needed."""
    if tp is Any or tp in _SCALARS or tp is UnsetType or get_origin(tp) is Literal or _is_array(tp):
        return True
    args = get_args(tp)
    if get_origin(tp) in (list, Sequence) or members_of(tp):
        return all(map(is_plain, args))
    return get_origin(tp) is dict and args[0] is str and is_plain(args[1])


def is_bulk(tp: Any) -> bool:
    """Return whether a type is plain, but not a scalar."""
    return is_plain(tp) and tp not in _SCALARS


def is_list(tp: Any) -> bool:
    """Return whether a type is a list whose items need conversion."""
    return get_origin(tp) is list and not is_plain(tp)


def is_dict(tp: Any) -> bool:
    """Return whether a type is a map whose values need conversion."""
    return get_origin(tp) is dict and not is_plain(tp)


def is_tuple(tp: Any) -> bool:
    """Return whether a type is a closed tuple of plain values."""
    return get_origin(tp) is tuple and ... not in get_args(tp) and all(map(is_plain, get_args(tp)))


def is_union(tp: Any) -> bool:
    """Return whether a type is a union."""
    return bool(members_of(tp))


def expected(kinds: tuple[type, ...], value: Any) -> TypeError:
    """Make the error for a value whose JSON type is not among ``kinds``."""
    names = [_JSON_NAMES.get(kind.__name__, kind.__name__) for kind in (*kinds, type(value))]
    return TypeError(f"expected {' or '.join(sorted(set(names[:-1])))}, got {names[-1]}")


def require_instance(models: Sequence[type], value: Any) -> Any:
    """Return a value that is an instance of a model: Python code may put one into a dict. TypeError for others."""
    if isinstance(value, tuple(models)):
        return value
    raise expected((dict,), value)


def structure_scalar(kind: type) -> Hook:
    """Make the hook that accepts values of exactly one type: true is not a number."""
    accepted = (int, float) if kind is float else (kind,)

    def structure(value: Any, _: Any) -> Any:
        if type(value) in accepted:
            return value
        raise expected((kind,), value)

    return structure


def structure_datetime(value: Any, _: Any) -> datetime:
    """Parse a timestamp into an aware datetime."""
    return parse_timestamp(value)


def structure_bytes(value: Any, _: Any) -> bytes:
    """Decode base64 text."""
    if type(value) is not str:
        raise expected((str,), value)
    return b64decode(value, validate=True)


def structure_bulk(tp: Any) -> Hook:
    """Make the hook that checks the JSON type of a plain value and returns the value unchanged."""
    kinds = _json_types(tp)
    exact = frozenset(kinds)

    def structure(value: Any, _: Any) -> Any:
        if type(value) not in exact:
            raise expected(kinds, value)
        return value

    return (lambda value, _: value) if object in exact else structure


def structure_as_tuple(inner: Hook) -> Hook:
    """Make the hook that returns a list as a tuple."""

    def structure(value: Any, tp: Any) -> Any:
        found = inner(value, tp)
        return tuple(found) if type(found) is list else found

    return structure


def structure_only(kind: type, tp: Any, inner: Hook) -> Hook:
    """Make the hook that passes only values of one JSON type to ``inner``: text and objects are iterable, too."""

    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, kind):
            raise expected((kind,), value)
        return inner(value, tp)

    return structure


def structure_tuple(tp: Any) -> Hook:
    """Make the hook that reads an array of the right length as a tuple."""
    size = len(get_args(tp))

    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, list | tuple) or len(value) != size:
            raise TypeError(f"expected an array of {size}, got {short_repr(value)}")
        return tuple(value)

    return structure


def _is_array(tp: Any) -> bool:
    origin = get_origin(tp) or tp
    return getattr(origin, "__module__", "") == "numpy" and getattr(origin, "__name__", "") == "ndarray"


def _json_types(tp: Any) -> tuple[type, ...]:
    """Return the Python types of the JSON values of a plain type; an enum accepts unknown values."""
    if tp is Any:
        return (object,)
    if tp in _SCALARS:
        return (int, float) if tp is float else (tp,)
    if get_origin(tp) is Literal:
        return tuple({type(value) for value in get_args(tp)})
    if members_of(tp):
        return tuple({kind for member in members_of(tp) for kind in _json_types(member)})
    if _is_array(tp):
        return (get_origin(tp) or tp,)
    forms: Mapping[Any, tuple[type, ...]] = {list: (list, tuple), Sequence: (list, tuple), dict: (dict,)}
    return forms.get(get_origin(tp) or tp, ())
