"""Structure hooks of unions: the tag of an object selects the model.

In a union without a discriminator, and in a union whose tag old clients leave out (``x-untagged`` of the contract),
the keys of an object select the model.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import Any, Literal, get_args, get_origin

import attrs
import cattrs

from ..reflection import fields_of, forbids_extra, is_tag_optional, members_of, resolve_types, wire_name
from ..short_repr import short_repr
from ..unset import UnsetType
from .structure_hooks import STRUCTURE_ERRORS, Hook, require_instance


def structure_union(conv: cattrs.Converter, tp: Any) -> Hook:
    """Make the hook of a union: it reads an object as one of the models, and other values as the first fitting member.

    Args:
        conv: the converter of the members.
        tp: the union.
    """
    members = [member for member in members_of(tp) if member not in (type(None), UnsetType)]
    models = [member for member in members if attrs.has(member)]
    others = [(conv.get_structure_hook(member), member) for member in members if not attrs.has(member)]
    pick = _structure_model(conv, models)
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
        raise TypeError(f"expected one of {', '.join(map(_name, members))}, got {short_repr(value)}")

    return structure


def _name(tp: Any) -> str:
    return tp.__name__ if isinstance(tp, type) and not get_args(tp) else str(tp)


def tag_table(models: Sequence[type]) -> tuple[str | None, dict[str, type]]:
    """Return the tag field that distinguishes all models, and the model of each tag; None without such a field."""
    for tag in _tags_of(models[0]) if models else ():
        values = [_tags_of(cls).get(tag, ()) for cls in models]
        if all(len(value) == 1 for value in values) and len(set(values)) == len(models):
            return tag, {value: cls for (value,), cls in zip(values, models, strict=True)}
    return None, {}


def _structure_model(conv: cattrs.Converter, models: Sequence[type]) -> Callable[[Any], Any]:
    """Make the hook that reads an object as one of the models."""
    hooks = {cls: conv.get_structure_hook(resolve_types(cls)) for cls in models}
    if len(models) == 1:
        return lambda value: hooks[models[0]](value, models[0])
    tag, classes = tag_table(models)
    needs_tag = tag is not None and not any(is_tag_optional(cls) for cls in models)
    pick_by_keys = _pick_by_keys(models)

    def structure(value: Any) -> Any:
        if type(value) is not dict:
            return require_instance(models, value)
        if not needs_tag and tag not in value:
            cls = pick_by_keys(value)
        else:
            found = value.get(tag)
            if type(found) is not str or found not in classes:
                problem = f"{tag} must be one of {', '.join(map(repr, classes))}"
                raise ValueError(f"{problem}, got {short_repr(found)}" if tag in value else f"{problem}, got no {tag}")
            cls = classes[found]
        return hooks[cls](value, cls)

    return structure


def _pick_by_keys(models: Sequence[type]) -> Callable[[Mapping[str, Any]], type]:
    """Make the function that picks a model by the required keys and the number of known keys of an object."""
    required = {cls: [a for a in fields_of(cls) if a.default is attrs.NOTHING] for cls in models}
    needs = {cls: {wire_name(a): type(None) in members_of(a.type) for a in required[cls]} for cls in models}
    known = {cls: {wire_name(a) for a in fields_of(cls)} for cls in models}
    twins = _twins({cls: (known[cls], needs[cls], _tags_of(cls)) for cls in models})

    def pick(value: Mapping[str, Any]) -> type:
        keys = value.keys()
        # A model without required keys accepts an empty object, but not an object that shares no key with it.
        near = [cls for cls in models if known[cls] & keys or not keys]
        fitting = [cls for cls in near if _has_keys(value, needs[cls]) and _tags_fit(cls, value)]
        if not fitting:
            names = " or ".join(cls.__name__ for cls in models)
            raise ValueError(f"expected the keys of {names}, got {sorted(keys)} (type {value.get('type')!r})")
        # A model that refuses unknown keys fits only if it knows all keys.
        fitting = [cls for cls in fitting if not forbids_extra(cls) or keys <= known[cls]] or fitting
        # The first of equals: dumps without defaults have no tag.
        best = max(fitting, key=lambda cls: _rank_fit(cls, len(known[cls] & keys), len(needs[cls]), keys))
        if best in twins:
            raise ValueError(f"keys {sorted(keys)} fit {twins[best]} equally; pass an instance of the intended class")
        return best

    return pick


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
    for attribute in fields_of(resolve_types(cls)):
        parts = members_of(attribute.type) or (attribute.type,)
        values = [v for part in parts if get_origin(part) is Literal for v in get_args(part)]
        if len(values) == 1 and all(get_origin(p) is Literal or p is type(None) for p in parts):
            found[wire_name(attribute)] = (values[0], *([None] if type(None) in parts else []))
    return found
