"""Pickling of models, and unpickling of the official SDK's classes of the same names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

import attrs

from .reflection import EXTRA_FIELDS, SlotSetter, slot_setters

T = TypeVar("T")
PYDANTIC_VALUES, PYDANTIC_EXTRA = "__dict__", "__pydantic_extra__"


def accept_official_pickles(cls: type[T]) -> type[T]:
    """Let a class of attrs load pickles of the official class of its name, and write its own as values in order."""
    # The method that attrs makes ignores unknown state, such as that of a pydantic model.
    cls.__setstate__ = set_state  # type: ignore[attr-defined]
    # The dict that attrs makes of each object takes more time to write and to read than its values.
    cls.__reduce_ex__ = _reduce  # type: ignore[method-assign]
    return cls


def restore(cls: Any, names: str, values: tuple[Any, ...]) -> Any:
    """Return the model of a pickle.

    Args:
        cls: the class of the model.
        names: names of its fields, separated by spaces.
        values: values of these fields, as ``_pack_values`` of the class returned them.

    Raises:
        pickle.UnpicklingError: the fields do not fit the class.
    """
    model = object.__new__(cls)
    layout = _layout(cls)
    if layout is None or names != layout.names:
        set_state(model, dict(zip(names.split(), values, strict=True)))
        return model
    if layout.unpack is not None:
        values = layout.unpack(values)
    for set_slot, value in zip(layout.setters, values, strict=True):
        set_slot(model, value)
    return model


def set_state(model: Any, state: Any) -> None:
    """Fill a model that is being unpickled or copied.

    The official SDK's models are pydantic models or dataclasses, depending on its version and the class. Their
    values go through the constructor, so that fields which that version lacks get their defaults.

    Raises:
        pickle.UnpicklingError: the state does not fit the model.
    """
    cls: Any = type(model)
    names = _names(cls)
    if isinstance(state, list):
        # The state of a dataclass with slots is the list of its values, in the order of its fields.
        state = dict(zip((attribute.alias for attribute in attrs.fields(cls)), state, strict=False))
    elif isinstance(state, tuple) and len(state) == 2:
        # The state of other classes with slots is a pair: the dict of the object, and the slots.
        state = {**(state[0] or {}), **(state[1] or {})}
    if isinstance(state, Mapping) and state.keys() == names:
        for name, value in state.items():
            object.__setattr__(model, name, value)
        return
    try:
        values = _official_values(model, state)
        model.__init__(**values)
    except (TypeError, ValueError) as error:
        from pickle import UnpicklingError  # noqa: PLC0415  (not needed to import the models)

        raise UnpicklingError(
            f"{type(model).__name__}: the pickle does not fit this version: {error}; load it with the release that "
            "wrote it, and pickle the model_dump() of each model instead"
        ) from error


@attrs.frozen
class _Layout:
    """The fields of a class: their names, a function that reads their values, and the setters of their slots."""

    names: str
    read: Callable[[Any], tuple[Any, ...]]
    setters: tuple[SlotSetter, ...]
    pack: Callable[[tuple[Any, ...], int], tuple[Any, ...]] | None
    unpack: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None


@cache
def _layout(cls: type) -> _Layout | None:
    """Return the fields of a class; None for a class that users derived, which may have other state and methods."""
    if vars(cls).get("__setstate__") is not set_state:
        return None
    setters, _ = slot_setters(cls)
    names = tuple(setters)
    read: Any = attrgetter(*names) if len(names) > 1 else lambda model: tuple(getattr(model, name) for name in names)
    pack, unpack = getattr(cls, "_pack_values", None), getattr(cls, "_unpack_values", None)
    return _Layout(" ".join(names), read, tuple(setters.values()), pack, unpack)


def _reduce(model: Any, protocol: Any) -> Any:
    cls: Any = type(model)
    layout = _layout(cls)
    if layout is None:
        return object.__reduce_ex__(model, protocol)
    values = layout.read(model)
    if layout.pack is not None:
        values = layout.pack(values, protocol)
    return restore, (cls, layout.names, values)


@cache
def _names(cls: Any) -> frozenset[str]:
    return frozenset(attribute.name for attribute in attrs.fields(cls))


def _official_values(model: Any, state: Any) -> dict[str, Any]:
    """Return the arguments of the constructor in the state of an official object."""
    if not isinstance(state, Mapping):
        raise TypeError(f"expected a dict as state, got {type(state).__name__}")
    cls: Any = type(model)
    names = {attribute.alias for attribute in attrs.fields(cls)}
    values = dict(state.get(PYDANTIC_VALUES, state))
    values |= state.get(PYDANTIC_EXTRA) or {}
    convert = getattr(cls, "_map_official_state", None)
    if convert is not None:
        values = convert(values)
    unknown = {name: values.pop(name) for name in values.keys() - names}
    if EXTRA_FIELDS in names:
        values[EXTRA_FIELDS] = {**values.get(EXTRA_FIELDS, {}), **unknown}
    elif unknown:
        raise ValueError(f"the model has no fields {', '.join(sorted(unknown))}")
    return values
