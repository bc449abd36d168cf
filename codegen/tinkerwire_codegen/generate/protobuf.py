"""Protobuf messages for the run time: descriptors as bytes, and version tables."""

from __future__ import annotations

from pathlib import Path

from google.protobuf import descriptor_pb2 as pb

from tinkerwire_base.conversion.versioning import VersionRange

from ..contract.protobuf import FILE, Availability, Field, Proto, compile_descriptors, describe_proto, load_proto

DESCRIPTORS = "protobuf.binpb"
"""File of the descriptors, beside the module."""

MODULE = '''"""Protobuf messages of the wire: their versions, and their classes, which the first use builds.

The descriptors have a separate pool, so that they cannot clash with another package of these messages in the
process. Importing this module does not import protobuf.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from tinkerwire_base.conversion.versioning import VersionRange

PACKAGE = "{package}"

MESSAGE_VERSIONS: Mapping[str, VersionRange] = {message_ranges!r}
"""Versions of each message, as (since, until)."""

MESSAGE_FIELD_VERSIONS: Mapping[str, Mapping[str, VersionRange]] = {field_ranges!r}
"""Versions of the fields that are newer than their message or were removed before it."""

MESSAGE_FIELDS: Mapping[str, Mapping[str, tuple[str, str, str]]] = {fields!r}
"""The fields of each message, as (type, label, oneof).

The label is optional, repeated, map or empty; the type is that of one value of a list or a map. Text without a value is
empty.
"""

ENUM_VALUES: Mapping[str, Mapping[str, int]] = {enum_values!r}
"""The numbers of the values of each enum."""

_lock = Lock()
_built: list[dict[str, Any]] = []


def message_class(name: str) -> Any:
    """Return the class of a message.

    Raises:
        KeyError: the wire has no message of this name.
        ImportError: protobuf is not installed.
    """
    if not _built:
        with _lock:
            if not _built:
                _built.append(_build())
    return _built[0][name]


def _build() -> dict[str, Any]:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: PLC0415  (slow to load)

    files = descriptor_pb2.FileDescriptorSet()
    files.ParseFromString(Path(__file__).with_name("{descriptors}").read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.AddSerializedFile(file.SerializeToString())
    return {{
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{{PACKAGE}}.{{name}}"))
        for name in MESSAGE_VERSIONS
    }}
'''


def generate_protobuf(schema: Path) -> tuple[str, bytes]:
    """Generate the source of the protobuf module, and the serialized FileDescriptorSet that it reads."""
    proto = load_proto(schema)
    source = MODULE.format(
        package=proto.package,
        descriptors=DESCRIPTORS,
        message_ranges=_message_ranges(proto),
        field_ranges=_field_ranges(proto),
        fields=_fields(proto),
        enum_values=describe_proto(proto)["enums"],
    )
    descriptors = compile_descriptors(schema / FILE) if proto.declarations else b""
    return source, _canonical_descriptors(descriptors)


def _message_ranges(proto: Proto) -> dict[str, VersionRange]:
    return {
        declaration.name: _range(declaration.availability)
        for declaration in proto.declarations
        if declaration.kind == "message"
    }


def _field_ranges(proto: Proto) -> dict[str, dict[str, VersionRange]]:
    ranges = {}
    for declaration in proto.declarations:
        fields = [field for field in declaration.fields if field.availability.since or field.availability.until]
        if declaration.kind == "message" and fields:
            ranges[declaration.name] = {
                field.name: _range(field.availability, declaration.availability) for field in fields
            }
    return ranges


def _fields(proto: Proto) -> dict[str, dict[str, tuple[str, str, str]]]:
    return {
        declaration.name: {field.name: _describe_field(field) for field in declaration.fields}
        for declaration in proto.declarations
        if declaration.kind == "message"
    }


def _describe_field(field: Field) -> tuple[str, str, str]:
    # "T", "repeated T" or "map<string, T>".
    label, _, kind = field.type.rstrip(">").rpartition(" ")
    return kind, label.partition("<")[0] or "optional" * field.optional, field.oneof or ""


def _range(availability: Availability, owner: Availability | None = None) -> VersionRange:
    since = availability.since or (owner.since if owner else None)
    assert since, "every message needs a since comment"
    return since, availability.until or (owner.until if owner else None)


def _canonical_descriptors(descriptors: bytes) -> bytes:
    """Remove from the descriptors what follows from the rest, and serialize them in one order."""
    parsed = pb.FileDescriptorSet.FromString(descriptors)
    for file in parsed.file:
        file.ClearField("source_code_info")
        for message in file.message_type:
            for part in (message, *message.nested_type):
                for field in part.field:
                    field.ClearField("json_name")
    return parsed.SerializeToString(deterministic=True)
