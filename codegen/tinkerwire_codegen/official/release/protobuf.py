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
from .problems import Problems

Facts = dict[str, Any]


def read_proto(trees: Mapping[str, ast.Module], problems: Problems | None = None) -> Facts:
    """Read the descriptors by the last part of the module name, such as tinker_public_pb2.

    A descriptor that cannot be read is recorded as a problem.
    """
    files: Facts = {}
    for module, tree in sorted(trees.items()):
        if not module.endswith("_pb2"):
            continue
        found = False
        for serialized in _find_serialized(tree):
            file = parse_descriptor(serialized)
            if file is not None:
                found = True
                files[module.rpartition(".")[2]] = describe_file(file)
        if not found and problems is not None:
            problems.add(module, tree, "messages of protobuf, whose descriptor cannot be read")
    return files


def parse_descriptor(serialized: bytes) -> FileDescriptorProto | None:
    """Parse a serialized descriptor; None if it is damaged."""
    try:
        return FileDescriptorProto.FromString(serialized)
    except DecodeError:
        return None


def read_proto_options(trees: Mapping[str, ast.Module]) -> dict[str, dict[str, Any]]:
    """Read packages, syntax, options, names in JSON and services of all descriptors, by kind and place."""
    facts: dict[str, dict[str, Any]] = {"protobuf package": {}, "protobuf options": {}, "protobuf service": {}}
    for _, tree in sorted(trees.items()):
        for serialized in _find_serialized(tree):
            file = parse_descriptor(serialized)
            if file is None:
                continue
            facts["protobuf package"][file.name.rpartition("/")[2]] = [file.package, file.syntax or "proto2"]
            _add_options(facts, file.name.rpartition("/")[2], file)
            for name, message in _messages(file.message_type):
                _add_options(facts, name, message)
                for field in message.field:
                    _add_options(facts, f"{name}.{field.name}", field)
            for enum in file.enum_type:
                _add_options(facts, enum.name, enum)
                for value in enum.value:
                    _add_options(facts, f"{enum.name}.{value.name}", value)
            for service in file.service:
                for method, fact in _service(service, file.package)["methods"].items():
                    facts["protobuf service"][f"{service.name}.{method}"] = fact
    return facts


def _add_options(facts: dict[str, dict[str, Any]], where: str, holder: Any) -> None:
    options = " ".join(str(holder.options).split()) if holder.HasField("options") else ""
    words = [options] if options else []
    if isinstance(holder, FieldDescriptorProto):
        words += [f"default: {holder.default_value}"] if holder.HasField("default_value") else []
        is_usual = not holder.json_name or holder.json_name == _json_name(holder.name)
        words += [] if is_usual else [f"json_name: {holder.json_name}"]
    if words:
        facts["protobuf options"][where] = ", ".join(words)


def _json_name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


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
            content = _evaluate_bytes(tree, node.args[0])
            if content is not None:
                yield content


def _evaluate_bytes(tree: ast.Module, expression: ast.expr) -> bytes | None:
    """Evaluate bytes: a constant, a sum of constants, or a name of them; None for another expression."""
    if isinstance(expression, ast.Constant) and isinstance(expression.value, bytes):
        return expression.value
    if isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.Add):
        sides = [_evaluate_bytes(tree, side) for side in (expression.left, expression.right)]
        return None if None in sides else b"".join(side for side in sides if side is not None)
    if isinstance(expression, ast.Name):
        for statement in tree.body:
            if isinstance(statement, ast.Assign) and last_name(statement.targets[0]) == expression.id:
                return _evaluate_bytes(tree, statement.value)
    return None


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
