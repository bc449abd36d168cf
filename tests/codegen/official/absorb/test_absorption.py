"""A release is absorbed: the contract equals the release, earlier versions stay, and comments stay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

from rigs.absorb.meaning import compare_documents, compare_plain
from rigs.absorb.truncation import truncate_contract
from support.release import VERSION, descriptor, sources, write_contract
from support.release_edits import EDITS, JOBS, TYPES
from tinkerwire_base.conversion.versioning import project
from tinkerwire_codegen.contract.bundle import load
from tinkerwire_codegen.contract.evidence import load_evidence, write_evidence
from tinkerwire_codegen.contract.protobuf import describe_proto, load_proto, project_proto
from tinkerwire_codegen.official.absorb import release as release_module
from tinkerwire_codegen.official.absorb.absorption import Absorption, absorb_facts
from tinkerwire_codegen.official.absorb.decisions import list_decisions
from tinkerwire_codegen.official.absorb.descriptions import read_descriptions
from tinkerwire_codegen.official.absorb.release import add_entry, write_release
from tinkerwire_codegen.official.drift.detection import find_drift
from tinkerwire_codegen.official.evidence import collect_evidence
from tinkerwire_codegen.official.release.archive import Release
from tinkerwire_codegen.official.release.read import read_facts

ROOT = Path(__file__).parents[4]
NEW = "0.8.0"
CHANGES = {
    **EDITS,
    "made optional": (TYPES, "    mode: Mode\n", "    mode: Mode | None = None\n"),
    "value added": (TYPES, '    High = "high"\n', '    High = "high"\n    Top = "top"\n'),
    "value removed": (TYPES, '    High = "high"\n', ""),
    "type added": (TYPES, "class StopResponse(", "class Fresh(BaseModel):\n    it: Mode\n\n\nclass StopResponse("),
    "member removed": (TYPES, "Union[StartResponse, StopResponse]", "Union[StartResponse]"),
    "discriminator removed": (
        TYPES,
        'Part: TypeAlias = Annotated[Union[TextPart, ImagePart], Field(discriminator="type")]',
        "Part: TypeAlias = Union[TextPart, ImagePart]",
    ),
    "endpoint added": (
        JOBS,
        "    async def stop",
        "    async def ping(self, id: str):\n        "
        'return await self._get(f"/api/v1/jobs/{id}/ping", cast_to=StartResponse)\n\n    async def stop',
    ),
}


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    folder = write_contract(tmp_path / "schema")
    text = (folder / "jobs.yaml").read_text().replace("    Knobs:", "    # Settings of a job.\n    Knobs:")
    (folder / "jobs.yaml").write_text(text)
    return folder


def make_release(change: str | None = None, proto: FileDescriptorProto | None = None) -> Release:
    files = {name: text for name, text in sources(proto).items() if name.endswith(".py")}
    if change:
        file, old, new = CHANGES[change]
        assert old in files[file]
        files[file] = files[file].replace(old, new, 1)
    return Release(VERSION, files)


def absorb(schema: Path, release: Release, version: str = NEW) -> Absorption:
    return absorb_facts(schema, read_facts(release), read_descriptions(release), version)


def list_titles(schema: Path, release: Release, version: str) -> list[str]:
    return [drift.title for drift in find_drift(schema, read_facts(release), version)]


@pytest.mark.parametrize("change", CHANGES)
def test_each_kind_of_change_is_recorded(schema: Path, change: str) -> None:
    """The contract equals the new release at its version, and the old one at the version before; comments stay."""
    before = project(load(schema), VERSION)
    release = make_release(change)
    result = absorb(schema, release)
    assert result.recorded
    assert result.open == []
    assert list_titles(schema, release, NEW) == []
    assert compare_plain(before, project(load(schema), VERSION)) == []
    assert list_titles(schema, make_release(), VERSION) == []
    assert "    # Settings of a job.\n    Knobs:" in (schema / "jobs.yaml").read_text()


def test_name_of_a_new_operation_has_single_underscores(schema: Path) -> None:
    """The name comes from method and path; a path that gives the same name again gets a number."""
    ping = "def ping(self, id: str, go: str):\n        return await self._get({}, cast_to=StartResponse)\n\n    async "
    first, second = (f"{ping.format(repr(path))}" for path in ("/api/v1/pings/_go", "/api/v1/pings/go"))
    files = make_release().files
    old = "def stop"
    absorb(schema, Release(VERSION, {**files, JOBS: files[JOBS].replace(old, f"{first}{second}{old}", 1)}))
    assert {"get_pings_go", "get_pings_go_2"} <= {
        operation["operationId"] for item in load(schema)["paths"].values() for operation in item.values()
    }


def test_release_without_changes_only_adds_its_version(schema: Path) -> None:
    """The version is recorded; nothing else is written."""
    families = (schema / "jobs.yaml").read_text()
    result = absorb(schema, make_release())
    assert result.recorded == result.open == []
    assert (schema / "jobs.yaml").read_text() == families
    info = yaml.safe_load((schema / "openapi.yaml").read_text())["info"]
    assert (info["version"], info["x-versions"]) == (NEW, [VERSION, NEW])


def test_absorbing_again_changes_nothing(schema: Path) -> None:
    """A second absorption of the same release leaves all files as they are."""
    release = make_release("required field added")
    absorb(schema, release)
    files = {file.name: file.read_text() for file in schema.iterdir()}
    assert absorb(schema, release).recorded == []
    assert {file.name: file.read_text() for file in schema.iterdir()} == files


def test_changed_body_without_a_type_is_left_to_a_person(schema: Path) -> None:
    """A call that writes its body itself gives no names of types, so a change of the body stays open."""
    files = make_release().files
    changed = files[JOBS].replace('body = {"why": why}', 'body = {"why": why, "by": {"name": why}}', 1)
    (difference,) = absorb(schema, Release(VERSION, {**files, JOBS: changed})).open
    assert (difference.kind, difference.where) == ("request", "POST /api/v1/jobs/{}/stop")


def test_limits_of_a_new_field_are_recorded(schema: Path) -> None:
    """The limits of the facts are keywords of JSON Schema, on the part of a nullable type that they apply to."""
    file, old, _ = CHANGES["field added"]
    new = f"{old}    cold: Optional[int] = Field(None, ge=1, lt=9)\n    tags2: List[str] = Field([], max_length=3)\n"
    files = make_release().files
    absorb(schema, Release(VERSION, {**files, file: files[file].replace(old, new, 1)}))
    fields = load(schema)["components"]["schemas"]["Knobs"]["properties"]
    assert (fields["cold"]["minimum"], fields["cold"]["exclusiveMaximum"]) == (1, 9)
    assert fields["tags2"]["maxItems"] == 3


def test_removed_field_comes_back(schema: Path) -> None:
    """A field that returns has a gap in place of its end."""
    absorb(schema, make_release("field removed"), "0.8.0")
    absorb(schema, make_release(), "0.9.0")
    steps = load(schema)["components"]["schemas"]["Knobs"]["properties"]["steps"]
    assert steps["x-absent"] == [{"since": "0.8.0", "until": "0.9.0"}]
    assert list_titles(schema, make_release("field removed"), "0.8.0") == []
    assert list_titles(schema, make_release(), "0.9.0") == []


def test_older_release_is_rejected(schema: Path) -> None:
    """The contract records changes in order, so a release before its version is an error."""
    with pytest.raises(ValueError, match=r"release 0.6.0: must be at least as new as the contract, 0.7.0"):
        absorb(schema, make_release(), "0.6.0")


def test_descriptions_come_from_the_release_marked_to_be_reworded(schema: Path) -> None:
    """Docstrings, texts below fields, comments and Field(description=...) are facts for descriptions."""
    file, old, _ = CHANGES["type added"]
    release = make_release()
    text = release.files[file].replace(
        old,
        'class Fresh(BaseModel):\n    """A fresh thing.\n\n    More."""\n    it: Mode\n    """Its mode"""\n\n'
        "    # The size\n    # in m.\n    size: int = 1\n    rate: float = 2.0  # In Hz.\n"
        '    note: str = Field("", description="A note.")\n    bare: int = 0\n\nclass StopResponse(',
    )
    absorb(schema, Release(VERSION, {**release.files, file: text}))
    fresh = load(schema)["components"]["schemas"]["Fresh"]
    texts = {name: detail["description"] for name, detail in fresh["properties"].items()}
    assert fresh["description"] == "TODO: reword: A fresh thing."
    assert texts == {
        "it": "TODO: reword: Its mode.",
        "size": "TODO: reword: The size in m.",
        "rate": "TODO: reword: In Hz.",
        "note": "TODO: reword: A note.",
        "bare": "TODO: describe it in a sentence.",
    }


def test_decisions_are_a_short_list(schema: Path) -> None:
    """The list has the names and statuses that a release does not show, and the descriptions to reword."""
    result = absorb(schema, make_release("endpoint added"))
    decisions = list_decisions(result, schema)
    assert decisions == [
        "GET /api/v1/jobs/{}/ping: check family, operationId, tag and statuses, of which a release shows little",
        "descriptions marked TODO: reword them (3 in jobs.yaml)",
    ]


def add_field(file: FileDescriptorProto) -> None:
    file.message_type[0].field.add(name="y", number=3, type=FieldDescriptorProto.TYPE_INT64)


def retype(file: FileDescriptorProto) -> None:
    file.message_type[0].field[0].type = FieldDescriptorProto.TYPE_INT32


def add_message(file: FileDescriptorProto) -> None:
    line = file.message_type.add(name="Line")
    line.oneof_decl.add(name="end")
    for number, name in ((1, "n"), (2, "m")):
        line.field.add(name=name, number=number, type=FieldDescriptorProto.TYPE_BOOL, oneof_index=0)


def add_enum(file: FileDescriptorProto) -> None:
    file.enum_type.add(name="Side").value.add(name="LEFT", number=0)


def remove_field(file: FileDescriptorProto) -> None:
    del file.message_type[0].field[0]


def renumber(file: FileDescriptorProto) -> None:
    file.message_type[0].field[0].number = 7


@pytest.mark.parametrize("change", [add_field, retype, add_message, add_enum, remove_field])
def test_each_protobuf_change_is_recorded(schema: Path, change: Any) -> None:
    """The .proto has the messages of both versions afterwards, and its comments."""
    before = describe_proto(project_proto(load_proto(schema), VERSION))
    proto = descriptor()
    change(proto)
    release = make_release(proto=proto)
    assert absorb(schema, release).open == []
    assert list_titles(schema, release, NEW) == []
    assert describe_proto(project_proto(load_proto(schema), VERSION)) == before
    assert "// Its place." in (schema / "tinker_public.proto").read_text()


def test_renumbered_field_is_left_to_a_person(schema: Path) -> None:
    """Comments of the .proto cannot record another number, so the difference stays open."""
    proto = descriptor()
    renumber(proto)
    (difference,) = absorb(schema, make_release(proto=proto)).open
    assert (difference.kind, difference.where) == ("protobuf number", "Point.x")


def test_newest_release_is_absorbed_into_the_contract_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The contract cut off before the newest version, with the facts of that version, equals the contract."""
    generated: list[tuple[Path, Path]] = []
    # The generation itself takes long and has its own tests.
    monkeypatch.setattr(release_module, "generate", lambda *folders: generated.append(folders))
    facts = json.loads((ROOT / "tests" / "facts" / "0.38.0.json").read_text())
    contract, schema, changelog = ROOT / "schema", tmp_path / "schema", tmp_path / "CHANGELOG.md"
    truncate_contract(contract, schema, "0.36.0")
    changelog.write_text("# Changelog\n\n## 1.0\n")
    assert compare_documents(contract, schema, "0.36.0") == []
    report = write_release(schema, tmp_path / "generated", changelog, Release("0.38.0", {}), facts, "0.38.0")
    (difference,) = compare_documents(contract, schema, "0.38.0")
    assert difference.endswith("401 header WWW-Authenticate: is no longer returned")
    entry = "- `schema/`: wire version 0.38.0, with 2 new fields, 1 new type and 1 removed field.\n"
    assert changelog.read_text().endswith(f"### Added\n\n{entry}")
    assert "to decide (1):\n- descriptions marked TODO: reword them (1 in admin.yaml, 2 in weights.yaml)" in report
    assert generated == [(schema, tmp_path / "generated")]


def test_release_is_evidence_of_what_it_adds(schema: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The evidence of the contract gets the files of the release; absorbing again changes nothing."""
    monkeypatch.setattr(release_module, "generate", lambda *_: None)
    # The contract of this test has no descriptions.
    monkeypatch.setattr(release_module, "check_contract", lambda *_: None)
    write_evidence(schema, collect_evidence(load(schema), [(VERSION, make_release())], [], ""))
    release = make_release("required field added")
    texts = []
    for _ in range(2):
        write_release(schema, tmp_path / "generated", None, release, read_facts(release), NEW)
        texts.append((schema / "evidence.yaml").read_text())
    evidence = load_evidence(schema) or {}
    assert evidence["releases"] == [VERSION, NEW]
    assert evidence["types"]["StartRequest"]["files"] == {VERSION: "tinker/types/all.py"}
    fields = evidence["types"]["StartRequest"]["fields"]
    assert (fields["mode"], fields["owner"]) == (VERSION, NEW)
    assert texts[0] == texts[1]


def test_contract_with_errors_is_not_written(schema: Path, tmp_path: Path) -> None:
    """The contract and the changelog stay as they are if the edited contract has errors."""
    files = {file.name: file.read_text() for file in schema.iterdir()}
    release = make_release("field added")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n")
    with pytest.raises(ValueError, match="the contract has errors"):
        write_release(schema, tmp_path, tmp_path / "CHANGELOG.md", release, read_facts(release), NEW)
    assert {file.name: file.read_text() for file in schema.iterdir()} == files
    assert (tmp_path / "CHANGELOG.md").read_text() == "# Changelog\n"


def test_changelog_entry_goes_to_the_newest_section() -> None:
    """The entry is the last one under Added; absorbing again replaces it."""
    text = "# Changelog\n\n## 0.2.0\n\n### Added\n\n- `a`: one.\n\n### Fixed\n\n- `b`: two.\n\n## 0.1.0\n"
    once = add_entry(text, "- `schema/`: wire version 0.9.0, with 1 new type.")
    assert once == text.replace("one.\n", "one.\n- `schema/`: wire version 0.9.0, with 1 new type.\n")
    twice = add_entry(once, "- `schema/`: wire version 0.9.0, with 2 new types.")
    assert twice == once.replace("1 new type", "2 new types")
    assert add_entry("# Changelog\n", "- x, y") == "# Changelog\n\n### Added\n\n- x, y\n"


def test_changelog_entry_does_not_go_to_a_released_section() -> None:
    """A heading with a date gets no further entries."""
    released = "## 0.2.0 (2026-11-29)\n\n### Added\n\n- `a`: one.\n"
    text = add_entry(f"# Changelog\n\n{released}", "- x, y")
    assert text == f"# Changelog\n\n## Unreleased\n\n### Added\n\n- x, y\n\n{released}"
    assert add_entry(text, "- z, y").count("## Unreleased") == 1
