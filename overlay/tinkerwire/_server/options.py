"""Options of the server: their parser and their checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from numbers import Integral, Real
from typing import Any, TypeAlias, TypeVar, get_type_hints

import attrs

from tinkerwire_base.validators import require_str, type_error
from tinkerwire_generated.operations import OPERATIONS

T = TypeVar("T", bound=attrs.AttrsInstance)
_Validator: TypeAlias = Callable[[Any, "attrs.Attribute[Any]", Any], None]


def parse_options(cls: type[T], text: str, **fixed: Any) -> T:
    """Create an instance from a text such as ``failure=500,short_paths,missing=telemetry+weights_info``.

    A field of type bool is set by its name alone. ``+`` separates the values of a set.

    Args:
        cls: an attrs class whose fields have the types bool, float, str and frozenset[str].
        text: the options.
        fixed: values of fields that the text cannot set.

    Raises:
        ValueError: a part of the text is not valid; the error names it.
    """
    types = get_type_hints(cls)
    names = [field.name for field in attrs.fields(cls) if field.init and field.name not in fixed]
    values = fixed
    for part in filter(None, map(str.strip, text.split(","))):
        name, equals, value = part.partition("=")
        if name not in names:
            raise ValueError(f"{part!r}: unknown option {name!r}; choose from {', '.join(names)}")
        is_switch = types[name] is bool
        if is_switch == bool(equals):
            raise ValueError(f"{part!r}: write {name}{'' if is_switch else '=VALUE'}")
        try:
            values[name] = is_switch or (types[name](value) if types[name] in (float, str) else value.split("+"))
        except ValueError:
            raise ValueError(f"{part!r}: {value!r} is not a number") from None
    return cls(**values)


def split_assignment(option: str, text: str, example: str) -> tuple[str, str]:
    """Return the name and the value of ``NAME=VALUE``.

    Raises:
        ValueError: the name or the equals sign is missing.
    """
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise ValueError(f"{option} {text!r} must have the form NAME=VALUE, such as {example}")
    return name, value


def require_type(name: str, value: object, kind: Any, expected: str) -> None:
    """Raise TypeError unless a value is of a type; a bool is not a number."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise type_error(name, expected, value)


def require_seconds(name: str, value: Any) -> None:
    """Raise TypeError or ValueError unless a value is a finite number of seconds that is not negative."""
    require_type(name, value, Real, "a number")
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} must be 0 or more seconds, got {value!r}")


def read_names(name: str, value: Any) -> list[str]:
    """Return one text or several texts as a list; raise TypeError for another value."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, Iterable) or isinstance(value, bytes | Mapping):
        raise type_error(name, "a str or several of them", value)
    names = list(value)
    for item in names:
        require_str(name, item)
    return names


def typed(kind: Any, expected: str) -> _Validator:
    """Return a validator of the type of a field; see :func:`require_type`."""

    def validate(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
        require_type(attribute.name, value, kind, expected)

    return validate


def count(minimum: int) -> _Validator:
    """Return a validator of a field that is a whole number of at least a minimum."""

    def validate(instance: object, attribute: attrs.Attribute[Any], value: Any) -> None:
        require_type(attribute.name, value, Integral, "a whole number")
        if value < minimum:
            raise ValueError(f"{attribute.name} must be at least {minimum}, got {value!r}")

    return validate


def validate_seconds(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Validate a field that is a number of seconds; see :func:`require_seconds`."""
    require_seconds(attribute.name, value)


validate_seed = typed(Integral, "a whole number")
validate_switch = typed(bool, "True or False")


def validate_probability(instance: object, attribute: attrs.Attribute[Any], value: Any) -> None:
    """Validate a field that is a probability."""
    require_type(attribute.name, value, Real, "a number")
    if not 0 <= value <= 1:
        raise ValueError(f"{attribute.name} must be a probability from 0 to 1, got {value!r}")


def known_operations(*groups: str) -> _Validator:
    """Return a validator of a field that holds names of operations; errors also offer the groups."""

    def validate(instance: object, attribute: attrs.Attribute[Any], value: Collection[str] | None) -> None:
        unknown = sorted(set(value or ()) - OPERATIONS.keys())
        if unknown:
            choices = ", ".join([*groups, *OPERATIONS])
            raise ValueError(f"{attribute.name}: unknown operation {', '.join(unknown)}; choose from {choices}")

    return validate


def choice_field(*choices: str) -> Any:
    """Return an attrs field that is one of the choices, by default the first one."""

    def validate(instance: object, attribute: attrs.Attribute[str], value: str) -> None:
        if value not in choices:
            raise ValueError(f"{attribute.name} must be one of {', '.join(choices)}, got {value!r}")

    return attrs.field(default=choices[0], validator=validate)
