"""Evidence in exported documents: every part has a source, or is marked as assumed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.exported_contract import SCHEMA, VERSIONS, openapi_document
from tinkerwire_base.conversion.versioning import parse_version
from tinkerwire_codegen.cli import main
from tinkerwire_codegen.contract.evidence import add_evidence, count_evidence, load_evidence
from tinkerwire_codegen.contract.export import build_openapi
from tinkerwire_codegen.official.evidence import collect_evidence
from tinkerwire_codegen.official.release.archive import Release

FACTS = Path(__file__).parents[2] / "facts"
EVIDENCE = load_evidence(SCHEMA)
assert EVIDENCE is not None
ASSUMED_FIELDS = {
    "CompleteMetadataResponse.status",
    "SessionFinishReason.type",
}
"""Fields without a type in the SDK, and whose names have other meanings too, so that its text shows nothing."""
PINNED = ("0.4.1", "0.6.3", "0.16.1", "0.18.2", "0.25.0", "0.38.0")


def list_assumed(document: dict[str, Any]) -> set[str]:
    """List the parts without a source, by name."""
    assumed = {
        f"{name}.{field}"
        for name, schema in document["components"]["schemas"].items()
        for field, node in schema.get("properties", {}).items()
        if node["x-evidence"] == ["assumed"]
    }
    for item in document["paths"].values():
        for operation in item.values():
            nodes = operation["responses"] | {p["name"]: p for p in operation.get("parameters", [])}
            assumed |= {
                f"{operation['operationId']} {name}"
                for name, node in nodes.items()
                if node.get("x-evidence") == ["assumed"]
            }
    return assumed


@pytest.mark.parametrize("version", VERSIONS)
def test_only_empty_responses_and_few_fields_are_assumed(version: str) -> None:
    """A part without a source is a decision; a 204 is one, because the SDK accepts any 2xx there."""
    document = openapi_document(version)
    assumed = list_assumed(document)
    assert not {part for part in assumed if not part.endswith(" 204")} - ASSUMED_FIELDS
    assert sum(count_evidence(document)["fields"].values()) > 100


@pytest.mark.parametrize("version", VERSIONS)
def test_sources_are_not_later_than_the_version(version: str) -> None:
    """A reader of one version sees its own release, and captures of that or an earlier one."""
    text = json.dumps(openapi_document(version))
    for kind in ("release", "capture"):
        for part in text.split(f'"{kind} 0.')[1:]:
            mentioned = "0." + part.partition('"')[0].partition(" ")[0]
            assert parse_version(mentioned) <= parse_version(version), mentioned


@pytest.mark.parametrize("version", PINNED)
def test_files_are_those_of_the_facts(version: str) -> None:
    """The evidence names the module in which the facts of a release found each type."""
    facts = json.loads((FACTS / f"{version}.json").read_text())
    fields = openapi_document(version)["components"]["schemas"]
    checked = 0
    for name, fact in facts["types"].items():
        for field in fact.get("fields", {}):
            source = fields.get(name, {}).get("properties", {}).get(field, {}).get("x-evidence", [""])[0]
            if source:
                module = source.split()[2].removesuffix(".py").removesuffix("/__init__").replace("/", ".")
                assert module in (fact["module"], *fact.get("also_in", [])), (name, field, source)
                checked += 1
    assert checked > 150


DOCUMENT: dict[str, Any] = {
    "paths": {
        "/api/v1/things/{thing_id}": {
            "put": {
                "operationId": "put_thing",
                "parameters": [{"name": "X-Note", "in": "header"}, {"name": "thing_id", "in": "path"}],
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}},
                "responses": {"200": {}, "204": {}, "410": {}, "409": {}, "default": {}},
            }
        }
    },
    "components": {
        "schemas": {"Thing": {"type": "object", "properties": {"size": {}, "made_up_name": {}, "other": {}}}}
    },
}
SOURCE = {
    "tinker/__init__.py": "",
    "tinker/types/__init__.py": "",
    "tinker/types/thing.py": "from pydantic import BaseModel\n\n\nclass Thing(BaseModel):\n    size: int\n",
    "tinker/notes.py": "NOTE = 'x-note'\n\n\ndef is_gone(response):\n    return response.status_code == 410\n",
}


def annotate(captures: list[dict[str, Any]], observations: str, version: str) -> dict[str, Any]:
    releases = [("0.1.0", Release("0.1.0", SOURCE)), ("0.2.0", Release("0.2.0", SOURCE))]
    evidence = collect_evidence(DOCUMENT, releases, captures, observations)
    return add_evidence(json.loads(json.dumps(DOCUMENT)), evidence, version)


def test_sources_are_collected_from_releases_captures_and_servers() -> None:
    """Each kind of source marks its parts, and nothing else does."""
    captures = [
        {"version": "0.1.0", "requests": [{"method": "PUT", "path": "things/a", "body": {"size": 1}}]},
        {"version": "0.2.0", "requests": [{"method": "PUT", "path": "things/a", "body": {"other": 1}}]},
    ]
    observations = '## box 1.0\n`PUT things/a: 409 {"error": "taken"}` `PUT things/a: 410 {"detail": "Not Found"}`\n'
    document = annotate(captures, observations, "0.1.0")
    fields = document["components"]["schemas"]["Thing"]["properties"]
    assert fields["size"]["x-evidence"] == ["release 0.1.0 tinker/types/thing.py", "capture 0.1.0"]
    assert fields["made_up_name"]["x-evidence"] == ["assumed"]
    assert fields["other"]["x-evidence"] == ["assumed"]
    later = annotate(captures, observations, "0.2.0")["components"]["schemas"]["Thing"]["properties"]
    assert later["other"]["x-evidence"] == ["capture 0.2.0"]
    operation = document["paths"]["/api/v1/things/{thing_id}"]["put"]
    assert {status: node.get("x-evidence") for status, node in operation["responses"].items()} == {
        "200": ["assumed"],
        "204": ["assumed"],
        "410": ["release 0.1.0 tinker/notes.py (any operation)"],
        "409": ["observed on box 1.0"],
        "default": None,
    }
    assert operation["parameters"][0]["x-evidence"] == ["release 0.1.0 tinker/notes.py"]


def test_fields_of_a_body_written_by_a_call_have_its_module_as_source() -> None:
    """A field that no type declares is shown by the call that writes it, in the version that does so first."""
    call = "class Things:\n    async def put_thing(self, thing_id: str):\n        body = {'size': 1BODY}\n"
    call += "        await self._put(f'/api/v1/things/{thing_id}', body=body, cast_to=NoneType)\n"
    file = "tinker/resources/things.py"
    bodies = (("0.1.0", ""), ("0.2.0", ", 'other': 'a'"))
    releases = [
        (version, Release(version, {"tinker/__init__.py": "", file: call.replace("BODY", text)}))
        for version, text in bodies
    ]
    evidence = collect_evidence(DOCUMENT, releases, [], "")
    assert evidence["operations"]["put_thing"]["body"] == {"size": "0.1.0", "other": "0.2.0"}
    fields = add_evidence(json.loads(json.dumps(DOCUMENT)), evidence, "0.2.0")["components"]["schemas"]["Thing"]
    assert fields["properties"]["other"]["x-evidence"] == [f"release 0.2.0 {file}"]


def test_contract_without_evidence_has_no_marks(tmp_path: Path) -> None:
    """A contract of one's own needs no evidence."""
    for file in SCHEMA.glob("*.yaml"):
        if file.name != "evidence.yaml":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    assert "x-evidence" not in str(build_openapi(tmp_path, "0.4.1"))


def test_command_needs_all_sources_to_write(capsys: pytest.CaptureFixture[str]) -> None:
    """Evidence from releases alone would lose that of captures and servers."""
    assert main(["evidence", "--write"]) == 2
    assert "give --captures and --observed" in capsys.readouterr().err
