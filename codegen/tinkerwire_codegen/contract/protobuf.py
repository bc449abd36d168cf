"""The binary messages of the wire: read with their times, taken at one version, and written out as a .proto."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2 as pb

from tinkerwire_base.conversion.versioning import is_available, parse_version

FILE = "tinker_public.proto"
AVAILABILITY_COMMENT = re.compile(r"(?:(since|until): ([\d.]+)|was (\S+) until ([\d.]+))")
SCALARS = {
    value: name.removeprefix("TYPE_").lower()
    for name, value in pb.FieldDescriptorProto.Type.items()
    if name not in ("TYPE_MESSAGE", "TYPE_ENUM", "TYPE_GROUP")
}


@dataclass(frozen=True)
class Availability:
    """From when to when a thing is there, and of which type it was before a version."""

    since: str | None = None
    until: str | None = None
    was: tuple[str, str] | None = None

    def includes(self, version: str) -> bool:
        """Whether the thing is there at ``version``."""
        return is_available({"x-since": self.since, "x-until": self.until}, parse_version(version))


@dataclass(frozen=True)
class Field:
    """A field of a message, or a value of an enum, which has no type."""

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
    fields: tuple[Field, ...] = field(default=())


@dataclass(frozen=True)
class Proto:
    """A file of messages and enums."""

    package: str
    doc: str
    declarations: tuple[Declaration, ...]


def load_proto(folder: Path) -> Proto:
    """The binary messages in ``folder``. ValueError with protoc's own words when it is no .proto."""
    found = pb.FileDescriptorSet()
    found.ParseFromString(descriptor_set(folder / FILE, comments=True))
    return _read(found.file[0])


def descriptor_set(file: Path, *, comments: bool = False) -> bytes:
    """The serialized FileDescriptorSet of a .proto. ValueError with protoc's own words when it is none."""
    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / "out"
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{file.parent}", f"--descriptor_set_out={out}"]
        command += ["--include_source_info"] * comments + [file.name]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            raise ValueError(f"{file}: {run.stderr.strip() or run.stdout.strip()}")
        return out.read_bytes()


def project_proto(proto: Proto, version: str) -> Proto:
    """The messages, enums, fields and types of one wire version, without times."""
    declarations = []
    for declaration in proto.declarations:
        if declaration.availability.includes(version):
            there = tuple(
                _field_at(each, version) for each in declaration.fields if each.availability.includes(version)
            )
            declarations.append(replace(declaration, fields=there, availability=Availability()))
    return replace(proto, declarations=tuple(declarations))


def render_proto(proto: Proto) -> str:
    """The text of a .proto, comments included, times left out."""
    lines = [*_comment(proto.doc), 'syntax = "proto3";', "", f"package {proto.package};"]
    for declaration in proto.declarations:
        lines += ["", *_comment(declaration.doc), f"{declaration.kind} {declaration.name} {{", *_body(declaration), "}"]
    return "\n".join(lines) + "\n"


def describe_proto(proto: Proto) -> dict[str, Any]:
    """Messages and enums in the form of the fact files."""
    messages: dict[str, Any] = {}
    enums: dict[str, Any] = {}
    for declaration in proto.declarations:
        if declaration.kind == "enum":
            enums[declaration.name] = {each.name: each.number for each in declaration.fields}
        else:
            messages[declaration.name] = {"fields": {each.name: _fact(each) for each in declaration.fields}}
    return {"messages": messages, "enums": enums}


def _fact(each: Field) -> dict[str, Any]:
    found: dict[str, Any] = {"number": each.number, "type": each.type}
    if each.optional:
        found["optional"] = True
    if each.oneof:
        found["oneof"] = each.oneof
    return found


def _field_at(each: Field, version: str) -> Field:
    was, availability = each.availability.was, Availability()
    if was and parse_version(version) < parse_version(was[1]):
        return replace(each, type=was[0], availability=availability)
    return replace(each, availability=availability)


def _body(declaration: Declaration) -> Iterator[str]:
    oneof = None
    for each in declaration.fields:
        if each.oneof != oneof:
            if oneof:
                yield "  }"
            if each.oneof:
                yield f"  oneof {each.oneof} {{"
            oneof = each.oneof
        indent = "    " if oneof else "  "
        yield from _comment(each.doc, indent)
        label = "optional " if each.optional else ""
        yield f"{indent}{label}{each.type}{' ' if each.type else ''}{each.name} = {each.number};"
    if oneof:
        yield "  }"


def _comment(text: str, indent: str = "") -> list[str]:
    return [f"{indent}// {line}".rstrip() for line in text.splitlines()]


def _read(file: pb.FileDescriptorProto) -> Proto:
    comments = {tuple(each.path): each for each in file.source_code_info.location}
    number = pb.FileDescriptorProto.MESSAGE_TYPE_FIELD_NUMBER
    of_fields = pb.DescriptorProto.FIELD_FIELD_NUMBER
    messages = [
        Declaration(
            "message",
            message.name,
            *_read_comments(comments[number, place]),
            fields=tuple(
                _field(file.package, message, each, *_read_comments(comments[number, place, of_fields, index]))
                for index, each in enumerate(message.field)
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
                Field(each.name, each.number, *_read_comments(comments[number, place, of_values, index]))
                for index, each in enumerate(enum.value)
            ),
        )
        for place, enum in enumerate(file.enum_type)
    ]
    return Proto(file.package, "The binary messages of the Tinker wire.", (*enums, *messages))


def _read_comments(place: pb.SourceCodeInfo.Location) -> tuple[str, Availability]:
    """What the comments at a place say: what the thing is, and its times."""
    doc = "\n".join(line.strip() for line in place.leading_comments.strip().splitlines())
    text = place.trailing_comments.strip()
    availability = Availability()
    for part in filter(None, text.split("; ")):
        match = AVAILABILITY_COMMENT.fullmatch(part)
        if not match:
            raise ValueError(f"{FILE}: {text!r} is not since: VERSION, until: VERSION or was TYPE until VERSION")
        key, value, was, end = match.groups()
        if key:
            availability = replace(availability, since=value) if key == "since" else replace(availability, until=value)
        else:
            availability = replace(availability, was=(was, end))
    return doc, availability


def _field(
    package: str, owner: pb.DescriptorProto, each: pb.FieldDescriptorProto, doc: str, availability: Availability
) -> Field:
    kind = _type(package, owner, each)
    oneof = None
    if each.HasField("oneof_index") and not each.proto3_optional:
        oneof = owner.oneof_decl[each.oneof_index].name
    return Field(each.name, each.number, doc, availability, kind, optional=each.proto3_optional, oneof=oneof)


def _type(package: str, owner: pb.DescriptorProto, each: pb.FieldDescriptorProto) -> str:
    kind = SCALARS.get(each.type) or each.type_name.removeprefix(f".{package}.")
    for nested in owner.nested_type:
        if nested.options.map_entry and kind == f"{owner.name}.{nested.name}":
            return f"map<{', '.join(_type(package, nested, part) for part in nested.field)}>"
    return f"repeated {kind}" if each.label == pb.FieldDescriptorProto.LABEL_REPEATED else kind
