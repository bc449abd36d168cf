"""Plain documents of the contract at each version, and the check of a body against their schemas."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from tinkerwire_base.conversion.versioning import project
from tinkerwire_codegen.contract.bundle import load

CONTRACT = load(Path(__file__).parents[2] / "schema")
OLDEST, NEWEST = "0.3.0", "0.16.1"


@cache
def project_contract(version: str) -> dict[str, Any]:
    return project(CONTRACT, version)


def read_schema(name: str, version: str = NEWEST) -> dict[str, Any]:
    schema: dict[str, Any] = project_contract(version)["components"]["schemas"][name]
    return schema


def is_valid_body(name: str, body: Any, version: str = NEWEST) -> bool:
    root = {"$ref": f"#/components/schemas/{name}", "components": project_contract(version)["components"]}
    return bool(Draft202012Validator(root).is_valid(body))


def without(body: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in names}
