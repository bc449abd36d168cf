"""What every generated model is made of: its decorator, its two bases, and the checks of its fields."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
from attrs import field
from typing_extensions import dataclass_transform

from .unset import UNSET

if TYPE_CHECKING:
    from .tensors import Array as Array
else:
    # The runtime need not know more of an array's type than that it passes through.
    Array = Any

T = TypeVar("T")
Check = Callable[[str, Any], None]

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


@attrs.define(frozen=True, kw_only=True)
class Strict:
    """Base of models whose schema refuses unknown keys (requests)."""


@attrs.define(frozen=True, kw_only=True)
class Open:
    """Base of models that keep unknown keys (responses)."""

    extra_fields: Mapping[str, Any] = field(factory=dict, repr=False)
    """Keys of the JSON object that this version of the contract does not know, as they came."""


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def define(cls: type[T]) -> type[T]:
    """Make a generated class an attrs class: slotted, keyword-only, immutable."""
    return attrs.define(cls, kw_only=True, slots=True, frozen=True)


def check(*checks: Check) -> Callable[[Any, attrs.Attribute[Any], Any], None]:
    """Run ``checks`` on a field's value unless it is UNSET or None; a failed one names class, field and value."""

    def run(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if value is not UNSET and value is not None:
            for one in checks:
                one(f"{type(instance).__name__}.{attribute.name}", value)

    return run


def is_int(place: str, value: Any) -> None:
    """A whole number of 64 bits; numpy's integers count, bool does not."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{place}: expected an int, got {value!r} ({type(value).__name__})")
    if not INT64_MIN <= int(value) <= INT64_MAX:
        raise ValueError(f"{place}: {value} does not fit into 64 bits")


def is_number(place: str, value: Any) -> None:
    """A finite number: JSON has no NaN and no infinity."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{place}: expected a number, got {value!r} ({type(value).__name__})")
    if not math.isfinite(value):
        raise ValueError(f"{place}: {value!r} cannot be sent, JSON has only finite numbers")


def is_str(place: str, value: Any) -> None:
    """A string."""
    if not isinstance(value, str):
        raise TypeError(f"{place}: expected a str, got {value!r} ({type(value).__name__})")


def is_bool(place: str, value: Any) -> None:
    """True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{place}: expected True or False, got {value!r} ({type(value).__name__})")


def one_of(*allowed: object) -> Check:
    """One of the named values."""

    def run(place: str, value: Any) -> None:
        if value not in allowed:
            raise ValueError(f"{place}: {value!r} is not one of {', '.join(map(repr, allowed))}")

    return run


def at_least(bound: float, *, exclusive: bool = False) -> Check:
    """A number not below ``bound``, or above it when ``exclusive``."""

    def run(place: str, value: Any) -> None:
        if value < bound or (exclusive and value == bound):
            raise ValueError(f"{place}: {value!r} is too small, it must be {'>' if exclusive else '>='} {bound}")

    return run


def at_most(bound: float, *, exclusive: bool = False) -> Check:
    """A number not above ``bound``, or below it when ``exclusive``."""

    def run(place: str, value: Any) -> None:
        if value > bound or (exclusive and value == bound):
            raise ValueError(f"{place}: {value!r} is too large, it must be {'<' if exclusive else '<='} {bound}")

    return run


def has_size(low: int = 0, high: int | None = None) -> Check:
    """A string, list or map of ``low`` to ``high`` entries."""

    def run(place: str, value: Any) -> None:
        if len(value) < low or (high is not None and len(value) > high):
            raise ValueError(
                f"{place}: has {len(value)} entries, allowed are {low} to {'any' if high is None else high}"
            )

    return run


def matches(pattern: str) -> Check:
    """A string in which ``pattern`` is found."""
    compiled = re.compile(pattern)

    def run(place: str, value: Any) -> None:
        if not compiled.search(value):
            raise ValueError(f"{place}: {value!r} does not match {pattern!r}")

    return run


def by_value(value: Any) -> Any:
    """How fields that may hold arrays are compared: by their values, in whichever form they are held."""
    return value.tolist() if hasattr(value, "tolist") else value
