"""Tests with real releases of the official SDK: no drift where the contract is right, and each change found.

Not part of the fast tests: `make drift` runs them and downloads the releases.
"""

from __future__ import annotations

import ast
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from tinkerwire_codegen.official.drift.detection import find_drift
from tinkerwire_codegen.official.release.archive import Release, open_release
from tinkerwire_codegen.official.release.read import read_facts

ROOT = Path(__file__).parents[3]
SCHEMA = ROOT / "schema"
FACTS = ("0.4.1", "0.6.3", "0.16.1", "0.18.2", "0.25.0", "0.38.0")
RELEASES = (
    *("0.1.0", "0.3.0", "0.4.1", "0.6.3", "0.9.0", "0.12.0", "0.14.0", "0.16.1", "0.18.2", "0.21.0", "0.22.7"),
    *("0.25.0", "0.26.2", "0.29.1", "0.30.4", "0.34.0", "0.36.0", "0.38.0"),
)
IGNORED_KEYS = frozenset({"sites", "headers", "reachable_as", "properties"})
"""Parts of the fact files that are not compared with the contract."""


@cache
def build_release(version: str) -> Release:
    return open_release(version)


def make_comparable(facts: dict[str, Any]) -> dict[str, Any]:
    return {name: {k: v for k, v in fact.items() if k not in IGNORED_KEYS} for name, fact in facts.items()}


@pytest.mark.parametrize("version", FACTS)
def test_read_facts_equal_the_fact_files(version: str) -> None:
    """Types, endpoints, results and messages equal the facts to the last field."""
    facts = json.loads((ROOT / "tests" / "facts" / f"{version}.json").read_text())
    read = read_facts(build_release(version))
    for part in ("types", "inmemory_types", "endpoints", "proto"):
        assert make_comparable(read[part]) == make_comparable(facts[part]), part
    for part in ("futures", "proto_response_types"):
        assert read[part] == facts[part], part


@pytest.mark.parametrize("version", RELEASES)
def test_releases_have_no_drift(version: str) -> None:
    """The contract matches each release."""
    assert [report.title for report in find_drift(SCHEMA, read_facts(build_release(version)), version)] == []


TYPES, RESOURCES = "tinker/types/", "tinker/resources/"
CHANGES = {
    ("added", "field", "LoraConfig", None, "alpha"): (
        f"{TYPES}lora_config.py",
        "    rank: int\n",
        "    rank: int\n    alpha: float | None = None\n",
    ),
    ("removed", "field", "AdamParams", "eps", None): (f"{TYPES}optimizer.py", "    eps: float = 1e-12\n", ""),
    ("changed", "type", "LoraConfig.rank", "int", "float"): (
        f"{TYPES}lora_config.py",
        "    rank: int\n",
        "    rank: float\n",
    ),
    ("changed", "required", "AdamParams.beta1", False, True): (
        f"{TYPES}optimizer.py",
        "    beta1: float = 0.9\n",
        "    beta1: float\n",
    ),
    ("changed", "default", "AdamParams.beta2", 0.95, 0.999): (
        f"{TYPES}optimizer.py",
        "    beta2: float = 0.95\n",
        "    beta2: float = 0.999\n",
    ),
    ("added", "value", "Severity", None, "FATAL"): (f"{TYPES}severity.py", '"CRITICAL"]', '"CRITICAL", "FATAL"]'),
    ("added", "endpoint", "endpoints", None, "GET /api/v1/models"): (
        f"{RESOURCES}models.py",
        "    async def get_info(",
        '    async def list(self) -> GetInfoResponse:\n        return await self._get("/api/v1/models", '
        "cast_to=GetInfoResponse)\n\n    async def get_info(",
    ),
    ("changed", "path", "POST /api/v1/get_info", "POST /api/v1/get_info", "POST /api/v1/model_info"): (
        f"{RESOURCES}models.py",
        '"/api/v1/get_info"',
        '"/api/v1/model_info"',
    ),
}


def list_drift(source: Release) -> list[tuple[Any, ...]]:
    reports = find_drift(SCHEMA, read_facts(source), "0.39.0")
    return [(report.change, report.kind, report.where, report.contract, report.release) for report in reports]


@pytest.mark.parametrize("expected", CHANGES, ids=lambda change: " ".join(map(str, change[:3])))
def test_each_change_in_a_real_release_is_reported_once(expected: tuple[Any, ...]) -> None:
    """In a copy of the newest known release, each kind of change causes one report."""
    file, old, new = CHANGES[expected]
    source = build_release("0.38.0")
    assert old in source.files[file]
    changed = Release(None, {**source.files, file: source.files[file].replace(old, new, 1)})
    assert list_drift(changed) == [expected]


@pytest.mark.parametrize("change", ["added", "renumbered"])
def test_each_change_of_real_messages_is_reported_once(change: str) -> None:
    """A new or renumbered protobuf field is found in the serialized descriptor."""
    source = build_release("0.38.0")
    file = "tinker/proto/tinker_public_pb2.py"
    text = source.files[file]
    start = text.index("AddSerializedFile(") + len("AddSerializedFile(")
    end = text.index(")\n", start)
    proto = FileDescriptorProto.FromString(ast.literal_eval(text[start:end]))
    message = next(candidate for candidate in proto.message_type if candidate.name == "DmelChunk")
    expected: tuple[Any, ...]
    if change == "added":
        message.field.add(name="rate", number=2, type=5, label=1)
        expected = ("added", "protobuf field", "DmelChunk", None, "int32 rate = 2;")
    else:
        message.field[0].number = 9
        expected = ("changed", "protobuf number", "DmelChunk.dmel", 1, 9)
    new_text = f"{text[:start]}{proto.SerializeToString()!r}{text[end:]}"
    assert list_drift(Release(None, {**source.files, file: new_text})) == [expected]
