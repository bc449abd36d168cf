"""One change of a release is reported as that change, and its snippet records it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

from support.release import VERSION, descriptor, sources, write_contract, write_folder, write_wheel
from support.release_edits import EDITS, JOBS, TYPES
from tinkerwire_codegen.cli import main
from tinkerwire_codegen.official.drift.detection import Drift, find_drift
from tinkerwire_codegen.official.release.archive import open_release
from tinkerwire_codegen.official.release.read import read_facts

CHANGES = {
    **EDITS,
    "retyped to a list of a union": (TYPES, "    text: str\n", "    text: list[str | int]\n"),
    "made optional": (TYPES, "    mode: Mode\n", '    mode: Mode = "fast"\n'),
    "enum value added": (TYPES, '    High = "high"\n', '    High = "high"\n    Top = "top"\n'),
    "enum value removed": (TYPES, '    High = "high"\n', ""),
    "literal value added": (TYPES, '"fast", "slow"]', '"fast", "slow", "slower"]'),
    "type added": (TYPES, "class OldParams", "class Fresh(BaseModel):\n    it: Mode\n\n\nclass OldParams"),
    "type removed": (TYPES, "class StopResponse(BaseModel):\n", "class StopResponse:\n"),
    "endpoint added": (
        JOBS,
        "    async def stop",
        "    async def ping(self, id: str):\n        "
        'return await self._get(f"/api/v1/ping/{id}", cast_to=StartResponse)\n\n    async def stop',
    ),
    "endpoint removed": (JOBS, '"/api/v1/start"', '"https://elsewhere/start"'),
    "response changed": (JOBS, "cast_to=cast(Any, types.StartResponse)", "cast_to=types.JobID"),
}
EXPECTED = {
    "field added": ("added", "field", "Knobs", None, "cold"),
    "required field added": ("added", "field", "StartRequest", None, "owner"),
    "field removed": ("removed", "field", "Knobs", "steps", None),
    "retyped": ("changed", "type", "StartResponse.job_id", "JobID", "int"),
    "retyped to a list of a union": ("changed", "type", "TextPart.text", "str", "list[int | str]"),
    "made required": ("changed", "required", "Knobs.heat", False, True),
    "made optional": ("changed", "required", "StartRequest.mode", True, False),
    "default changed": ("changed", "default", "Knobs.heat", 0.5, 0.25),
    "enum value added": ("added", "value", "Level", None, "top"),
    "enum value removed": ("removed", "value", "Level", "high", None),
    "literal value added": ("added", "value", "Mode", None, "slower"),
    "type added": ("added", "type", "types", None, "Fresh"),
    "made lenient": ("changed", "strictness", "Knobs", True, False),
    "alias changed": ("changed", "target", "JobID", "str", "int"),
    "endpoint added": ("added", "endpoint", "endpoints", None, "GET /api/v1/ping/{}"),
    "endpoint removed": ("removed", "endpoint", "endpoints", "POST /api/v1/start", None),
    "path changed": ("changed", "path", "POST /api/v1/start", "POST /api/v1/start", "POST /api/v1/start_job"),
    "query added": ("added", "query", "GET /api/v1/jobs", None, "page"),
    "query default changed": ("changed", "default", "GET /api/v1/jobs?limit", 20, 50),
    "response changed": ("changed", "response", "GET /api/v1/jobs", "StartResponse", "JobID"),
}
FOLLOWS = {
    "made lenient": set(),
    "default changed": {("changed", "default", "StartRequest.default_knobs")},
    "field removed": {("changed", "default", "StartRequest.default_knobs")},
    "field added": {("changed", "default", "StartRequest.default_knobs")},
    "made required": {("changed", "default", "StartRequest.default_knobs")},
}
"""Other changes that follow: a model created without arguments is the default of a field."""


def list_drift(folder: Path, files: dict[str, str], wire: str = "0.8.0") -> list[Drift]:
    wheel = write_wheel(folder / "made.whl", files)
    return find_drift(folder / "schema", read_facts(open_release(str(wheel))), wire)


def change_release(change: str) -> dict[str, str]:
    file, old, new = CHANGES[change]
    files = sources()
    assert old in files[file]
    return {**files, file: files[file].replace(old, new, 1)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_contract(tmp_path / "schema")
    return tmp_path


def test_described_release_has_no_drift(folder: Path) -> None:
    """A release that the contract describes has no drift."""
    assert list_drift(folder, sources()) == []


@pytest.mark.parametrize("change", sorted(EXPECTED))
def test_each_change_is_reported_once(folder: Path, change: str) -> None:
    """Each kind of change gives one report with its kind and place, and nothing else."""
    reports = [(d.change, d.kind, d.where, d.contract, d.release) for d in list_drift(folder, change_release(change))]
    further_reports = {report[:3] for report in reports if report != EXPECTED[change]}
    assert EXPECTED[change] in reports
    assert further_reports <= FOLLOWS.get(change, set())


@pytest.mark.parametrize("change", sorted(set(EXPECTED) - {"response changed"}))
def test_snippet_records_the_change(folder: Path, change: str) -> None:
    """With the snippets in the contract neither the new version nor the one before has drift."""
    files = change_release(change)
    for drift in list_drift(folder, files):
        record(folder / "schema" / "jobs.yaml", drift.snippet)
    assert list_drift(folder, files) == []
    assert list_drift(folder, sources(), VERSION) == []


UNREAD = {
    "path from the environment": ('"/api/v1/start", body', 'os.environ["PATH"], body', "path of the call"),
    "default from outside": ("level: Level = Level.Low", "level: Level = outside.read()", "default: outside.read()"),
    "body from outside": ('{"why": why}', "{**outside.make()}", "body of POST /api/v1/jobs/{}/stop: outside.make()"),
    "query from outside": ('{"params": params}', '{"params": outside.make(limit)}', "query of GET /api/v1/jobs"),
}


@pytest.mark.parametrize("name", UNREAD)
def test_part_that_is_not_understood_is_not_reported_as_removed(folder: Path, name: str) -> None:
    """The part is listed with its line; what seems to be gone may be there, so that nothing is reported as removed."""
    old, new, text = UNREAD[name]
    files = sources()
    file = JOBS if old in files[JOBS] else TYPES
    assert old in files[file]
    facts = read_facts(
        open_release(str(write_wheel(folder / "made.whl", {**files, file: files[file].replace(old, new)})))
    )
    (problem,) = facts["not_understood"]
    assert (problem["file"], str(problem["text"]).startswith(text)) == (file, True)
    assert find_drift(folder / "schema", facts, "0.8.0") == []


def record(file: Path, snippet: str) -> None:
    """Put each node of a snippet in its place, as a person would."""
    content = yaml.safe_load(file.read_text())
    merge(content, yaml.safe_load(re.sub(r"(?m)^ *default: *\n *\$ref.*Failed.*$|^ *'422':\n.*$", "", snippet)))
    file.write_text(yaml.safe_dump(content, sort_keys=False))


def merge(target: dict[str, Any], addition: dict[str, Any], parent: str = "") -> None:
    for key, value in addition.items():
        if parent != "properties" and isinstance(value, dict) and isinstance(target.get(key), dict):
            is_replaced = parent == "schemas" and "properties" not in target[key] and "enum" not in target[key]
            if is_replaced:
                target[key] = value
            else:
                merge(target[key], value, key)
        else:
            target[key] = value


def test_removed_type_is_removed_from_its_union(folder: Path) -> None:
    """A removed model is reported as a removed type and as a removed member of its union."""
    reports = {(d.change, d.kind, d.where, d.contract) for d in list_drift(folder, change_release("type removed"))}
    assert ("removed", "type", "types", "StopResponse") in reports


def add_field(file: FileDescriptorProto) -> None:
    file.message_type[0].field.add(name="y", number=3, type=FieldDescriptorProto.TYPE_INT64)


def renumber(file: FileDescriptorProto) -> None:
    file.message_type[0].field[0].number = 7


def retype(file: FileDescriptorProto) -> None:
    file.message_type[0].field[0].type = FieldDescriptorProto.TYPE_INT32


def add_message(file: FileDescriptorProto) -> None:
    file.message_type.add(name="Line").field.add(name="n", number=1, type=FieldDescriptorProto.TYPE_BOOL)


def add_enum(file: FileDescriptorProto) -> None:
    file.enum_type.add(name="Side").value.add(name="LEFT", number=0)


@pytest.mark.parametrize(
    ("change", "expected", "snippet"),
    [
        (add_field, ("added", "protobuf field", "Point", None, "int64 y = 3;"), "int64 y = 3;  // since: 0.8.0"),
        (renumber, ("changed", "protobuf number", "Point.x", 1, 7), "int64 x = 7;"),
        (retype, ("changed", "protobuf type", "Point.x", "int64", "int32"), "int32 x = 1;  // was int64 until 0.8.0"),
        (add_message, ("added", "protobuf message", "messages", None, "Line"), "message Line {  // since: 0.8.0"),
        (add_enum, ("added", "protobuf enum", "enums", None, "Side"), "enum Side {  // since: 0.8.0"),
    ],
)
def test_each_protobuf_change_is_reported_once(
    folder: Path, change: Callable[[FileDescriptorProto], None], expected: tuple[Any, ...], snippet: str
) -> None:
    """Messages, fields, types and numbers: one change, one report, with the line for the .proto."""
    proto = descriptor()
    change(proto)
    (drift,) = list_drift(folder, sources(proto))
    assert (drift.change, drift.kind, drift.where, drift.contract, drift.release) == expected
    assert snippet in drift.snippet


def run(folder: Path, files: dict[str, str], *options: str) -> int:
    wheel = write_wheel(folder / "made.whl", files)
    return main(["upstream", str(wheel), "--schema", str(folder / "schema"), *options])


def test_upstream_exit_code_distinguishes_drift_from_unusable_input(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command exits with 0 without drift, 1 with drift, 2 for unusable input."""
    assert run(folder, sources()) == 0
    assert run(folder, change_release("field added"), "--wire", "0.8.0") == 1
    assert main(["upstream", "no/such/thing", "--schema", str(folder / "schema")]) == 2
    assert "give the path of a .whl" in capsys.readouterr().err
    assert main(["upstream", str(folder / "made.whl"), "--schema", str(folder)]) == 2


def test_release_without_version_needs_wire_option(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The error names the option that helps."""
    files = {name: text for name, text in sources().items() if "version" not in name and "info" not in name}
    release = write_folder(folder / "release", files)
    assert main(["upstream", str(release), "--schema", str(folder / "schema")]) == 2
    assert "--wire" in capsys.readouterr().err


def test_reports_show_change_and_snippet(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Text, JSON and Markdown show the change and the YAML that records it."""
    files = change_release("enum value added")
    run(folder, files, "--wire", "0.8.0")
    text = capsys.readouterr().out
    assert "added: value top added to Level" in text
    assert "x-enum-since:" in text
    run(folder, files, "--wire", "0.8.0", "--format", "json")
    (entry,) = json.loads(capsys.readouterr().out)["drift"]
    assert (entry["change"], entry["where"], entry["release"], entry["file"]) == ("added", "Level", "top", "jobs.yaml")
    run(folder, files, "--wire", "0.8.0", "--format", "markdown")
    assert "| added | value top added to Level |" in capsys.readouterr().out
