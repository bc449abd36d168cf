"""The contract matches the official SDK at each wire version."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.facts_history import restore_facts
from tinkerwire_base.conversion.versioning import is_available, parse_version, project
from tinkerwire_codegen.cli import main
from tinkerwire_codegen.contract.bundle import load
from tinkerwire_codegen.official.comparison import compare_facts
from tinkerwire_codegen.official.known_differences import exclude_known, load_known_differences
from tinkerwire_codegen.official.type_notation import canonicalize

ROOT = Path(__file__).parents[3]
VERSIONS = ("0.4.1", "0.6.3", "0.16.1", "0.18.2", "0.25.0", "0.38.0")
CONTRACT = load(ROOT / "schema")

HISTORY: dict[str, Any] = json.loads((ROOT / "tests" / "facts" / "history.json").read_text())


def load_facts(version: str) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((ROOT / "tests" / "facts" / f"{version}.json").read_text())
    return facts


@pytest.mark.parametrize("version", VERSIONS)
def test_contract_matches_the_facts(version: str) -> None:
    """The contract at a version differs from the release in known differences only."""
    differences = compare_facts(project(CONTRACT, version), load_facts(version))
    assert not list(map(str, exclude_known(differences, ROOT / "schema")))


@pytest.mark.parametrize("version", HISTORY["versions"])
def test_contract_matches_the_history(version: str) -> None:
    """Types, fields, defaults, values, members and endpoints match at all 38 versions that were read."""
    facts = restore_facts(HISTORY, version)
    differences = compare_facts(project(CONTRACT, version), facts)
    assert not list(map(str, exclude_known(differences, ROOT / "schema")))


def test_every_known_difference_occurs() -> None:
    """Every known difference occurs at some version."""
    differences = [
        str(d) for v in HISTORY["versions"] for d in compare_facts(project(CONTRACT, v), restore_facts(HISTORY, v))
    ]
    assert set(differences) == load_known_differences(ROOT / "schema").keys()


@pytest.mark.parametrize("version", VERSIONS)
def test_history_matches_the_fact_files(version: str) -> None:
    """Types, endpoints and results restored from the history match the fact file."""
    restored, recorded = restore_facts(HISTORY, version), load_facts(version)
    assert restored["types"].keys() == recorded["types"].keys()
    assert restored["endpoints"].keys() == recorded["endpoints"].keys()
    assert sorted(map(str, restored["futures"])) == sorted(map(str, recorded["futures"]))
    for name, kind in recorded["types"].items():
        fields = {field: fact["type"] for field, fact in kind.get("fields", {}).items()}
        restored_fields = restored["types"][name].get("fields", {})
        assert {field: fact["type"] for field, fact in restored_fields.items()} == fields, name


@pytest.mark.parametrize("version", HISTORY["versions"])
def test_headers_exist_in_the_versions_that_use_them(version: str) -> None:
    """Each header with a meaning for the API is in the contract in exactly the versions whose SDK uses it."""
    document = project(CONTRACT, version)
    headers = {scheme["name"] for scheme in document["components"]["securitySchemes"].values() if "name" in scheme}
    headers |= {header["name"] for header in document["x-headers"]["request"]} | set(document["x-headers"]["response"])
    for item in document["paths"].values():
        for operation in item.values():
            headers |= {p["name"] for p in operation.get("parameters", []) if p["in"] == "header"}
            headers |= {name for response in operation["responses"].values() for name in response.get("headers", {})}
    recorded_names = {name.lower() for name in HISTORY["headers"]}
    expected_names = {
        name.lower()
        for name, header in HISTORY["headers"].items()
        if is_available({"x-since": header["first"], "x-until": header["removed_in"]}, parse_version(version))
    }
    assert {name.lower() for name in headers} & recorded_names == expected_names


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda s: s.pop("Cursor"), "type of types: contract None, facts 'Cursor'"),
        (
            lambda s: s["Cursor"].update(additionalProperties=False),
            "strictness of Cursor: contract True, facts False",
        ),
        (
            lambda s: s["LoraConfig"]["required"].clear(),
            "required of LoraConfig.rank: contract False, facts True",
        ),
        (
            lambda s: s["AdamParams"]["properties"]["beta2"].update(default=0.999),
            "default of AdamParams.beta2: contract 0.999, facts 0.95",
        ),
        (
            lambda s: s["OptimStepResponse"]["properties"].update(success={"type": "boolean"}),
            "field of OptimStepResponse: contract 'success', facts None",
        ),
        (
            lambda s: s["SaveWeightsRequest"]["properties"].pop("path"),
            "field of SaveWeightsRequest: contract None, facts 'path'",
        ),
        (lambda s: s["StopReason"]["enum"].append("eos"), "value of StopReason: contract 'eos', facts None"),
        (
            lambda s: s["ModelInputChunk"]["anyOf"].pop(),
            "member of ModelInputChunk: contract None, facts 'ImageChunk'",
        ),
        (
            lambda s: s["SampleRequest"]["properties"]["prompt_logprobs"].update(type="boolean"),
            "type of SampleRequest.prompt_logprobs: contract 'bool', facts 'bool | null'",
        ),
        (
            lambda s: s["QueueState"]["enum"].append("asleep"),
            "type of TryAgainResponse.queue_state: contract "
            '\'"active" | "asleep" | "paused_capacity" | "paused_rate_limit"\', '
            'facts \'"active" | "paused_capacity" | "paused_rate_limit"\'',
        ),
    ],
)
def test_wrong_schema_is_found(change: Callable[[dict[str, Any]], object], expected: str) -> None:
    """Each kind of error in a schema shows as a difference that names the place."""
    document = project(CONTRACT, "0.16.1")
    change(document["components"]["schemas"])
    assert expected in map(str, compare_facts(document, load_facts("0.16.1")))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            lambda p: p.pop("/api/v1/asample"),
            "endpoint of endpoints: contract None, facts 'POST /api/v1/asample'",
        ),
        (
            lambda p: p["/api/v1/checkpoints"]["get"]["parameters"].pop(),
            "query of GET /api/v1/checkpoints: contract None, facts 'offset'",
        ),
        (
            lambda p: p["/api/v1/checkpoints"]["get"]["parameters"][0]["schema"].update(default=20),
            "default of GET /api/v1/checkpoints?limit: contract 20, facts 100",
        ),
        (
            lambda p: p["/api/v1/get_info"]["post"].pop("requestBody"),
            "request of POST /api/v1/get_info: contract None, facts 'GetInfoRequest'",
        ),
        (
            lambda p: p["/api/v1/get_info"]["post"]["responses"].pop("200"),
            "response of POST /api/v1/get_info: contract 'null', facts 'GetInfoResponse'",
        ),
        (
            lambda p: p["/api/v1/weights_info"]["post"].pop("requestBody"),
            "request of POST /api/v1/weights_info: contract {}, facts {'tinker_path': 'str'}",
        ),
    ],
)
def test_wrong_endpoint_is_found(change: Callable[[dict[str, Any]], object], expected: str) -> None:
    """Each kind of error in an endpoint shows as a difference that names the place."""
    document = project(CONTRACT, "0.16.1")
    change(document["paths"])
    assert expected in map(str, compare_facts(document, load_facts("0.16.1")))


def test_union_order_is_ignored() -> None:
    """Types compare with union members in one order, also inside lists and quotes."""
    assert canonicalize("null | list[str | int]") == canonicalize("list[int | str] | null")
    assert canonicalize('"b | a" | "a"') == '"a" | "b | a"'
    assert canonicalize("map[str, tuple[int, float]] | null") == "map[str, tuple[int, float]] | null"
    assert canonicalize("tuple[int, float]") != canonicalize("tuple[float, int]")


def test_facts_command_prints_differences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Matching facts print nothing and give 0, others print one line each and give 1, a malformed file gives 2."""
    file = tmp_path / "facts.json"
    facts = load_facts("0.38.0")
    file.write_text(json.dumps(facts))
    assert main(["facts", str(file)]) == 0
    assert capsys.readouterr().out == ""
    facts["types"]["Cursor"]["fields"]["offset"]["type"] = "str"
    file.write_text(json.dumps(facts))
    assert main(["facts", str(file)]) == 1
    assert capsys.readouterr().out == "type of Cursor.offset: contract 'int', facts 'str'\n"
    file.write_text("[")
    assert main(["facts", str(file)]) == 2
