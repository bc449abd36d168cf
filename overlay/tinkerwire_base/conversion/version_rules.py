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
    """The answer to the question whether a server has a thing of the contract, by the wire versions it may have.

    Every availability table of the contract is asked through :meth:`may_have` and :meth:`always_has`. A value that no
    version of the range supports raises DialectError, a value that all versions support is sent, and a value that only
    some support is sent unless it is the default.

    Raises:
        ValueError: a version cannot be parsed, or the range is empty.
    """

    min_version: str
    """The oldest version of the range."""
    max_version: str = attrs.field(default=attrs.Factory(lambda self: self.min_version, takes_self=True))
    """The newest; the same as min_version where the version is known."""
    name: str = attrs.field(default=attrs.Factory(lambda self: f"wire {self.max_version}", takes_self=True))
    """The name of the range in errors."""
    fields: FieldVersions = attrs.field(factory=dict, repr=False)
    """Since when and until when fields exist; the tables are those of tinkerwire_generated.availability."""
    types: Mapping[str, VersionRange] = attrs.field(factory=dict, repr=False)
    """The versions of models."""
    required: RequiredVersions = attrs.field(factory=dict, repr=False)
    """The versions that require a field that others let be absent."""
    values: ValueVersions = attrs.field(factory=dict, repr=False)
    """The versions of enum values."""
    scalar_types: ScalarTypeVersions = attrs.field(factory=dict, repr=False)
    """The versions in which a field accepts scalars of a type."""

    def __attrs_post_init__(self) -> None:
        """Check that the range is not empty."""
        if parse_version(self.min_version) > parse_version(self.max_version):
            raise ValueError(f"wire versions: {self.min_version} must not be newer than {self.max_version}")

    def may_have(self, span: VersionRange | None) -> bool:
        """Return whether any version of the range has a thing; None stands for a thing of all versions."""
        if span is None:
            return True
        since, until = span
        return parse_version(since) <= parse_version(self.max_version) and (
            until is None or parse_version(self.min_version) < parse_version(until)
        )

    def always_has(self, span: VersionRange) -> bool:
        """Return whether all versions of the range have a thing."""
        since, until = span
        return parse_version(since) <= parse_version(self.min_version) and (
            until is None or parse_version(self.max_version) < parse_version(until)
        )

    def require(self, what: str, span: VersionRange | None) -> None:
        """Raise DialectError if no version of the range has a thing, which ``what`` names in the error."""
        if span is not None and not self.may_have(span):
            raise dialect_error(what, self.max_version, *span, name=self.name)

    def absent_fields(self, cls: type) -> dict[str, VersionRange]:
        """Return the fields of a model that no version of the range has."""
        return {name: span for name, span in self._spans(cls).items() if not self.may_have(span)}

    def partially_supported_fields(self, cls: type) -> list[str]:
        """Return the fields of a model that some versions of the range have and others lack."""
        return [name for name, span in self._spans(cls).items() if self.may_have(span) and not self.always_has(span)]

    def checks(self, cls: type) -> Iterator[FieldRule]:
        """Yield the checks of a model before it is sent; each raises DialectError."""
        owner, absent = cls.__name__, self.absent_fields(cls)
        if owner in self.types and not self.may_have(self.types[owner]):
            yield lambda _: self.require(owner, self.types[owner])
        others = self.fields.get(owner, {}).get("*")
        if others and not self.may_have(others):
            yield self._forbid_extra(f"{owner}.extra_fields", others)
        required, values = self.required.get(owner, {}), self.values.get(owner, {})
        for attribute in fields_of(cls):
            wire, what = wire_name(attribute), f"{owner}.{field_name(attribute)}"
            if field_name(attribute) in absent:
                yield self._only_default(what, attribute, absent[field_name(attribute)])
            elif any(self.always_has(span) for span in required.get(wire, ())):
                yield self._not_left_out(what, field_name(attribute))
            lacking = {value: span for value, span in values.get(wire, {}).items() if not self.may_have(span)}
            if lacking:
                yield self._forbid_values(what, field_name(attribute), lacking)
            for kind, span in self.scalar_types.get(owner, {}).get(wire, {}).items():
                if not self.may_have(span):
                    yield self._forbid_scalar_type(kind, what, field_name(attribute), span)

    def _spans(self, cls: type) -> dict[str, VersionRange]:
        times = self.fields.get(cls.__name__, {})
        return {field_name(a): times[wire_name(a)] for a in fields_of(cls) if wire_name(a) in times}

    def _only_default(self, what: str, attribute: attrs.Attribute[Any], span: VersionRange) -> FieldRule:
        name, default = field_name(attribute), default_of(attribute)

        def check(model: Any) -> None:
            if as_comparable(getattr(model, name)) != default:
                self.require(what, span)

        return check

    def _forbid_extra(self, what: str, span: VersionRange) -> FieldRule:
        def check(model: Any) -> None:
            if model.extra_fields:
                self.require(what, span)

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
                self.require(f"{what} {value!r}", lacking[value])

        return check

    def _forbid_scalar_type(self, kind: str, what: str, name: str, span: VersionRange) -> FieldRule:
        python_type = SCALAR_TYPES[kind]

        def check(model: Any) -> None:
            if any(type(item) is python_type for item in _leaves(as_comparable(getattr(model, name)))):
                self.require(f"{what} with a {kind} in it", span)

        return check


def protobuf_only_checks(cls: type, version: str) -> Iterator[FieldRule]:
    """Yield the checks that the protobuf-only fields of a model, which JSON cannot represent, are at their defaults."""
    for attribute in fields_of(cls):
        if is_protobuf_only(attribute):
            yield _not_in_json(f"{cls.__name__}.{field_name(attribute)}", attribute, version)


def _not_in_json(what: str, attribute: attrs.Attribute[Any], version: str) -> FieldRule:
    name, default = field_name(attribute), default_of(attribute)

    def check(model: Any) -> None:
        if as_comparable(getattr(model, name)) != default:
            text = f"JSON cannot represent {what}; leave it at its default, or use a server that accepts protobuf"
            raise DialectError(text, what=what, version=version)

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


def dialect_error(what: str, version: str, since: str, until: str | None, *, name: str = "") -> DialectError:
    """Make the error for a thing that the wire version in use lacks; ``name`` is the name of that version in errors."""
    span = f"from {since}" + (f" to before {until}" if until else " on")
    return DialectError(
        f"{what} is not in {name or f'wire {version}'}: it exists {span}; omit it, or use a server that "
        "has such a version",
        what=what,
        version=version,
        since=since,
        until=until,
    )
