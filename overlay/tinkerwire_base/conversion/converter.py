"""Converter between models and JSON, for some wire versions.

Requests carry every field that the wire version has, defaults included, as the defaults of servers differ. Optional
nulls are omitted. A value that the version lacks, or that JSON cannot represent, raises DialectError. orjson serializes
numpy arrays. In responses, models that allow extra keys keep unknown keys, and unknown enum values pass. A list of
plain values is checked to be a list and returned unchanged.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

import attrs
import cattrs
import orjson
from cattrs.cols import list_structure_factory, mapping_structure_factory
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override
from cattrs.v import format_exception

from ..list_array import stored_form
from ..reflection import (
    allows_extra,
    as_comparable,
    default_of,
    essential_fields,
    field_name,
    fields_of,
    forbids_extra,
    is_protobuf_only,
    resolve_types,
    wire_name,
)
from ..unset import UNSET
from . import structure_hooks
from .json_text import parse_json
from .lenient import Report, essential_texts, lenient_fields, lenient_hook, lenient_structure, structure_texts
from .unions import structure_union
from .version_rules import VersionRules, protobuf_only_checks

T = TypeVar("T")


class Converter:
    """Encodes requests for some wire versions, and decodes responses of any version.

    Args:
        rules: the parts of the contract that the server may support; None for all of the contract.
        is_whole: read protobuf-only fields, too: dumps of models have them.
        report: function that logs a warning about a value that is read as None, see :mod:`.lenient`; without it no
            value is read leniently.
    """

    def __init__(
        self, rules: VersionRules | None = None, *, is_whole: bool = False, report: Report | None = None
    ) -> None:
        """Build the fast converter."""
        self._rules = rules
        self._is_whole = is_whole
        self._report = report
        self._fast = self._build(detailed=False)

    def encode(self, value: Any) -> bytes:
        """Return the JSON text of a model.

        Raises:
            DialectError: the wire version cannot express the model.
            TypeError: a value has no JSON form; the error names its place.
        """
        plain = self.unstructure(value)
        try:
            return _dumps(plain)
        except RecursionError:
            raise _too_deep(value) from None
        except TypeError as error:
            if "ecursion" in str(error):
                raise _too_deep(value) from None
            raise TypeError("; ".join(_unencodable(plain, type(value).__name__)) or str(error)) from None

    def unstructure(self, value: Any) -> Any:
        """Return the JSON value of a model as dicts and lists; arrays stay arrays. Errors: see :meth:`encode`."""
        try:
            return self._fast.unstructure(value)
        except RecursionError:
            raise _too_deep(value) from None
        except AttributeError as error:
            raise TypeError(f"{type(value).__name__}: a value does not have the type of its field: {error}") from None

    def structure(self, value: Any, kind: Any) -> Any:
        """Read a JSON value as a type; ValueError names each value that does not fit, with its place."""
        try:
            return self._fast.structure(value, kind)
        except structure_hooks.STRUCTURE_ERRORS as error:
            raise ValueError("; ".join(self._explain(value, kind)) or str(error)) from None

    def decode(self, text: bytes, kind: type[T]) -> T:
        """Read a JSON text as a type; ValueError as in :meth:`structure`."""
        found: T = self.structure(parse_json(text), kind)
        return found

    def _explain(self, value: Any, kind: Any) -> list[str]:
        try:
            self._detailed.structure(value, kind)
        except cattrs.BaseValidationError as error:
            return cattrs.transform_error(error, path=getattr(kind, "__name__", "$"), format_exception=_describe_error)
        except structure_hooks.STRUCTURE_ERRORS as error:
            return [str(error)]
        return []

    @cached_property
    def _detailed(self) -> cattrs.Converter:
        """Converter with detailed errors, which is slower; made at the first value that does not fit."""
        return self._build(detailed=True)

    def _build(self, *, detailed: bool) -> cattrs.Converter:
        conv = cattrs.Converter(detailed_validation=detailed)
        for kind in (str, int, float, bool):
            conv.register_structure_hook(kind, structure_hooks.structure_scalar(kind))
            conv.register_unstructure_hook(kind, lambda value: value)
        conv.register_structure_hook(datetime, structure_hooks.structure_datetime)
        conv.register_unstructure_hook(datetime, lambda value: value.isoformat())
        conv.register_structure_hook(bytes, structure_hooks.structure_bytes)
        conv.register_unstructure_hook(bytes, lambda value: b64encode(value).decode())
        conv.register_structure_hook_factory(
            attrs.has, lambda cls: _structure_class(conv, cls, is_whole=self._is_whole, report=self._report)
        )
        conv.register_unstructure_hook_factory(attrs.has, lambda cls: self._unstructure_class(conv, cls))
        conv.register_structure_hook_factory(
            structure_hooks.is_list,
            lambda tp: structure_hooks.structure_only(list, tp, list_structure_factory(tp, conv)),
        )
        conv.register_structure_hook_factory(
            structure_hooks.is_dict,
            lambda tp: structure_hooks.structure_only(dict, tp, mapping_structure_factory(tp, conv)),
        )
        conv.register_structure_hook_factory(structure_hooks.is_tuple, structure_hooks.structure_tuple)
        conv.register_unstructure_hook_func(structure_hooks.is_tuple, lambda value: value)
        conv.register_structure_hook_factory(structure_hooks.is_union, lambda tp: structure_union(conv, tp))
        conv.register_unstructure_hook_factory(structure_hooks.is_union, lambda tp: conv.unstructure)
        conv.register_structure_hook_factory(structure_hooks.is_bulk, structure_hooks.structure_bulk)
        conv.register_unstructure_hook_func(structure_hooks.is_bulk, lambda value: value)
        return conv

    def _unstructure_class(self, conv: cattrs.Converter, cls: type) -> Callable[..., Any]:
        resolve_types(cls)
        rules = self._rules
        checks = [*protobuf_only_checks(cls, rules.max_version if rules else ""), *(rules.checks(cls) if rules else [])]
        absent = rules.absent_fields(cls) if rules else {}
        doubtful = rules.partially_supported_fields(cls) if rules else []
        fields = [a for a in fields_of(cls) if field_name(a) not in absent and not is_protobuf_only(a)]
        overrides: dict[str, Any] = _renames(cls, is_whole=False)
        overrides |= {name: override(omit=True) for name in absent}
        stored = [a for a in fields if field_name(a) in getattr(cls, "_sent_as_stored", ())]
        overrides |= {_cattrs_name(cls, a): override(omit=True) for a in stored}
        unstructure: Callable[..., Any] = make_dict_unstructure_fn(cls, conv, **overrides)
        # cattrs' omit_if_default compares values with ``==``, which fails on arrays.
        blank = [(a.name, wire_name(a), a.default) for a in fields if a.default is None or a.default is UNSET]
        known = [a for a in fields if field_name(a) in doubtful and a.default is not None and a.default is not UNSET]
        plain = [(field_name(a), wire_name(a), default_of(a)) for a in known]
        is_open = allows_extra(cls)
        if not checks and not blank and not plain and not is_open and not stored:
            return unstructure

        def unstructure_checked(value: Any) -> Any:
            for check in checks:
                check(value)
            found = unstructure(value)
            for attribute in stored:
                found[wire_name(attribute)] = stored_form(getattr(value, attribute.name))
            for name, wire, default in blank:
                if getattr(value, name) is default:
                    del found[wire]
            for name, wire, default in plain:
                if as_comparable(getattr(value, name)) == default:
                    del found[wire]
            if is_open and value.extra_fields:
                found.update(value.extra_fields)
            return found

        return unstructure_checked


def _describe_error(error: BaseException, kind: type | None) -> str:
    # The texts of cattrs for these errors are less specific.
    return str(error) if isinstance(error, ValueError | TypeError) else format_exception(error, kind)


def _structure_class(conv: cattrs.Converter, cls: type, *, is_whole: bool, report: Report | None) -> Callable[..., Any]:
    resolve_types(cls)
    overrides = _renames(cls, is_whole=is_whole)
    for a in fields_of(cls):
        if field_name(a) in getattr(cls, "_read_as_tuples", ()):
            hook = structure_hooks.structure_as_tuple(conv.get_structure_hook(a.type))
            overrides[_cattrs_name(cls, a)] = override(rename=wire_name(a), struct_hook=hook)
    if report is not None:
        special = {
            field_name(a): (a, lenient_hook(conv, f"{cls.__name__}.{wire_name(a)}", a.type, report))
            for a in lenient_fields(cls)
        }
        special |= {field_name(a): (a, structure_texts) for a in essential_texts(cls)}
        overrides |= {name: override(rename=wire_name(a), struct_hook=hook) for name, (a, hook) in special.items()}
    inner: Callable[..., Any] = make_dict_structure_fn(
        cls, conv, _cattrs_forbid_extra_keys=forbids_extra(cls), **overrides
    )
    if report is not None and essential_fields(cls) is not None:
        inner = lenient_structure(cls, inner)
    is_open = allows_extra(cls)
    known = {wire_name(a) for a in fields_of(cls) if is_whole or not is_protobuf_only(a)}

    def structure(value: Any, kind: Any) -> Any:
        if type(value) is not dict:
            return structure_hooks.require_instance((cls,), value)
        found = inner(value, kind)
        if is_open and not known >= value.keys():
            unknown = {key: item for key, item in value.items() if key not in known}
            object.__setattr__(found, "extra_fields", unknown)
        return found

    return structure


def _renames(cls: type, *, is_whole: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        _cattrs_name(cls, a): override(rename=wire_name(a))
        for a in fields_of(cls)
        if wire_name(a) != _cattrs_name(cls, a)
    }
    found |= {field_name(a): override(omit=True) for a in fields_of(cls) if is_protobuf_only(a) and not is_whole}
    if allows_extra(cls):
        found["extra_fields"] = override(omit=True)
    return found


def _cattrs_name(cls: type, attribute: attrs.Attribute[Any]) -> str:
    """Return the name of a field to cattrs, which sees the public names of models that are dataclasses, too."""
    return field_name(attribute) if is_dataclass(cls) else attribute.name


def _too_deep(value: Any) -> ValueError:
    return ValueError(f"{type(value).__name__}: values are nested too deeply for JSON")


def _dumps(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY, default=_plain_number)


def _plain_number(value: Any) -> Any:
    """Return numbers that orjson cannot serialize directly, such as non-contiguous numpy arrays, as plain values."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _unencodable(value: Any, place: str) -> Iterator[str]:
    """Yield the reasons why a JSON value cannot be written, one text per place."""
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(key, str):
                yield from _unencodable(item, f"{place}.{key}")
            else:
                yield f"{place}: JSON keys must be str, got {key!r} ({type(key).__name__})"
    elif isinstance(value, list | tuple):
        for position, item in enumerate(value):
            yield from _unencodable(item, f"{place}[{position}]")
    else:
        try:
            _dumps(value)
        except TypeError as error:
            yield f"{place}: {value!r:.200} cannot be written as JSON: {error}"
