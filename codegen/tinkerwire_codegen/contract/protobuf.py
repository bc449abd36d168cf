"""The protobuf messages of the wire: read with their versions, projected to one version, rendered as a .proto."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2 as pb

from tinkerwire_base.conversion.versioning import is_available, parse_version

FILE = "tinker_public.proto"
DESCRIPTION = "Protobuf messages of the Tinker wire."
AVAILABILITY_COMMENT = re.compile(r"(?:(since|until): ([\d.]+)|was (\S+) until ([\d.]+))")
SCALARS = {
    value: name.removeprefix("TYPE_").lower()
    for name, value in pb.FieldDescriptorProto.Type.items()
    if name not in ("TYPE_MESSAGE", "TYPE_ENUM", "TYPE_GROUP")
}


@dataclass(frozen=True)
class Availability:
    """Versions of a thing: the first that has it, the first that lacks it, and an earlier type."""

    since: str | None = None
    until: str | None = None
    was: tuple[str, str] | None = None

    def includes(self, version: str) -> bool:
        """Report whether the thing exists at ``version``."""
        return is_available({"x-since": self.since, "x-until": self.until}, parse_version(version))


@dataclass(frozen=True)
class Field:
    """Field of a message, or value of an enum, which has no type."""

    name: str
    number: int
    doc: str
    availability: Availability
    type: str = ""
    optional: bool = False
    oneof: str | None = None


@dataclass(frozen=True)
class Declaration:
    """A message or an enum."""

    kind: str
    name: str
    doc: str
    availability: Availability
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True)
class Proto:
    """A file of messages and enums."""

    package: str
    doc: str
    declarations: tuple[Declaration, ...]


def load_proto(folder: Path) -> Proto:
    """Load the protobuf messages in ``folder``; none if the contract has no .proto.

    Raises:
        ValueError: protoc rejects the file; the error has the text of protoc.
    """
    if not (folder / FILE).exists():
        return Proto("", DESCRIPTION, ())
    descriptors = pb.FileDescriptorSet()
    descriptors.ParseFromString(compile_descriptors(folder / FILE, comments=True))
    return _read_proto(descriptors.file[0])


def compile_descriptors(file: Path, *, comments: bool = False) -> bytes:
    """Compile a .proto to a serialized FileDescriptorSet.

    Raises:
        ValueError: protoc rejects the file; the error has the text of protoc.
    """
    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / "out"
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{file.parent}", f"--descriptor_set_out={out}"]
        command += ["--include_source_info"] * comments + [file.name]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            raise ValueError(f"{file}: {run.stderr.strip() or run.stdout.strip()}")
        return out.read_bytes()


def project_proto(proto: Proto, version: str) -> Proto:
    """Reduce the messages to one wire version, without availability."""
    declarations = []
    for declaration in proto.declarations:
        if declaration.availability.includes(version):
            fields = tuple(
                _project_field(field, version) for field in declaration.fields if field.availability.includes(version)
            )
            declarations.append(replace(declaration, fields=fields, availability=Availability()))
    return replace(proto, declarations=tuple(declarations))


def render_proto(proto: Proto) -> str:
    """Render the text of a .proto with its comments, without availability."""
    lines = [*_render_comment(proto.doc), 'syntax = "proto3";', "", f"package {proto.package};"]
    for declaration in proto.declarations:
        lines += [
            "",
            *_render_comment(declaration.doc),
            f"{declaration.kind} {declaration.name} {{",
            *_render_fields(declaration),
            "}",
        ]
    return "\n".join(lines) + "\n"


def describe_proto(proto: Proto) -> dict[str, Any]:
    """Describe messages and enums in the form of the fact files."""
    messages: dict[str, Any] = {}
    enums: dict[str, Any] = {}
    for declaration in proto.declarations:
        if declaration.kind == "enum":
            enums[declaration.name] = {field.name: field.number for field in declaration.fields}
        else:
            messages[declaration.name] = {
                "fields": {field.name: _describe_field(field) for field in declaration.fields}
            }
    return {"messages": messages, "enums": enums}


def _describe_field(field: Field) -> dict[str, Any]:
    fact: dict[str, Any] = {"number": field.number, "type": field.type}
    if field.optional:
        fact["optional"] = True
    if field.oneof:
        fact["oneof"] = field.oneof
    return fact


def _project_field(field: Field, version: str) -> Field:
    was, availability = field.availability.was, Availability()
    if was and parse_version(version) < parse_version(was[1]):
        return replace(field, type=was[0], availability=availability)
    return replace(field, availability=availability)


def _render_fields(declaration: Declaration) -> Iterator[str]:
    oneof = None
    for field in declaration.fields:
        if field.oneof != oneof:
            if oneof:
                yield "  }"
            if field.oneof:
                yield f"  oneof {field.oneof} {{"
            oneof = field.oneof
        indent = "    " if oneof else "  "
        yield from _render_comment(field.doc, indent)
        label = "optional " if field.optional else ""
        yield f"{indent}{label}{field.type}{' ' if field.type else ''}{field.name} = {field.number};"
    if oneof:
        yield "  }"


def _render_comment(text: str, indent: str = "") -> list[str]:
    return [f"{indent}// {line}".rstrip() for line in text.splitlines()]


def _read_proto(file: pb.FileDescriptorProto) -> Proto:
    comments = {tuple(location.path): location for location in file.source_code_info.location}
    number = pb.FileDescriptorProto.MESSAGE_TYPE_FIELD_NUMBER
    of_fields = pb.DescriptorProto.FIELD_FIELD_NUMBER
    messages = [
        Declaration(
            "message",
            message.name,
            *_read_comments(comments[number, place]),
            fields=tuple(
                _read_field(file.package, message, field, *_read_comments(comments[number, place, of_fields, index]))
                for index, field in enumerate(message.field)
            ),
        )
        for place, message in enumerate(file.message_type)
    ]
    number = pb.FileDescriptorProto.ENUM_TYPE_FIELD_NUMBER
    of_values = pb.EnumDescriptorProto.VALUE_FIELD_NUMBER
    enums = [
        Declaration(
            "enum",
            enum.name,
            *_read_comments(comments[number, place]),
            fields=tuple(
                Field(value.name, value.number, *_read_comments(comments[number, place, of_values, index]))
                for index, value in enumerate(enum.value)
            ),
        )
        for place, enum in enumerate(file.enum_type)
    ]
    return Proto(file.package, DESCRIPTION, (*enums, *messages))


def _read_comments(place: pb.SourceCodeInfo.Location) -> tuple[str, Availability]:
    """Read the comments at a place: the description and the availability."""
    doc = "\n".join(line.strip() for line in place.leading_comments.strip().splitlines())
    text = place.trailing_comments.strip()
    availability = Availability()
    for part in filter(None, text.split("; ")):
        match = AVAILABILITY_COMMENT.fullmatch(part)
        if not match:
            raise ValueError(
                f"{FILE}: comment must be since: VERSION, until: VERSION or was TYPE until VERSION, got {text!r}"
            )
        key, value, was, end = match.groups()
        if key:
            availability = replace(availability, since=value) if key == "since" else replace(availability, until=value)
        else:
            availability = replace(availability, was=(was, end))
    return doc, availability


def _read_field(
    package: str, owner: pb.DescriptorProto, field: pb.FieldDescriptorProto, doc: str, availability: Availability
) -> Field:
    kind = _render_type(package, owner, field)
    oneof = None
    if field.HasField("oneof_index") and not field.proto3_optional:
        oneof = owner.oneof_decl[field.oneof_index].name
    return Field(field.name, field.number, doc, availability, kind, optional=field.proto3_optional, oneof=oneof)


def _render_type(package: str, owner: pb.DescriptorProto, field: pb.FieldDescriptorProto) -> str:
    kind = SCALARS.get(field.type) or field.type_name.removeprefix(f".{package}.")
    for nested in owner.nested_type:
        if nested.options.map_entry and kind == f"{owner.name}.{nested.name}":
            return f"map<{', '.join(_render_type(package, nested, part) for part in nested.field)}>"
    return f"repeated {kind}" if field.label == pb.FieldDescriptorProto.LABEL_REPEATED else kind
