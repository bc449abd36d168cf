"""Copies of a real release of the official SDK with edits, and their drift."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from tinkerwire_codegen.official.drift.detection import find_drift
from tinkerwire_codegen.official.release.archive import Release, open_release
from tinkerwire_codegen.official.release.read import read_facts

SCHEMA = Path(__file__).parents[3] / "schema"
VERSION = "0.38.0"
PROTO = "tinker/proto/tinker_public_pb2.py"
Found = tuple[str, str, str]


@dataclass(frozen=True)
class Edit:
    """Edits of the files of a release: texts replaced, files added or moved, and the descriptor changed."""

    replaced: tuple[tuple[str, str, str], ...] = ()
    added: Mapping[str, str] = field(default_factory=dict)
    moved: tuple[tuple[str, str], ...] = ()
    proto: Callable[[FileDescriptorProto], object] | None = None
    everywhere: tuple[tuple[str, str], ...] = ()


def replace(file: str, old: str, new: str, *more: tuple[str, str, str]) -> Edit:
    """Return an edit that replaces texts, each of which the release has."""
    return Edit(replaced=((file, old, new), *more))


@cache
def open_original() -> Release:
    """Open the release from the index."""
    return open_release(VERSION)


def edit_release(edit: Edit) -> Release:
    """Return a copy of the release with an edit."""
    files = dict(open_original().files)
    for old, new in edit.moved:
        files[new] = files.pop(old)
    for file, old, new in edit.replaced:
        assert old in files[file], f"{file} has no {old!r}"
        files[file] = files[file].replace(old, new, 1)
    for old, new in edit.everywhere:
        files = {name: text.replace(old, new) for name, text in files.items()}
    if edit.proto is not None:
        files[PROTO] = _edit_descriptor(files[PROTO], edit.proto)
    return Release(VERSION, {**files, **edit.added})


def find_changes(edit: Edit) -> tuple[set[Found], list[str]]:
    """Return the changes found in a copy with an edit, and what is not understood."""
    facts = read_facts(edit_release(edit))
    found = {(drift.change, drift.kind, drift.where) for drift in find_drift(SCHEMA, facts, VERSION)}
    return found, [f"{problem['file']}:{problem['line']} {problem['text']}" for problem in facts["not_understood"]]


def _edit_descriptor(text: str, change: Callable[[FileDescriptorProto], object]) -> str:
    start = text.index("AddSerializedFile(") + len("AddSerializedFile(")
    end = text.index(")\n", start)
    proto = FileDescriptorProto.FromString(ast.literal_eval(text[start:end]))
    change(proto)
    return f"{text[:start]}{proto.SerializeToString()!r}{text[end:]}"
