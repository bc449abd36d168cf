"""The protobuf messages match the official SDK at every version, and protoc compiles them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.facts_history import restore_proto
from tinkerwire_codegen.contract.protobuf import (
    FILE,
    compile_descriptors,
    describe_proto,
    load_proto,
    project_proto,
    render_proto,
)

ROOT = Path(__file__).parents[3]
PROTO = load_proto(ROOT / "schema")
HISTORY: dict[str, Any] = json.loads((ROOT / "tests" / "facts" / "history.json").read_text())
WITH_MESSAGES = HISTORY["versions"][HISTORY["versions"].index("0.18.2") :]


@pytest.mark.parametrize("version", ["0.18.2", "0.25.0", "0.38.0"])
def test_messages_match_the_facts(version: str) -> None:
    """Messages, enums, fields, numbers, types, oneofs and presence match the release."""
    facts = json.loads((ROOT / "tests" / "facts" / f"{version}.json").read_text())["proto"]["tinker_public_pb2"]
    described = describe_proto(project_proto(PROTO, version))
    assert described == {"messages": facts["messages"], "enums": facts["enums"]}
    assert PROTO.package == facts["package"]


@pytest.mark.parametrize("version", HISTORY["versions"])
def test_messages_match_the_history(version: str) -> None:
    """The same holds for every version that was read; before 0.18.2 the wire has no messages."""
    described = describe_proto(project_proto(PROTO, version))
    assert described == restore_proto(HISTORY["proto"], version)
    assert bool(described["messages"]) == (version in WITH_MESSAGES)


@pytest.mark.parametrize("version", ["0.18.2", "0.22.7", "0.38.0"])
def test_rendered_version_parses_to_itself(tmp_path: Path, version: str) -> None:
    """A rendered version is a valid .proto and parses to the same messages."""
    projected = project_proto(PROTO, version)
    (tmp_path / FILE).write_text(render_proto(projected))
    assert load_proto(tmp_path) == projected


def test_everything_is_described() -> None:
    """Each message, enum, field and value has a description that ends in a full stop."""
    undescribed = [declaration.name for declaration in PROTO.declarations if not declaration.doc.endswith(".")]
    undescribed += [
        f"{declaration.name}.{field.name}"
        for declaration in PROTO.declarations
        for field in declaration.fields
        if not field.doc.endswith(".")
    ]
    assert not undescribed


def test_every_comment_names_a_version_that_was_read() -> None:
    """Messages and enums have a since; every version was read."""
    availability = [declaration.availability for declaration in PROTO.declarations] + [
        entry.availability for declaration in PROTO.declarations for entry in declaration.fields
    ]
    ends = {end for entry in availability for end in (entry.since, entry.until, entry.was and entry.was[1]) if end}
    assert ends <= set(HISTORY["versions"])
    assert all(declaration.availability.since for declaration in PROTO.declarations)


def test_malformed_comment_is_rejected(tmp_path: Path) -> None:
    """The error shows the comment and the valid forms."""
    (tmp_path / FILE).write_text('syntax = "proto3";\nmessage A {  // from 0.18.2\n}\n')
    with pytest.raises(ValueError, match=r"comment must be since: VERSION.*got 'from 0\.18\.2'"):
        load_proto(tmp_path)


def test_invalid_proto_is_rejected(tmp_path: Path) -> None:
    """The error is that of protoc, with its line."""
    (tmp_path / FILE).write_text('syntax = "proto3";\nmessage A { Nothing b = 1; }\n')
    with pytest.raises(ValueError, match=r'tinker_public\.proto.*"Nothing" is not defined'):
        compile_descriptors(tmp_path / FILE)
