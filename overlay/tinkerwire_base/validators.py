"""Validators of the fields of requests; an error names class, field, value and the expected values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, get_args, get_origin

import attrs

from .lazy_numpy import np
from .reflection import field_name, members_of, resolve_types
from .short_repr import SECRET_FIELDS, short_repr
from .unset import UNSET, UnsetType

Check = Callable[[str, Any], None]

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


def field_validator(*checks: Check) -> Any:
    """Make the validator of a field, which checks the declared type and then runs ``checks``.

    UNSET and None are checked against the type alone. The mixin of a class checks the fields that it converts.
    """
    return _FieldValidator(*checks)


class _FieldValidator:
    def __init__(self, *checks: Check) -> None:
        self._checks = checks
        self._type_check: Check | None = None
        self._fast_path_types: frozenset[Any] = frozenset()
        self._fast_path_texts: frozenset[Any] = frozenset()
        self._places: dict[type, str] = {}

    def __call__(self, instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        kind = type(value)
        if kind in self._fast_path_types or (kind is str and value in self._fast_path_texts):
            return
        if self._type_check is None:
            self._resolve_type(type(instance), field_name(attribute))
            self(instance, attribute, value)
            return
        place = self._places.get(type(instance))
        if place is None:
            place = self._places[type(instance)] = f"{type(instance).__name__}.{attribute.alias}"
        self._type_check(place, value)
        if value is not UNSET and value is not None:
            for check in self._checks:
                check(place, value)

    def _resolve_type(self, cls: type, name: str) -> None:
        # At first use, because the types of generated classes refer to each other.
        tp = next(a.type for a in attrs.fields(resolve_types(cls)) if field_name(a) == name)
        members = members_of(tp) or (tp,)
        empty = {member for member in members if member in (type(None), UnsetType)}
        typed = [member for member in members if member not in empty]
        fast_path_types = empty
        if not self._checks:
            fast_path_types = empty.union(m for m in typed if m in (str, bool) or attrs.has(m))
            literals = [value for member in typed if get_origin(member) is Literal for value in get_args(member)]
            self._fast_path_texts = frozenset(value for value in literals if isinstance(value, str))
        self._fast_path_types = frozenset(fast_path_types)
        converts = name in getattr(cls, "_converts", ())
        # Last: other threads use the validator as soon as this is set. The fast path accepts None and UNSET.
        self._type_check = _accept_any if converts else validator_of(typed[0] if len(typed) == 1 else tp)


def validator_of(tp: Any) -> Check:
    """Return the check for a type that models use."""
    if tp in _CHECKS_BY_TYPE:
        return _CHECKS_BY_TYPE[tp]
    origin, args = get_origin(tp), get_args(tp)
    if origin is Literal:
        return one_of(*args)
    if members_of(tp):
        return _union(tp)
    if origin in (list, Sequence):
        return _items(validator_of(args[0]))
    if origin is dict:
        return _entries(validator_of(args[1]))
    if isinstance(tp, type) and attrs.has(tp):
        return _instance(tp)
    return _accept_any


def require_optional(name: str, value: object, kind: type) -> None:
    """Raise TypeError unless a value is None or of a type."""
    if value is not None and not isinstance(value, kind):
        # Without the value, which may be an API key.
        raise TypeError(f"{name}: expected {kind.__name__}, got {type(value).__name__}")


def require_optional_text(name: str, value: object) -> None:
    """Raise TypeError or ValueError unless a value is None or text that can be sent."""
    if value is not None:
        require_text(name, value)


def require_optional_metadata(name: str, value: object) -> None:
    """Raise TypeError or ValueError unless a value is None or a map whose keys and texts can be sent."""
    require_optional(name, value, Mapping)
    if isinstance(value, Mapping):
        for key, item in value.items():
            require_text(f"{name} key", key)
            if isinstance(item, str):
                require_text(f"{name}[{key!r}]", item)


class NumberRangeError(ValueError, OverflowError):
    """A number does not fit into the type of the wire."""


def require_text(place: str, value: Any) -> None:
    """Require a string that UTF-8 can encode."""
    require_str(place, value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{place}: {short_repr(value)} has a lone surrogate, which UTF-8 cannot encode") from None


def require_int(place: str, value: Any) -> None:
    """Require an integer of 64 bits; numpy's integers count, bool does not."""
    if type(value) is not int and (isinstance(value, bool) or not isinstance(value, int | np.integer)):
        raise type_error(place, "an int", value)
    if not INT64_MIN <= int(value) <= INT64_MAX:
        raise ValueError(f"{place}: {value} does not fit into 64 bits")


def require_number(place: str, value: Any) -> None:
    """Require a finite number: JSON has no NaN and no infinity."""
    if type(value) is not float and (
        isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating)
    ):
        raise type_error(place, "a number", value)
    if isinstance(value, int):
        require_int(place, value)
    elif not math.isfinite(value):
        raise ValueError(f"{place}: {value!r} cannot be sent, because JSON has only finite numbers")


def require_str(place: str, value: Any) -> None:
    """Require a string."""
    if not isinstance(value, str):
        raise type_error(place, "a str", value)


def require_bool(place: str, value: Any) -> None:
    """Require True or False."""
    if not isinstance(value, bool):
        raise type_error(place, "True or False", value)


def require_bytes(place: str, value: Any) -> None:
    """Require bytes."""
    if not isinstance(value, bytes):
        raise type_error(place, "bytes", value)


def require_aware_datetime(place: str, value: Any) -> None:
    """Require a datetime with a time zone."""
    if not isinstance(value, datetime):
        raise type_error(place, "a datetime", value)
    if value.utcoffset() is None:
        raise ValueError(
            f"{place}: {value!r} has no time zone; pass an aware datetime, such as datetime.now(timezone.utc)"
        )


def one_of(*allowed: object) -> Check:
    """Make the check for one of several values."""

    def run(place: str, value: Any) -> None:
        # The type first: ``==`` compares an array item by item.
        if not any(isinstance(value, type(item)) and value == item for item in allowed):
            raise ValueError(f"{place}: must be one of {', '.join(map(repr, allowed))}, got {short_repr(value)}")

    return run


def at_least(bound: float, *, exclusive: bool = False) -> Check:
    """Make the check for a number of at least ``bound``, or more if ``exclusive``."""

    def run(place: str, value: Any) -> None:
        if value < bound or (exclusive and value == bound):
            raise ValueError(f"{place}: must be {'greater than' if exclusive else 'at least'} {bound}, got {value!r}")

    return run


def at_most(bound: float, *, exclusive: bool = False) -> Check:
    """Make the check for a number of at most ``bound``, or less if ``exclusive``."""

    def run(place: str, value: Any) -> None:
        if value > bound or (exclusive and value == bound):
            raise ValueError(f"{place}: must be {'less than' if exclusive else 'at most'} {bound}, got {value!r}")

    return run


def has_size(low: int = 0, high: int | None = None) -> Check:
    """Make the check for a string, list or map of ``low`` to ``high`` entries."""

    def run(place: str, value: Any) -> None:
        if len(value) < low or (high is not None and len(value) > high):
            limit = f"at least {low}" if high is None else f"{low} to {high}"
            raise ValueError(f"{place}: must have {limit} entries, got {len(value)}")

    return run


def matches(pattern: str) -> Check:
    """Make the check for a string that ``pattern`` matches somewhere."""
    compiled = re.compile(pattern)

    def run(place: str, value: Any) -> None:
        if not compiled.search(value):
            raise ValueError(f"{place}: must match {pattern!r}, got {short_repr(value)}")

    return run


def type_error(place: str, expected: str, value: Any) -> TypeError:
    """Return the error for a value of the wrong type, which shows the value unless the place holds a secret."""
    shown = "" if place.rpartition(".")[2] in SECRET_FIELDS else f"{short_repr(value)} "
    return TypeError(f"{place}: expected {expected}, got {shown}({type(value).__name__})")


def _accept_any(place: str, value: Any) -> None:
    pass


def _null(place: str, value: Any) -> None:
    if value is not None:
        raise type_error(place, "None", value)


def _unset(place: str, value: Any) -> None:
    if value is not UNSET:
        raise type_error(place, "UNSET", value)


_CHECKS_BY_TYPE: Mapping[Any, Check] = {
    bool: require_bool,
    int: require_int,
    float: require_number,
    str: require_str,
    bytes: require_bytes,
    datetime: require_aware_datetime,
    type(None): _null,
    UnsetType: _unset,
}


def _items(check: Check) -> Check:
    def run(place: str, value: Any) -> None:
        if not isinstance(value, (list, tuple)):
            raise type_error(place, "a list", value)
        try:
            for item in value:
                check(place, item)
        except (TypeError, ValueError):
            # Again with the position of the item in the error.
            for position, item in enumerate(value):
                check(f"{place}[{position}]", item)

    return run


def _entries(check: Check) -> Check:
    def run(place: str, value: Any) -> None:
        if not isinstance(value, Mapping):
            raise type_error(place, "a dict", value)
        for key, item in value.items():
            require_str(f"{place} key", key)
            check(f"{place}[{key!r}]", item)

    return run


def _instance(*classes: type) -> Check:
    names = " or ".join(cls.__name__ for cls in classes)

    def run(place: str, value: Any) -> None:
        if not isinstance(value, classes):
            raise type_error(place, names, value)

    return run


def _union(tp: Any) -> Check:
    is_nullable, is_optional = type(None) in members_of(tp), UnsetType in members_of(tp)
    members = [member for member in members_of(tp) if member not in (type(None), UnsetType)]
    if any(member is Any or getattr(get_origin(member) or member, "__module__", "") == "numpy" for member in members):
        return _accept_any
    if all(isinstance(member, type) and attrs.has(member) for member in members):
        checks = [_instance(*members)]
    else:
        checks = [validator_of(member) for member in members]
    name = re.sub(r"\b(?:\w+\.)+", "", str(tp)).replace(" | UnsetType", "")

    def run(place: str, value: Any) -> None:
        if (value is None and is_nullable) or (value is UNSET and is_optional):
            return
        if len(checks) == 1:
            checks[0](place, value)
        else:
            errors = [_error_of(check, place, value) for check in checks]
            if None not in errors:
                # The error for a value of an expected type explains more than the list of types.
                raise next((error for error in errors if isinstance(error, ValueError)), type_error(place, name, value))

    return run


def _error_of(check: Check, place: str, value: Any) -> Exception | None:
    try:
        check(place, value)
    except (TypeError, ValueError) as error:
        return error
    return None
