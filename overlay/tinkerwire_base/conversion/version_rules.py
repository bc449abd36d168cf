"""Version rules: the parts of the contract that a wire version, or a range of versions, supports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from ..errors import DialectError
from ..reflection import as_comparable, default_of, field_name, fields_of, is_protobuf_only, wire_name
from ..unset import UNSET
from .versioning import VersionRange, parse_version

FieldVersions = Mapping[str, Mapping[str, VersionRange]]
"""Class name to field name to span: only fields that have not always been there. ``*``: keys without a name."""
RequiredVersions = Mapping[str, Mapping[str, tuple[VersionRange, ...]]]
"""Class name to field name to spans: only fields that some versions require and others do not."""
ValueVersions = Mapping[str, Mapping[str, Mapping[str, VersionRange]]]
"""Class name to field name to value to span: only values that have not always been allowed."""
ScalarTypeVersions = ValueVersions
"""Class name to field name to JSON type to span: only scalar types that the field has not always taken."""

FieldRule = Callable[[Any], None]


@attrs.frozen(kw_only=True)
class VersionRules:
    """The wire versions that the server may have, and the availability tables of the contract.

    A value that no version of the range supports raises DialectError, a value that all versions support is sent, and a
    value that only some support is sent unless it is the default.

    Raises:
        ValueError: a version cannot be parsed, or the range is empty.
    """

    min_version: str
    """The oldest version of the range."""
    max_version: str
    """The newest; the same as min_version where the version is known."""
    name: str
    """The name of the range in errors."""
    fields: FieldVersions
    types: Mapping[str, VersionRange]
    required: RequiredVersions
    values: ValueVersions
    scalar_types: ScalarTypeVersions

    def __attrs_post_init__(self) -> None:
        """FieldRule that the range is not empty."""
        if parse_version(self.min_version) > parse_version(self.max_version):
            raise ValueError(f"wire {self.min_version} to {self.max_version}: the first is the newer one")

    def absent_fields(self, cls: type) -> dict[str, VersionRange]:
        """Return the fields of a model that no version of the range has."""
        return {name: span for name, span in self._spans(cls).items() if not self._has(span)}

    def partially_supported_fields(self, cls: type) -> list[str]:
        """Return the fields of a model that some versions of the range have and others lack."""
        return [name for name, span in self._spans(cls).items() if self._has(span) and not self._always_has(span)]

    def checks(self, cls: type) -> Iterator[FieldRule]:
        """Yield the checks of a model before it is sent; each raises DialectError."""
        owner, absent = cls.__name__, self.absent_fields(cls)
        if owner in self.types and not self._has(self.types[owner]):
            yield lambda _: self._refuse(owner, self.types[owner])
        others = self.fields.get(owner, {}).get("*")
        if others and not self._has(others):
            yield self._forbid_extra(f"{owner}.extra_fields", others)
        required, values = self.required.get(owner, {}), self.values.get(owner, {})
        for attribute in fields_of(cls):
            wire, what = wire_name(attribute), f"{owner}.{field_name(attribute)}"
            if field_name(attribute) in absent:
                yield self._only_default(what, attribute, absent[field_name(attribute)])
            elif any(self._always_has(span) for span in required.get(wire, ())):
                yield self._not_left_out(what, field_name(attribute))
            lacking = {value: span for value, span in values.get(wire, {}).items() if not self._has(span)}
            if lacking:
                yield self._forbid_values(what, field_name(attribute), lacking)
            for kind, span in self.scalar_types.get(owner, {}).get(wire, {}).items():
                if not self._has(span):
                    yield self._forbid_scalar_type(kind, what, field_name(attribute), span)

    def _spans(self, cls: type) -> dict[str, VersionRange]:
        times = self.fields.get(cls.__name__, {})
        return {field_name(a): times[wire_name(a)] for a in fields_of(cls) if wire_name(a) in times}

    def _has(self, span: VersionRange) -> bool:
        return overlaps(self.min_version, self.max_version, *span)

    def _always_has(self, span: VersionRange) -> bool:
        return is_in_range(self.min_version, *span) and is_in_range(self.max_version, *span)

    def _only_default(self, what: str, attribute: attrs.Attribute[Any], span: VersionRange) -> FieldRule:
        name, default = field_name(attribute), default_of(attribute)

        def check(model: Any) -> None:
            if as_comparable(getattr(model, name)) != default:
                self._refuse(what, span)

        return check

    def _forbid_extra(self, what: str, span: VersionRange) -> FieldRule:
        def check(model: Any) -> None:
            if model.extra_fields:
                self._refuse(what, span)

        return check

    def _not_left_out(self, what: str, name: str) -> FieldRule:
        def check(model: Any) -> None:
            value = getattr(model, name)
            if value is None or value is UNSET:
                text = f"{what} is required in {self.name}; give it a value"
                raise DialectError(text, what=what, version=self.max_version)

        return check

    def _forbid_values(self, what: str, name: str, lacking: Mapping[str, VersionRange]) -> FieldRule:
        def check(model: Any) -> None:
            value = getattr(model, name)
            if isinstance(value, str) and value in lacking:
                self._refuse(f"{what} {value!r}", lacking[value])

        return check

    def _forbid_scalar_type(self, kind: str, what: str, name: str, span: VersionRange) -> FieldRule:
        python_type = SCALAR_TYPES[kind]

        def check(model: Any) -> None:
            if any(type(item) is python_type for item in _leaves(as_comparable(getattr(model, name)))):
                self._refuse(f"{what} with a {kind} in it", span)

        return check

    def _refuse(self, what: str, span: VersionRange) -> None:
        raise dialect_error(what, self.max_version, *span, name=self.name)


def protobuf_only_checks(cls: type, version: str | None) -> Iterator[FieldRule]:
    """Yield the checks that the protobuf-only fields of a model, which JSON cannot carry, are at their defaults."""
    for attribute in fields_of(cls):
        if is_protobuf_only(attribute):
            yield _not_in_json(f"{cls.__name__}.{field_name(attribute)}", attribute, version)


def _not_in_json(what: str, attribute: attrs.Attribute[Any], version: str | None) -> FieldRule:
    name, default = field_name(attribute), default_of(attribute)

    def check(model: Any) -> None:
        if as_comparable(getattr(model, name)) != default:
            text = f"JSON cannot carry {what}; leave it at its default, or use a server that accepts protobuf"
            raise DialectError(text, what=what, version=version or "")

    return check


SCALAR_TYPES: Mapping[str, type] = {"boolean": bool, "integer": int, "number": float, "string": str}


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def is_in_range(version: str, since: str, until: str | None) -> bool:
    """Return whether ``version`` is at least ``since`` and below ``until``."""
    now = parse_version(version)
    return parse_version(since) <= now and (until is None or now < parse_version(until))


def overlaps(min_version: str, max_version: str, since: str, until: str | None) -> bool:
    """Return whether any version of a range is at least ``since`` and below ``until``."""
    return parse_version(since) <= parse_version(max_version) and (
        until is None or parse_version(min_version) < parse_version(until)
    )


def dialect_error(what: str, version: str, since: str, until: str | None, *, name: str = "") -> DialectError:
    """Make the error for a thing that the wire version in use lacks; ``name`` is the name of that version in errors."""
    span = f"from {since}" + (f" to before {until}" if until else " on")
    return DialectError(
        f"{what} is not in {name or f'wire {version}'}: it exists {span}; leave it at its default or use a server that "
        "has such a version",
        what=what,
        version=version,
        since=since,
        until=until,
    )
