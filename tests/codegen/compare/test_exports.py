"""Exported documents of the newest wire version: both versions of OpenAPI agree, and edits are found exactly."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from tinkerwire_codegen.cli import main
from tinkerwire_codegen.compare.contracts import compare_contracts

Json = dict[str, Any]

WIRE = "0.38.0"


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Json]:
    folder = tmp_path_factory.mktemp("exports")
    found = {}
    for name in ("openapi-json", "openapi-3.0"):
        file = folder / f"{name}.json"
        assert main(["export", "--wire", WIRE, "--format", name, "--out", str(file)]) == 0
        found[name] = json.loads(file.read_text())
    return found


def test_both_versions_of_openapi_agree(documents: dict[str, Json]) -> None:
    """OpenAPI 3.0 drops some defaults, but no value of a request or response is lost."""
    changes = compare_contracts(documents["openapi-json"], documents["openapi-3.0"])
    assert [change for change in changes if change.level == "breaking" or "not understood" in change.reason] == []


@pytest.mark.parametrize("name", ["openapi-json", "openapi-3.0"])
def test_edited_copy_has_exactly_the_edits(documents: dict[str, Json], name: str) -> None:
    """Each edit is reported at its place, and nothing else is."""
    edited = copy.deepcopy(documents[name])
    schemas = edited["components"]["schemas"]
    schemas["SamplingParams"]["properties"]["temperature"]["maximum"] = 2
    schemas["TensorData"]["description"] = "Other words."
    schemas["CreateModelResponse"]["properties"]["model_id"] = {"type": "integer"}
    del edited["paths"]["/api/v1/healthz"]
    found = {(change.level, change.where) for change in compare_contracts(documents[name], edited)}
    assert found == {
        ("breaking", "SamplingParams.temperature"),
        ("breaking", "CreateModelResponse.model_id"),
        ("safe", "CreateModelResponse.model_id"),
        ("breaking", "GET /api/v1/healthz"),
    }
