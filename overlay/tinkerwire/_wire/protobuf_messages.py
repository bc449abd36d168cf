"""Protobuf messages: parsing, serializing, and validation against a wire version."""

from __future__ import annotations

from functools import cache
from typing import Any

from tinkerwire_base.conversion.versioning import VersionRange
from tinkerwire_generated.availability import NEWEST
from tinkerwire_generated.protobuf import MESSAGE_FIELD_VERSIONS, MESSAGE_FIELDS, MESSAGE_VERSIONS, message_class

from .contract_rules import protobuf_rules


def parse_message(name: str, data: bytes) -> Any:
    """Return the message of bytes; raise ValueError if they cannot be parsed."""
    from google.protobuf.message import DecodeError  # noqa: PLC0415  (slow to load, and not everybody needs it)

    try:
        return message_class(name).FromString(data)
    except DecodeError as error:
        raise ValueError(f"{name}: {len(data)} bytes cannot be parsed: {error}") from None


def serialize_message(message: Any, version: str | None) -> bytes:
    """Return the bytes of a message; raise DialectError if the wire version lacks the message or a set field."""
    if version is not None:
        name = message.DESCRIPTOR.name
        protobuf_rules(version).require(f"the protobuf message {name}", MESSAGE_VERSIONS[name])
        refuse_absent(message, version)
    content: bytes = message.SerializeToString(deterministic=True)
    return content


def refuse_absent(message: Any, version: str) -> None:
    """Raise DialectError if a set field does not exist in the wire version."""
    absent = _absent(version)
    if absent:
        _refuse_absent(message, version, absent)


def has_field(version: str | None, name: str, field: str) -> bool:
    """Return whether a wire version has a field of a message."""
    return version is None or field not in _absent(version).get(name, {})


def check_model(model: Any, version: str | None) -> None:
    """Raise DialectError if the wire version, by default the newest, cannot express a value of a model."""
    kind: Any = type(model)  # mypy takes no type[Any] for hashable
    for check in _checks(version or NEWEST, kind):
        check(model)


@cache
def _checks(version: str, cls: Any) -> tuple[Any, ...]:
    return tuple(protobuf_rules(version).checks(cls))


@cache
def _absent(version: str) -> dict[str, dict[str, VersionRange]]:
    absent = {
        name: {field: span for field, span in fields.items() if not protobuf_rules(version).may_have(span)}
        for name, fields in MESSAGE_FIELD_VERSIONS.items()
    }
    return {name: fields for name, fields in absent.items() if fields}


def _refuse_absent(message: Any, version: str, absent: dict[str, dict[str, VersionRange]]) -> None:
    name = message.DESCRIPTOR.name
    absent_fields = absent.get(name, {})
    for descriptor, value in message.ListFields():
        field = descriptor.name
        if field in absent_fields:
            protobuf_rules(version).require(f"{name}.{field}", absent_fields[field])
        kind, label, _ = MESSAGE_FIELDS[name][field]
        if kind in MESSAGE_FIELDS:
            for part in value if label == "repeated" else value.values() if label == "map" else [value]:
                _refuse_absent(part, version, absent)
