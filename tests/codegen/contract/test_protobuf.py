"""The binary messages: those of the official SDK at every version, and written out so that protoc takes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tinkerwire_codegen.contract.protobuf import (
    FILE,
    compile_descriptors,
    describe_proto,
    load_proto,
    project_proto,
    render_proto,
)
from tinkerwire_codegen.official.facts_history import restore_proto

ROOT = Path(__file__).parents[3]
PROTO = load_proto(ROOT / "schema")
HISTORY: dict[str, Any] = json.loads((ROOT / "tests" / "facts" / "history.json").read_text())
BINARY = HISTORY["versions"][HISTORY["versions"].index("0.18.2") :]


@pytest.mark.parametrize("version", ["0.18.2", "0.25.0", "0.38.0"])
def test_messages_are_those_of_the_facts(version: str) -> None:
    """Messages, enums, fields, numbers, types, oneofs and presence are those of the release."""
    facts = json.loads((ROOT / "tests" / "facts" / f"{version}.json").read_text())["proto"]["tinker_public_pb2"]
    found = describe_proto(project_proto(PROTO, version))
    assert found == {"messages": facts["messages"], "enums": facts["enums"]}
    assert PROTO.package == facts["package"]


@pytest.mark.parametrize("version", HISTORY["versions"])
def test_messages_are_those_of_the_history(version: str) -> None:
    """The same for every version that was read; before 0.18.2 there are none."""
    found = describe_proto(project_proto(PROTO, version))
    assert found == restore_proto(HISTORY["proto"], version)
    assert bool(found["messages"]) == (version in BINARY)


@pytest.mark.parametrize("version", ["0.18.2", "0.22.7", "0.38.0"])
def test_a_written_version_reads_as_itself(tmp_path: Path, version: str) -> None:
    """What is written for a version is a .proto, and says the same when it is read."""
    plain = project_proto(PROTO, version)
    (tmp_path / FILE).write_text(render_proto(plain))
    assert load_proto(tmp_path) == plain


def test_everything_is_described() -> None:
    """Each message, enum, field and value says in a sentence what it is."""
    bad = [declaration.name for declaration in PROTO.declarations if not declaration.doc.endswith(".")]
    bad += [
        f"{declaration.name}.{each.name}"
        for declaration in PROTO.declarations
        for each in declaration.fields
        if not each.doc.endswith(".")
    ]
    assert not bad


def test_every_time_is_a_version_that_was_read() -> None:
    """Blocks have a since; no time lies between two versions."""
    availability = [declaration.availability for declaration in PROTO.declarations] + [
        each.availability for declaration in PROTO.declarations for each in declaration.fields
    ]
    ends = {end for each in availability for end in (each.since, each.until, each.was and each.was[1]) if end}
    assert ends <= set(HISTORY["versions"])
    assert all(declaration.availability.since for declaration in PROTO.declarations)


def test_a_comment_in_another_form_is_refused(tmp_path: Path) -> None:
    """The error shows the comment and the forms that there are."""
    (tmp_path / FILE).write_text('syntax = "proto3";\nmessage A {  // from 0.18.2\n}\n')
    with pytest.raises(ValueError, match=r"comment must be since: VERSION.*got 'from 0\.18\.2'"):
        load_proto(tmp_path)


def test_what_is_no_proto_is_refused(tmp_path: Path) -> None:
    """The error is that of protoc, with its line."""
    (tmp_path / FILE).write_text('syntax = "proto3";\nmessage A { Nothing b = 1; }\n')
    with pytest.raises(ValueError, match=r'tinker_public\.proto.*"Nothing" is not defined'):
        compile_descriptors(tmp_path / FILE)
