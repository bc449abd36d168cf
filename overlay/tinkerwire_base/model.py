"""What every generated model is made of: its decorator, its two bases, and what is known of its fields."""

from __future__ import annotations

import reprlib
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, TypeVar, Union, get_args, get_origin, overload

import attrs
from attrs import field
from typing_extensions import dataclass_transform

from .compat.pickling import takes_official_pickles
from .compat.pydantic_methods import PydanticMethods
from .lazy_numpy import Array as Array

T = TypeVar("T")
SHORT = reprlib.Repr()
"""Reprs that fit into a log, whatever the size of prompts, tensors and images."""
SHORT.maxlevel, SHORT.maxlist, SHORT.maxtuple, SHORT.maxdict = 8, 8, 8, 20
SHORT.maxstring, SHORT.maxother, SHORT.maxlong = 200, 2000, 40
SECRETS = frozenset({"access_token", "api_key", "jwt", "weights_access_token"})
"""Fields whose values no text shows."""


class Model(PydanticMethods):
    """Equality, hash and repr of all models, by their fields; arrays and lists of the same values are equal."""

    __slots__ = ()
    _essential: ClassVar[frozenset[str] | None] = None

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return list(_values(self)) == list(_values(other))

    def __hash__(self) -> int:
        # Unknown keys stand in a dict, which has no hash; those that are equal are equal in the rest, too.
        return hash((type(self), *(by_value(getattr(self, a.name)) for a in fields_of(type(self)))))

    def __repr__(self) -> str:
        cls: Any = type(self)
        shown = [(a.name, getattr(self, a.name)) for a in attrs.fields(cls) if not _is_default(self, a)]
        said = (f"{name}={'<secret>' if name in SECRETS else SHORT.repr(value)}" for name, value in shown)
        return f"{cls.__name__}({', '.join(said)})"


@overload
def define(cls: type[T]) -> type[T]: ...
@overload
def define(*, kw_only: bool) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def define(cls: type[T] | None = None, *, kw_only: bool = True) -> type[T] | Callable[[type[T]], type[T]]:
    """Make a generated class an attrs class: slotted, keyword-only unless said otherwise, immutable."""
    # Equality and repr are Model's: compiling them for every class is a third of the time of an import.
    make: Callable[[type[T]], type[T]] = attrs.define(kw_only=kw_only, slots=True, frozen=True, eq=False, repr=False)

    def wrap(plain: type[T]) -> type[T]:
        return takes_official_pickles(make(plain))

    return wrap if cls is None else wrap(cls)


# The two are made by attrs itself, so that type checkers take all models for classes of attrs.
@attrs.define(frozen=True, kw_only=True, eq=False, repr=False)
class ForbidExtra(Model):
    """Base of models whose schema refuses unknown keys (requests)."""


@attrs.define(frozen=True, kw_only=True, eq=False, repr=False)
class AllowExtra(Model):
    """Base of models that keep unknown keys (responses)."""

    extra_fields: Mapping[str, Any] = field(factory=dict)
    """Keys of the JSON object that this version of the contract does not know, as they came."""


def resolve(cls: Any) -> Any:
    """The class, with the types of its fields as types instead of text."""
    # Without the empty namespace a field that is called like a type would hide it.
    return attrs.resolve_types(cls, localns={})


def factory_of(attribute: attrs.Attribute[Any]) -> Callable[[], Any] | None:
    """What makes the default of a field, when something does."""
    default: Any = attribute.default
    return default.factory if isinstance(default, attrs.Factory) else None  # type: ignore[arg-type]


def default_of(attribute: attrs.Attribute[Any]) -> Any:
    """The default of a field, ``attrs.NOTHING`` for a required one."""
    factory = factory_of(attribute)
    return factory() if factory else attribute.default


def fields_of(cls: type) -> list[attrs.Attribute[Any]]:
    """The fields of a model that the contract names."""
    return [a for a in attrs.fields(cls) if not (a.name == "extra_fields" and issubclass(cls, AllowExtra))]


def essential_fields(cls: type) -> frozenset[str] | None:
    """Return the wire names of the fields that are never read leniently; None where that holds for all."""
    return getattr(cls, "_essential", None)


def is_protobuf(attribute: attrs.Attribute[Any]) -> bool:
    """Whether JSON has no place for a field."""
    return bool(attribute.metadata.get("binary"))


def wire_name(attribute: attrs.Attribute[Any]) -> str:
    """The key of a field on the wire."""
    name: str = attribute.metadata.get("wire", attribute.name)
    return name


def members_of(tp: Any) -> tuple[Any, ...]:
    """The members of a union, or nothing."""
    return get_args(tp) if get_origin(tp) in (Union, types.UnionType) else ()


def by_value(value: Any) -> Any:
    """A value that can be compared: arrays as lists."""
    return value.tolist() if hasattr(value, "tolist") else value


def _values(model: Any) -> Iterator[Any]:
    return (by_value(getattr(model, attribute.name)) for attribute in attrs.fields(type(model)))


def _is_default(model: Any, attribute: attrs.Attribute[Any]) -> bool:
    value = getattr(model, attribute.name)
    return not hasattr(value, "tolist") and value == default_of(attribute)
