"""Objects to JSON and back, by the generated models; one converter per wire version.

Out: every field that the wire version has, defaults included, so that no server's own default can differ;
optional nulls are left out; a value that the version cannot express raises DialectError. Numpy arrays are
left to orjson. In: unknown keys are kept on open models, unknown enum values pass, and lists of plain
numbers are handed over as they came.
"""

from __future__ import annotations

import types
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import attrs
import cattrs
import orjson
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from .errors import DialectError
from .model import Open, Strict
from .projection import parse_version
from .timestamps import parse_timestamp
from .unset import UNSET, UnsetType

T = TypeVar("T")
Times = Mapping[str, Mapping[str, tuple[str, "str | None"]]]
"""Class name to field name to (since, until): only fields that have not always been there."""

_SCALARS = (bool, int, float, str, type(None))


def members_of(tp: Any) -> tuple[Any, ...]:
    """The members of a union, or nothing."""
    return get_args(tp) if get_origin(tp) in (Union, types.UnionType) else ()


def _is_plain(tp: Any) -> bool:
    """Whether the JSON form of a type is its Python form, so that there is nothing to do either way."""
    if tp is Any or tp in _SCALARS or tp is UnsetType or get_origin(tp) is Literal:
        return True
    if _is_array(tp):
        return True
    args = get_args(tp)
    if get_origin(tp) in (list, Sequence, Union, types.UnionType):
        return all(map(_is_plain, args))
    return get_origin(tp) is dict and args[0] is str and _is_plain(args[1])


def _is_array(tp: Any) -> bool:
    origin = get_origin(tp) or tp
    return getattr(origin, "__module__", "") == "numpy" and getattr(origin, "__name__", "") == "ndarray"


def _is_bulk(tp: Any) -> bool:
    return _is_plain(tp) and tp not in _SCALARS


def _scalar_hook(kind: type) -> Callable[[Any, Any], Any]:
    accepted = (int, float) if kind is float else (kind,)

    def structure(value: Any, _: Any) -> Any:
        if type(value) in accepted:
            return value
        raise TypeError(f"expected {kind.__name__}, got {type(value).__name__}")

    return structure


def _wire_name(attribute: attrs.Attribute[Any]) -> str:
    name: str = attribute.metadata.get("wire", attribute.name)
    return name


class Converter:
    """Encodes requests for one wire version and decodes answers of any.

    Args:
        version: the wire version that is spoken, None for everything the contract knows.
        times: since when and until when a field exists, from the generated tables.
    """

    def __init__(self, version: str | None = None, times: Times | None = None) -> None:
        self.version = version
        self._times = times or {}
        self._fast = self._build(detailed=False)

    def encode(self, value: Any) -> bytes:
        """The JSON text of a model; DialectError when the wire version cannot express it."""
        return orjson.dumps(self._fast.unstructure(value), option=orjson.OPT_SERIALIZE_NUMPY, default=_plain_number)

    def unstructure(self, value: Any) -> Any:
        """The JSON value of a model as dicts and lists; arrays stay arrays."""
        return self._fast.unstructure(value)

    def structure(self, value: Any, kind: Any) -> Any:
        """The object of a JSON value; ValueError with one line per misfit, each with its place."""
        try:
            return self._fast.structure(value, kind)
        except (ValueError, TypeError, KeyError, AttributeError) as fault:
            raise ValueError("; ".join(self._explain(value, kind)) or str(fault)) from None

    def decode(self, text: bytes, kind: type[T]) -> T:
        """The object of a JSON text; ValueError as in :meth:`structure`."""
        found: T = self.structure(orjson.loads(text), kind)
        return found

    def _explain(self, value: Any, kind: Any) -> list[str]:
        try:
            self._build(detailed=True).structure(value, kind)
        except cattrs.BaseValidationError as fault:
            return cattrs.transform_error(fault, path=getattr(kind, "__name__", "$"))
        except (ValueError, TypeError, KeyError, AttributeError) as fault:
            return [str(fault)]
        return []

    def _build(self, *, detailed: bool) -> cattrs.Converter:
        conv = cattrs.Converter(detailed_validation=detailed)
        for kind in (str, int, float, bool):
            conv.register_structure_hook(kind, _scalar_hook(kind))
            conv.register_unstructure_hook(kind, lambda value: value)
        conv.register_structure_hook(datetime, lambda value, _: parse_timestamp(value))
        conv.register_unstructure_hook(datetime, lambda value: value.isoformat())
        conv.register_structure_hook(bytes, lambda value, _: b64decode(value, validate=True))
        conv.register_unstructure_hook(bytes, lambda value: b64encode(value).decode())
        conv.register_structure_hook_factory(attrs.has, lambda cls: self._structure_class(conv, cls))
        conv.register_unstructure_hook_factory(attrs.has, lambda cls: self._unstructure_class(conv, cls))
        conv.register_structure_hook_factory(_is_model_union, lambda tp: _structure_union(conv, tp))
        conv.register_unstructure_hook_factory(_is_model_union, lambda tp: conv.unstructure)
        conv.register_structure_hook_factory(_is_optional_model, lambda tp: _structure_optional(conv, tp))
        conv.register_structure_hook_func(_is_bulk, lambda value, _: value)
        conv.register_unstructure_hook_func(_is_bulk, lambda value: value)
        return conv

    def _structure_class(self, conv: cattrs.Converter, cls: type) -> Callable[..., Any]:
        attrs.resolve_types(cls)
        structure: Callable[..., Any] = make_dict_structure_fn(
            cls, conv, _cattrs_forbid_extra_keys=issubclass(cls, Strict), **_renames(cls)
        )
        if not issubclass(cls, Open):
            return structure
        known = {_wire_name(a) for a in attrs.fields(cls)}

        def structure_open(value: Any, kind: Any) -> Any:
            found = structure(value, kind)
            if not known >= value.keys():
                unknown = {key: item for key, item in value.items() if key not in known}
                object.__setattr__(found, "extra_fields", unknown)
            return found

        return structure_open

    def _unstructure_class(self, conv: cattrs.Converter, cls: type) -> Callable[..., Any]:
        attrs.resolve_types(cls)
        absent = self._absent_fields(cls)
        overrides = _renames(cls)
        for attribute in attrs.fields(cls):
            if attribute.name in absent:
                overrides[attribute.name] = override(omit=True)
            elif attribute.default is None or attribute.default is UNSET:
                rename = attribute.metadata.get("wire")
                overrides[attribute.name] = override(rename=rename, omit_if_default=True)
        unstructure: Callable[..., Any] = make_dict_unstructure_fn(cls, conv, **overrides)
        is_open = issubclass(cls, Open)
        if not absent and not is_open:
            return unstructure

        def unstructure_checked(value: Any) -> Any:
            for name, (attribute, since, until) in absent.items():
                if getattr(value, name) != _default_of(attribute):
                    raise self._not_in_dialect(cls.__name__, name, since, until)
            found = unstructure(value)
            if is_open and value.extra_fields:
                found.update(value.extra_fields)
            return found

        return unstructure_checked

    def _absent_fields(self, cls: type) -> dict[str, tuple[attrs.Attribute[Any], str, str | None]]:
        if self.version is None:
            return {}
        times = self._times.get(cls.__name__, {})
        return {
            attribute.name: (attribute, *times[_wire_name(attribute)])
            for attribute in attrs.fields(cls)
            if _wire_name(attribute) in times and not is_in(self.version, *times[_wire_name(attribute)])
        }

    def _not_in_dialect(self, owner: str, name: str, since: str, until: str | None) -> DialectError:
        return dialect_error(f"{owner}.{name}", self.version or "", since, until)


def is_in(version: str, since: str, until: str | None) -> bool:
    """Whether something that exists from ``since`` to before ``until`` is in ``version``."""
    now = parse_version(version)
    return parse_version(since) <= now and (until is None or now < parse_version(until))


def dialect_error(what: str, version: str, since: str, until: str | None) -> DialectError:
    """The error for a thing that the wire version in use does not have."""
    span = f"from {since}" + (f" to before {until}" if until else " on")
    return DialectError(
        f"{what} is not in wire {version}: it exists {span}; leave it at its default or use a server that "
        "speaks such a version",
        what=what,
        version=version,
        since=since,
        until=until,
    )


def _default_of(attribute: attrs.Attribute[Any]) -> Any:
    default: Any = attribute.default
    return default.factory() if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type]


def _plain_number(value: Any) -> Any:
    """What orjson does not know by itself: numpy arrays it cannot take as they lie in memory."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _renames(cls: type) -> dict[str, Any]:
    found: dict[str, Any] = {
        a.name: override(rename=a.metadata["wire"]) for a in attrs.fields(cls) if "wire" in a.metadata
    }
    if issubclass(cls, Open):
        found["extra_fields"] = override(omit=True)
    return found


def _models_in(tp: Any) -> list[type]:
    return [m for m in members_of(tp) if m is not type(None) and m is not UnsetType]


def _is_model_union(tp: Any) -> bool:
    models = _models_in(tp)
    return len(models) > 1 and all(attrs.has(m) for m in models)


def _is_optional_model(tp: Any) -> bool:
    members = members_of(tp)
    rest = _models_in(tp)
    return len(rest) == 1 and len(rest) < len(members) and not _is_plain(tp)


def _structure_optional(conv: cattrs.Converter, tp: Any) -> Callable[..., Any]:
    inner = _models_in(tp)[0]
    hook = conv.get_structure_hook(inner)
    return lambda value, _: None if value is None else hook(value, inner)


def _structure_union(conv: cattrs.Converter, tp: Any) -> Callable[..., Any]:
    """Pick by tag when one is sent, else the member whose required keys are there and that knows most keys."""
    models = [attrs.resolve_types(m) for m in _models_in(tp)]
    hooks = {cls: conv.get_structure_hook(cls) for cls in models}
    required = {cls: {_wire_name(a) for a in attrs.fields(cls) if a.default is attrs.NOTHING} for cls in models}
    known = {cls: {_wire_name(a) for a in attrs.fields(cls)} for cls in models}
    nullable = type(None) in members_of(tp)

    def structure(value: Any, _: Any) -> Any:
        if value is None and nullable:
            return None
        if not isinstance(value, dict):
            raise TypeError(f"expected an object, got {type(value).__name__}")
        keys = value.keys()
        fitting = [cls for cls in models if required[cls] <= keys and _tags_fit(cls, value)]
        if not fitting:
            names = ", ".join(cls.__name__ for cls in models)
            raise ValueError(f"keys {sorted(keys)} (type {value.get('type')!r}) fit none of {names}")
        best = max(fitting, key=lambda cls: (len(required[cls]), len(known[cls] & keys)))
        return hooks[best](value, best)

    return structure


def _tags_fit(cls: type, value: Mapping[str, Any]) -> bool:
    return all(value.get(name, tags[0]) in tags for name, tags in _tags_of(cls).items())


@lru_cache(maxsize=None)
def _tags_of(cls: type) -> dict[str, tuple[Any, ...]]:
    """The fields of a class that have one possible value: its tags (null too where the field is nullable)."""
    found = {}
    for attribute in attrs.fields(cls):
        parts = members_of(attribute.type) or (attribute.type,)
        values = [v for part in parts if get_origin(part) is Literal for v in get_args(part)]
        if len(values) == 1 and all(get_origin(p) is Literal or p is type(None) for p in parts):
            found[_wire_name(attribute)] = (values[0], *([None] if type(None) in parts else []))
    return found
