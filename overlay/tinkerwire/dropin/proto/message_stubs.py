"""The stub of the protobuf messages, from their descriptors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

HEAD = """from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.internal.containers import RepeatedCompositeFieldContainer, RepeatedScalarFieldContainer
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import Message

DESCRIPTOR: FileDescriptor
"""
PROTOBUF_SCALARS = {
    1: "float",
    2: "float",
    3: "int",
    4: "int",
    5: "int",
    8: "bool",
    9: "str",
    12: "bytes",
    13: "int",
    14: "int",
}
"""The Python types of protobuf's, by number."""
MESSAGE_TYPE = 11


def text() -> str:
    """Return the stub of ``tinker.proto.tinker_public_pb2``."""
    from . import tinker_public_pb2 as messages  # noqa: PLC0415  (it loads protobuf)

    lines = [HEAD]
    for enum in messages.DESCRIPTOR.enum_types_by_name.values():
        lines.append(f"{enum.name}: EnumTypeWrapper")
        lines += [f"{value.name}: int" for value in enum.values]
    for message in messages.DESCRIPTOR.message_types_by_name.values():
        lines += ["", *_message(message)]
    return "\n".join(lines) + "\n"


def _message(descriptor: Any) -> Iterator[str]:
    yield f"class {descriptor.name}(Message):"
    for field in descriptor.fields:
        if _is_single(field) and field.type != MESSAGE_TYPE:
            yield f"    {field.name}: {PROTOBUF_SCALARS[field.type]}"
        else:
            yield "    @property"
            yield f"    def {field.name}(self) -> {_read(field)}: ..."
    parameters = "".join(f", {field.name}: {_parameter_type(field)} | None = ..." for field in descriptor.fields)
    yield f"    def __init__(self{', *' + parameters if parameters else ''}) -> None: ..."


def _is_map(field: Any) -> bool:
    return bool(field.type == MESSAGE_TYPE and field.message_type.GetOptions().map_entry)


def _is_single(field: Any) -> bool:
    # Newer protobuf has is_repeated in the place of label.
    repeated = field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED
    return not repeated


def _item(field: Any) -> str:
    return str(field.message_type.name) if field.type == MESSAGE_TYPE else PROTOBUF_SCALARS[field.type]


def _read(field: Any) -> str:
    if _is_map(field):
        key, value = field.message_type.fields
        return f"MutableMapping[{_item(key)}, {_item(value)}]"
    if _is_single(field):
        return _item(field)
    kind = "RepeatedCompositeFieldContainer" if field.type == MESSAGE_TYPE else "RepeatedScalarFieldContainer"
    return f"{kind}[{_item(field)}]"


def _parameter_type(field: Any) -> str:
    if _is_map(field):
        key, value = field.message_type.fields
        return f"Mapping[{_item(key)}, {_item(value)}]"
    return _item(field) if _is_single(field) else f"Iterable[{_item(field)}]"
