"""The stub of the protobuf messages, from their generated table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tinkerwire_generated.protobuf import ENUM_VALUES, MESSAGE_FIELDS

HEAD = """from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.internal.containers import RepeatedCompositeFieldContainer, RepeatedScalarFieldContainer
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import Message

DESCRIPTOR: FileDescriptor
"""
PYTHON_TYPES = {"float": "float", "double": "float", "bool": "bool", "string": "str", "bytes": "bytes"}
"""The Python types of protobuf scalars that are not integers."""


def text() -> str:
    """Return the stub of ``tinker.proto.tinker_public_pb2``."""
    lines = [HEAD]
    for enum, values in ENUM_VALUES.items():
        lines.append(f"{enum}: EnumTypeWrapper")
        lines += [f"{value}: int" for value in values]
    for message, fields in MESSAGE_FIELDS.items():
        lines += ["", *_message(message, fields)]
    return "\n".join(lines) + "\n"


def _message(name: str, fields: Mapping[str, tuple[str, str, str]]) -> Iterator[str]:
    arguments = ""
    yield f"class {name}(Message):"
    for field, (kind, label, _) in fields.items():
        is_message = kind in MESSAGE_FIELDS
        value = kind if is_message else PYTHON_TYPES.get(kind, "int")
        argument = value
        if label == "map":
            value, argument = f"MutableMapping[str, {value}]", f"Mapping[str, {value}]"
        elif label == "repeated":
            container = f"Repeated{'Composite' if is_message else 'Scalar'}FieldContainer"
            value, argument = f"{container}[{value}]", f"Iterable[{value}]"
        if is_message or value != argument:
            yield "    @property"
            yield f"    def {field}(self) -> {value}: ..."
        else:
            yield f"    {field}: {value}"
        arguments += f", {field}: {argument} | None = ..."
    yield f"    def __init__(self{', *' + arguments if arguments else ''}) -> None: ..."
