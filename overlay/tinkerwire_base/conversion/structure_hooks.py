"""Structure hooks: read each kind of type from JSON, strictly at the top, without a look into plain lists."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Literal, get_args, get_origin

import attrs
import cattrs

from ..reflection import essential_fields, fields_of, forbids_extra, members_of, resolve_types, wire_name
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
_JSON_NAMES = {"dict": "object", "list": "array", "NoneType": "null", "str": "string", "tuple": "array"}


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


def structure_union(conv: cattrs.Converter, tp: Any, *, is_lenient: bool = False) -> Hook:
    """Make the hook of a union: it reads an object as one of the models, and other values as the first fitting member.

    Args:
        conv: the converter of the members.
        tp: the union.
        is_lenient: the fields of a model that are read leniently may be missing.
    """
    members = [member for member in members_of(tp) if member not in (type(None), UnsetType)]
    models = [member for member in members if attrs.has(member)]
    others = [(conv.get_structure_hook(member), member) for member in members if not attrs.has(member)]
    pick = _structure_model(conv, models, is_lenient=is_lenient)
    nullable = type(None) in members_of(tp)

    def structure(value: Any, _: Any) -> Any:
        if value is None and nullable:
            return None
        if not others or (models and type(value) is dict) or type(value) in models:
            return pick(value)
        for hook, kind in others:
            try:
                return hook(value, kind)
            except STRUCTURE_ERRORS:
                if len(members) == 1:
                    raise
        raise TypeError(f"{short_repr(value)} fits none of {', '.join(map(_name, members))}")

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
    forms: Mapping[Any, tuple[type, ...]] = {list: (list, tuple), Sequence: (list, tuple), dict: (dict,)}
    return forms.get(get_origin(tp) or tp, ())


def _name(tp: Any) -> str:
    return tp.__name__ if isinstance(tp, type) and not get_args(tp) else str(tp)


def _structure_model(conv: cattrs.Converter, models: Sequence[type], *, is_lenient: bool) -> Callable[[Any], Any]:
    """Make the hook that picks a member by tag or, without one, by required keys and the number of known keys."""
    hooks = {cls: conv.get_structure_hook(resolve_types(cls)) for cls in models}
    if len(models) == 1:
        return lambda value: hooks[models[0]](value, models[0])
    required = {cls: [a for a in fields_of(cls) if a.default is attrs.NOTHING] for cls in models}
    needs = {cls: {wire_name(a): type(None) in members_of(a.type) for a in required[cls]} for cls in models}
    if is_lenient:
        needs = {cls: _essential_needs(cls, needs[cls]) for cls in models}
    known = {cls: {wire_name(a) for a in fields_of(cls)} for cls in models}
    twins = _twins({cls: (known[cls], needs[cls], _tags_of(cls)) for cls in models})

    def structure(value: Any) -> Any:
        if type(value) is not dict:
            return require_instance(models, value)
        keys = value.keys()
        # A model without required keys accepts an empty object, but not an object that shares no key with it.
        near = [cls for cls in models if known[cls] & keys or not keys]
        fitting = [cls for cls in near if _has_keys(value, needs[cls]) and _tags_fit(cls, value)]
        if not fitting:
            names = ", ".join(cls.__name__ for cls in models)
            raise ValueError(f"keys {sorted(keys)} (type {value.get('type')!r}) fit none of {names}")
        # A model that refuses unknown keys fits only if it knows all keys.
        fitting = [cls for cls in fitting if not forbids_extra(cls) or keys <= known[cls]] or fitting
        ranks = {cls: _rank_fit(cls, len(known[cls] & keys), len(needs[cls]), keys) for cls in fitting}
        best = max(fitting, key=lambda cls: ranks[cls])
        alike = [cls.__name__ for cls in fitting if ranks[cls] == ranks[best]]
        # In a strict read an object without a tag is the first member that fits: dumps without defaults have no tag.
        if is_lenient and len(alike) > 1 and essential_fields(best) is not None:
            raise ValueError(f"keys {sorted(keys)} fit {' and '.join(alike)} equally, and its type is missing")
        if best in twins:
            raise ValueError(f"keys {sorted(keys)} fit {twins[best]} equally; pass an instance of the intended class")
        return hooks[best](value, best)

    return structure


def _essential_needs(cls: type, needs: Mapping[str, bool]) -> dict[str, bool]:
    essential = essential_fields(cls)
    return {key: nullable for key, nullable in needs.items() if essential is None or key in essential}


def _twins(traits: Mapping[type, Any]) -> dict[type, str]:
    """Return the models that no object can distinguish, as all their traits are equal, with the names of each group."""
    groups = {cls: [other.__name__ for other, theirs in traits.items() if theirs == own] for cls, own in traits.items()}
    return {cls: " and ".join(names) for cls, names in groups.items() if len(names) > 1}


def _rank_fit(cls: type, known: int, needed: int, keys: Collection[str]) -> tuple[bool, int, bool, int]:
    """Rank the fit of an object and a model, by the numbers of keys that the model knows and requires.

    A tag outranks keys: the keys of AdamW fit any optimizer. So does a missing tag: settings without a tag are those
    of AdamW, whose model has no tag.
    """
    tags = _tags_of(cls).keys()
    return bool(tags & keys), known, not tags, needed


def _has_keys(value: Mapping[str, Any], needs: Mapping[str, bool]) -> bool:
    """Return whether all required keys are present, and none that must not be null is null."""
    return all(key in value and (nullable or value[key] is not None) for key, nullable in needs.items())


def _tags_fit(cls: type, value: Mapping[str, Any]) -> bool:
    return all(value.get(name, tags[0]) in tags for name, tags in _tags_of(cls).items())


@cache
def _tags_of(cls: type) -> dict[str, tuple[Any, ...]]:
    """Return the fields of a class that have one possible value, its tags (and null for a nullable field)."""
    found = {}
    for attribute in fields_of(cls):
        parts = members_of(attribute.type) or (attribute.type,)
        values = [v for part in parts if get_origin(part) is Literal for v in get_args(part)]
        if len(values) == 1 and all(get_origin(p) is Literal or p is type(None) for p in parts):
            found[wire_name(attribute)] = (values[0], *([None] if type(None) in parts else []))
    return found
