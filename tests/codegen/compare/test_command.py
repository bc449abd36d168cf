"""The diff command: folders, documents and versions in; text, JSON, Markdown and exit codes out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.release import JOBS, PROTO, write_contract
from tinkerwire_base.conversion.versioning import project
from tinkerwire_codegen.cli import main
from tinkerwire_codegen.compare.change import NO_EXAMPLE
from tinkerwire_codegen.compare.contracts import compare_contracts
from tinkerwire_codegen.compare.documents import prepare_document
from tinkerwire_codegen.compare.inputs import open_contract
from tinkerwire_codegen.contract.bundle import load

ROOT = Path(__file__).parents[3]
CONTRACT = load(ROOT / "schema")
NEW_FIELD = "        heat: {type: number, default: 0.5}\n"


@pytest.fixture
def contracts(tmp_path: Path) -> tuple[Path, Path]:
    return write_contract(tmp_path / "old"), write_contract(tmp_path / "new")


def edit(folder: Path, old: str, new: str, file: str = "jobs.yaml") -> None:
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1))


def run_diff(*arguments: object) -> int:
    return main(["diff", *map(str, arguments)])


def test_equal_contracts_have_no_changes(contracts: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Equal contracts have no changes, and the command succeeds."""
    assert run_diff(*contracts, "--fail-on", "any") == 0
    assert "no change" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "level"),
    [
        (NEW_FIELD, NEW_FIELD + "        cold: {type: [integer, 'null'], default: null}\n", "safe"),
        (NEW_FIELD, NEW_FIELD.replace("0.5", "0.25"), "risky"),
        ("enum: [fast, slow]", "enum: [fast]", "breaking"),
    ],
)
def test_fail_on_sets_the_exit_code(contracts: tuple[Path, Path], old: str, new: str, level: str) -> None:
    """With --fail-on the command fails from that level on; without it the command succeeds."""
    edit(contracts[1], old, new)
    order = ["safe", "risky", "breaking"]
    assert run_diff(*contracts) == 0
    for name, least in (("any", "safe"), ("risky", "risky"), ("breaking", "breaking")):
        assert run_diff(*contracts, "--fail-on", name) == int(order.index(level) >= order.index(least))


def test_reports_show_place_reason_and_example(
    contracts: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """All formats show the operation, the place, the reason and an example."""
    edit(contracts[1], "enum: [fast, slow]", "enum: [fast]")
    run_diff(*contracts)
    text = capsys.readouterr().out
    assert 'breaking request: Mode: the value "slow" is rejected now' in text
    assert "in POST /api/v1/start" in text
    assert "for example, valid before and not now as body application/json:" in text
    run_diff(*contracts, "--format", "json")
    report = json.loads(capsys.readouterr().out)
    assert report["counts"] == {"breaking": 1, "risky": 0, "safe": 0}
    (change,) = report["changes"]
    assert (change["where"], change["operations"]) == ("Mode", ["POST /api/v1/start"])
    assert change["example"]["mode"] == "slow"
    run_diff(*contracts, "--format", "markdown")
    markdown = capsys.readouterr().out
    assert "### 1 breaking: clients of the old contract fail" in markdown
    assert "| request | `Mode` |" in markdown


def test_document_compares_like_its_folder(contracts: tuple[Path, Path], tmp_path: Path) -> None:
    """A bundled document compares like the folder that it came from."""
    bundled = tmp_path / "bundled.json"
    bundled.write_text(json.dumps(load(contracts[0])))
    assert run_diff(contracts[0], bundled, "--fail-on", "any") == 0


def test_versions_of_one_contract_compare(contracts: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """The forms DIR@VERSION and @VERSION open a contract at a wire version."""
    edit(contracts[0], NEW_FIELD, "        heat: {type: number, default: 0.5, x-since: 0.6.0}\n")
    assert run_diff(f"{contracts[0]}@0.5.0", f"{contracts[0]}@0.6.0", "--fail-on", "any") == 1
    assert run_diff("@0.5.0", "@0.6.0", "--schema", contracts[0], "--fail-on", "any") == 1
    assert "Knobs.heat" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("no/such/place", "does not exist"),
        ("@0.0.1", "must be at least 0.1.0"),
        ("@new", "expected numbers separated by dots"),
    ],
)
def test_unusable_input_exits_with_2(argument: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The command exits with 2; the error quotes the input and lists the valid forms."""
    assert run_diff(argument, "@0.16.1") == 2
    assert message in capsys.readouterr().err


def test_reader_that_stops_early_causes_no_error() -> None:
    """A pipe that closes before the end leaves no traceback; the exit code stays that of --fail-on."""
    command = [sys.executable, "-m", "tinkerwire_codegen", "diff", "@0.3.0", "@0.38.0", "--fail-on", "breaking"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 1


def test_other_versions_of_openapi_are_rejected(tmp_path: Path) -> None:
    """The error names the version of a document that is neither OpenAPI 3.0 nor 3.1."""
    (tmp_path / "old.json").write_text('{"swagger": "2.0", "paths": {}}')
    with pytest.raises(ValueError, match=r"must be OpenAPI 3.0 or 3.1, got 2.0"):
        open_contract(str(tmp_path / "old.json"), tmp_path)


def test_yaml_has_the_values_of_json(tmp_path: Path) -> None:
    """Dates, times and words such as `no` are texts in YAML 1.2, and keys are texts in JSON."""
    text = (
        "paths: {/a: {get: {responses: {200: {description: no}}}}}\nx: [2020-01-01, 12:30, on, true, 0.5, 3, ~]\ny:\n"
    )
    (tmp_path / "a.yaml").write_text(text)
    document = open_contract(str(tmp_path / "a.yaml"), tmp_path).document
    assert document["paths"]["/a"]["get"]["responses"] == {"200": {"description": "no"}}
    assert document["x"] == ["2020-01-01", "12:30", "on", True, 0.5, 3, None]
    assert document["y"] is None


def test_document_without_paths_is_rejected(tmp_path: Path) -> None:
    """The error names a document without paths."""
    (tmp_path / "list.json").write_text("[]")
    with pytest.raises(ValueError, match="has no paths"):
        open_contract(str(tmp_path / "list.json"), tmp_path)


def test_shared_parts_of_a_document_are_inlined(tmp_path: Path) -> None:
    """References to shared parameters and responses are replaced by their targets."""
    document = {
        "openapi": "3.1.0",
        "info": {"title": "t", "version": "draft"},
        "paths": {
            "/a": {
                "get": {
                    "parameters": [{"$ref": "#/components/parameters/P"}],
                    "responses": {"200": {"$ref": "#/components/responses/R"}},
                }
            }
        },
        "components": {
            "parameters": {"P": {"name": "p", "in": "query", "schema": {"type": "string"}}},
            "responses": {"R": {"description": "Done."}},
        },
    }
    (tmp_path / "a.json").write_text(json.dumps(document))
    prepared = prepare_document(open_contract(str(tmp_path / "a.json"), tmp_path).document)
    assert prepared["paths"]["/a"]["get"]["parameters"][0]["name"] == "p"
    assert prepared["paths"]["/a"]["get"]["responses"]["200"]["description"] == "Done."


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("int64 x = 1;", "int64 x = 9;", ("breaking", "Point.x")),
        ("int64 x = 1;", "int32 x = 1;", ("breaking", "Point.x")),
        ("  int64 x = 1;", "  int64 x = 1;\n  // More.\n  bool more = 5;", ("safe", "Point.more")),
        ("  // Its place.\n  int64 x = 1;\n", "", ("risky", "Point.x")),
    ],
)
def test_protobuf_changes_have_the_right_level(
    contracts: tuple[Path, Path], old: str, new: str, expected: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Protobuf fields that are added, removed or redefined have the right level."""
    edit(contracts[1], old, new, "tinker_public.proto")
    run_diff(*contracts, "--format", "json")
    (change,) = json.loads(capsys.readouterr().out)["changes"]
    assert (change["level"], change["where"], change["direction"]) == (*expected, "protobuf")


def test_replaced_texts_exist() -> None:
    """The texts that the tests replace exist."""
    assert NEW_FIELD in JOBS
    assert "int64 x = 1;" in PROTO


def test_each_result_of_queued_work_is_compared() -> None:
    """One result accepts any object, so the union hides changes of the others; the comparison finds them anyway."""
    old, new = project(CONTRACT, "0.16.1"), project(CONTRACT, "0.16.1")
    new["components"]["schemas"]["SampledSequence"]["properties"]["tokens"] = {"type": "string"}
    new["components"]["schemas"]["FutureRetrieveResponse"]["anyOf"].append({"$ref": "#/components/schemas/Cursor"})
    keys = {change.key[0]: change.key for change in compare_contracts(old, new) if "tokens" in change.where}
    assert "breaking" in keys
    members = [change for change in compare_contracts(old, new) if change.where == "FutureRetrieveResponse"]
    assert [(change.level, change.reason.partition(";")[0]) for change in members] == [
        ("risky", "Cursor is a new member")
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("0.4.1", "0.6.0", ("safe", "request", "LossFnType", 'the value "cispo" is accepted now')),
        ("0.24.1", "0.25.0", ("breaking", "request", "POST /api/v1/forward", "the operation was removed")),
        ("0.24.1", "0.25.0", ("breaking", "request", "body", "application/json is no longer accepted")),
        ("0.6.3", "0.7.0", ("safe", "request", "AdamParams.weight_decay", "a property of this name is accepted now")),
    ],
)
def test_known_changes_of_the_wire_are_found(old: str, new: str, expected: tuple[str, ...]) -> None:
    """Known changes in the wire's history are found between its versions."""
    changes = compare_contracts(project(CONTRACT, old), project(CONTRACT, new))
    assert expected in [change.key for change in changes]
    assert all(change.example is not NO_EXAMPLE for change in changes if "is rejected now" in change.reason)
