"""Base classes of the generated models, and the decorator that makes the models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, TypeVar, overload

import attrs
from attrs import field
from typing_extensions import dataclass_transform

from .compat.pydantic_methods import PydanticMethods
from .html_repr import HtmlRepr
from .lazy_numpy import Array as Array
from .pickling import accept_official_pickles
from .reflection import as_comparable, default_of, field_name, fields_of
from .short_repr import SECRET_FIELDS, short_repr

T = TypeVar("T")


class Model(PydanticMethods, HtmlRepr):
    """Equality, hash and repr of all models, by their fields; arrays and lists of the same values are equal."""

    __slots__ = ()
    _essential: ClassVar[frozenset[str] | None] = None

    def __eq__(self, other: object) -> bool:
        """Compare the fields; an array equals a list of the same values."""
        if type(other) is not type(self):
            return NotImplemented
        return list(_values(self)) == list(_values(other))

    def __hash__(self) -> int:
        """Hash the class and the fields."""
        # Without the unknown keys, which a dict holds: dicts have no hash.
        return hash((type(self), *(as_comparable(getattr(self, field_name(a))) for a in fields_of(type(self)))))

    def __repr__(self) -> str:
        """Return the fields that differ from their defaults, shortened and without secrets."""
        cls: Any = type(self)
        shown = [(field_name(a), getattr(self, field_name(a))) for a in attrs.fields(cls) if not _is_default(self, a)]
        texts = (f"{name}={'<secret>' if name in SECRET_FIELDS else short_repr(value)}" for name, value in shown)
        return f"{cls.__name__}({', '.join(texts)})"


@overload
def define(cls: type[T]) -> type[T]: ...
@overload
def define(*, kw_only: bool) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def define(cls: type[T] | None = None, *, kw_only: bool = True) -> type[T] | Callable[[type[T]], type[T]]:
    """Make a generated class an attrs class: slotted, immutable and, by default, keyword-only."""
    # Model has equality and repr: compiling them for every class takes a third of the time of an import.
    make: Callable[[type[T]], type[T]] = attrs.define(kw_only=kw_only, slots=True, frozen=True, eq=False, repr=False)

    def wrap(plain: type[T]) -> type[T]:
        return accept_official_pickles(make(plain))

    return wrap if cls is None else wrap(cls)


# attrs.define decorates these two directly, so that type checkers treat all models as attrs classes.
@attrs.define(frozen=True, kw_only=True, eq=False, repr=False)
class ForbidExtra(Model):
    """Base of models whose schema refuses unknown keys (requests)."""

    _extra_keys: ClassVar[str] = "forbid"


@attrs.define(frozen=True, kw_only=True, eq=False, repr=False)
class AllowExtra(Model):
    """Base of models that keep unknown keys (responses)."""

    _extra_keys: ClassVar[str] = "allow"

    extra_fields: Mapping[str, Any] = field(factory=dict)
    """Keys of the JSON object that this version of the contract does not know, with their values."""


def _values(model: Any) -> Iterator[Any]:
    return (as_comparable(getattr(model, field_name(attribute))) for attribute in attrs.fields(type(model)))


def _is_default(model: Any, attribute: attrs.Attribute[Any]) -> bool:
    value = getattr(model, field_name(attribute))
    return not hasattr(value, "tolist") and value == default_of(attribute)
