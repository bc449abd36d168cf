"""The protobuf messages of a release, from the serialized descriptors in its _pb2 files."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)
from google.protobuf.message import DecodeError

from .classify import last_name

Facts = dict[str, Any]


def read_proto(trees: Mapping[str, ast.Module]) -> Facts:
    """Read the descriptors by the last part of the module name, such as tinker_public_pb2."""
    files: Facts = {}
    for module, tree in sorted(trees.items()):
        for serialized in _find_serialized(tree):
            try:
                file = FileDescriptorProto.FromString(serialized)
            except DecodeError as error:
                raise ValueError(
                    f"{module}: the serialized descriptor cannot be parsed: {error}; use a complete release"
                ) from error
            files[module.rpartition(".")[2]] = describe_file(file)
    return files


def describe_file(file: FileDescriptorProto) -> Facts:
    """Describe one descriptor in the form of the facts."""
    messages = {name: _message(enum, file.package) for name, enum in _messages(file.message_type)}
    enums = {enum.name: _enum(enum) for enum in file.enum_type}
    for name, message in _messages(file.message_type):
        enums |= {f"{name}.{enum.name}": _enum(enum) for enum in message.enum_type}
    return {
        "file": file.name,
        "package": file.package,
        "syntax": file.syntax or "proto2",
        "dependencies": list(file.dependency),
        "messages": messages,
        "enums": enums,
        "services": {enum.name: _service(enum, file.package) for enum in file.service},
    }


def _find_serialized(tree: ast.Module) -> Iterator[bytes]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and last_name(node) == "AddSerializedFile" and node.args:
            argument = node.args[0]
            if isinstance(argument, ast.Constant) and isinstance(argument.value, bytes):
                yield argument.value


def _messages(messages: Any, owner: str = "") -> Iterator[tuple[str, DescriptorProto]]:
    """Yield messages and nested messages, as Outer.Inner; map entries are not messages."""
    for message in messages:
        if not message.options.map_entry:
            name = f"{owner}{message.name}"
            yield name, message
            yield from _messages(message.nested_type, f"{name}.")


def _message(message: DescriptorProto, package: str) -> Facts:
    return {"fields": {field.name: _field(field, message, package) for field in message.field}}


def _field(field: FieldDescriptorProto, message: DescriptorProto, package: str) -> Facts:
    entries = {entry.name: entry for entry in message.nested_type if entry.options.map_entry}
    name = _type(field, package)
    entry = entries.get(field.type_name.rpartition(".")[2])
    if entry is not None:
        name = f"map<{', '.join(_type(part, package) for part in entry.field)}>"
    elif field.label == FieldDescriptorProto.LABEL_REPEATED:
        name = f"repeated {name}"
    facts: Facts = {"number": field.number, "type": name}
    if field.proto3_optional:
        facts["optional"] = True
    elif field.HasField("oneof_index"):
        facts["oneof"] = message.oneof_decl[field.oneof_index].name
    return facts


def _service(service: ServiceDescriptorProto, package: str) -> Facts:
    methods = {
        method.name: {
            "input": method.input_type.removeprefix(f".{package}."),
            "output": method.output_type.removeprefix(f".{package}."),
            "client_streaming": method.client_streaming,
            "server_streaming": method.server_streaming,
        }
        for method in service.method
    }
    return {"methods": methods}


def _type(field: FieldDescriptorProto, package: str) -> str:
    if field.type_name:
        return field.type_name.removeprefix(f".{package}.").removeprefix(".")
    return FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()


def _enum(enum: EnumDescriptorProto) -> Facts:
    return {value.name: value.number for value in enum.value}
