"""The binary messages to what the run time needs of them: descriptors as bytes, and their times as tables."""

from __future__ import annotations

from pathlib import Path

from google.protobuf import descriptor_pb2 as pb

from tinkerwire_base.conversion.versioning import VersionRange

from ..contract.protobuf import FILE, Availability, Proto, descriptor_set, load_proto

DESCRIPTORS = "protobuf.binpb"
"""The file of the descriptors, beside the module."""

MODULE = '''"""The binary messages of the wire: their times, and their classes, made of descriptors at the first use.

The descriptors lie in a pool of their own, so that no other package of these messages in the process can clash
with them. Importing this loads no protobuf.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from tinkerwire_base.conversion.versioning import VersionRange

PACKAGE = "{package}"

MESSAGE_VERSIONS: Mapping[str, VersionRange] = {message_times!r}
"""When each message exists, as (since, until)."""

MESSAGE_FIELD_VERSIONS: Mapping[str, Mapping[str, VersionRange]] = {field_times!r}
"""The same of the fields that came later than their message or went earlier."""

_lock = Lock()
_built: list[dict[str, Any]] = []


def message_class(name: str) -> Any:
    """The class of a message. KeyError for a name that is none, ImportError without protobuf."""
    if not _built:
        with _lock:
            if not _built:
                _built.append(_build())
    return _built[0][name]


def _build() -> dict[str, Any]:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: PLC0415  (slow to load)

    found = descriptor_pb2.FileDescriptorSet()
    found.ParseFromString(Path(__file__).with_name("{descriptors}").read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in found.file:
        pool.AddSerializedFile(file.SerializeToString())
    return {{
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{{PACKAGE}}.{{name}}"))
        for name in MESSAGE_VERSIONS
    }}
'''


def generate_protobuf(schema: Path) -> tuple[str, bytes]:
    """The source of the module of binary messages, and the serialized FileDescriptorSet that it reads."""
    proto = load_proto(schema)
    source = MODULE.format(
        package=proto.package,
        descriptors=DESCRIPTORS,
        message_times=_message_times(proto),
        field_times=_field_times(proto),
    )
    return source, _plain(descriptor_set(schema / FILE))


def _message_times(proto: Proto) -> dict[str, VersionRange]:
    return {
        declaration.name: _span(declaration.availability)
        for declaration in proto.declarations
        if declaration.kind == "message"
    }


def _field_times(proto: Proto) -> dict[str, dict[str, VersionRange]]:
    found = {}
    for declaration in proto.declarations:
        own = [each for each in declaration.fields if each.availability.since or each.availability.until]
        if declaration.kind == "message" and own:
            found[declaration.name] = {each.name: _span(each.availability, declaration.availability) for each in own}
    return found


def _span(availability: Availability, owner: Availability | None = None) -> VersionRange:
    since = availability.since or (owner.since if owner else None)
    assert since, "every message says since when it exists"
    return since, availability.until or (owner.until if owner else None)


def _plain(descriptors: bytes) -> bytes:
    """The same descriptors without what follows from the rest, and in one order of bytes."""
    found = pb.FileDescriptorSet.FromString(descriptors)
    for file in found.file:
        file.ClearField("source_code_info")
        for message in file.message_type:
            for part in (message, *message.nested_type):
                for each in part.field:
                    each.ClearField("json_name")
    return found.SerializeToString(deterministic=True)
