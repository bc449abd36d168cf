"""What all binary messages have in common: reading their bytes, and holding them against a wire version."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from tinkerwire_base.conversion.version_rules import VersionRules, dialect_error, is_in_range
from tinkerwire_base.conversion.versioning import VersionRange
from tinkerwire_generated.availability import FIELD_VERSIONS, NEWEST, REQUIRED_VERSIONS, VALUE_VERSIONS
from tinkerwire_generated.protobuf import MESSAGE_FIELD_VERSIONS, MESSAGE_VERSIONS, message_class


def parsed(name: str, data: bytes) -> Any:
    """The message of bytes. ValueError when they are none."""
    from google.protobuf.message import DecodeError  # noqa: PLC0415  (slow to load, and not everybody needs it)

    try:
        return message_class(name).FromString(data)
    except DecodeError as error:
        raise ValueError(f"{name}: {len(data)} bytes are no such message: {error}") from None


def serialized(filled: Any, version: str | None) -> bytes:
    """The bytes of a message. DialectError when the wire version lacks the message, or a field that is filled."""
    if version is not None:
        name = filled.DESCRIPTOR.name
        if not is_in_range(version, *MESSAGE_VERSIONS[name]):
            raise dialect_error(f"the binary message {name}", version, *MESSAGE_VERSIONS[name])
        refuse_absent(filled, version)
    found: bytes = filled.SerializeToString(deterministic=True)
    return found


def refuse_absent(filled: Any, version: str) -> None:
    """Raise DialectError when a field is filled that the wire version lacks."""
    absent = _absent(version)
    if absent:
        _refuse_absent(filled, version, absent)


def has_field(version: str | None, name: str, field: str) -> bool:
    """Whether a wire version has a field of a message."""
    return version is None or field not in _absent(version).get(name, {})


def check_model(model: Any, version: str | None) -> None:
    """Raise DialectError when a model has a value that the wire version, by default the newest, cannot express."""
    kind: Any = type(model)  # mypy takes no type[Any] for hashable
    for check in _checks(version or NEWEST, kind):
        check(model)


@cache
def _checks(version: str, cls: Any) -> tuple[Any, ...]:
    # Kinds of values are fields of the message, each with times of its own.
    words = VersionRules(
        min_version=version,
        max_version=version,
        name=f"wire {version}",
        fields=FIELD_VERSIONS,
        types={},
        required=REQUIRED_VERSIONS,
        values=VALUE_VERSIONS,
        scalar_types={},
    )
    return tuple(words.checks(cls))


@cache
def _absent(version: str) -> dict[str, dict[str, VersionRange]]:
    found = {
        name: {field: span for field, span in fields.items() if not is_in_range(version, *span)}
        for name, fields in MESSAGE_FIELD_VERSIONS.items()
    }
    return {name: fields for name, fields in found.items() if fields}


def _refuse_absent(filled: Any, version: str, absent: dict[str, dict[str, VersionRange]]) -> None:
    here = absent.get(filled.DESCRIPTOR.name, {})
    for field, value in filled.ListFields():
        if field.name in here:
            raise dialect_error(f"{filled.DESCRIPTOR.name}.{field.name}", version, *here[field.name])
        for part in _parts(field, value):
            _refuse_absent(part, version, absent)


def _parts(field: Any, value: Any) -> Iterator[Any]:
    """The messages in a field: it may be one, a list of them, a map to them, or hold none."""
    kind = field.message_type
    if kind is None:
        return
    if hasattr(value, "ListFields"):
        yield value
    elif not kind.GetOptions().map_entry:
        yield from value
    elif kind.fields_by_name["value"].message_type is not None:
        yield from value.values()
