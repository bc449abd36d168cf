"""The catalogue of requirements: ids, texts, and references to the contract, to versions and to each other."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

import pytest

from tinkerwire._conformance.catalogue import (
    AREA_MODULES,
    load_areas,
    load_requirements,
    select_requirements,
    with_needs,
)
from tinkerwire._conformance.requirement import Requirement
from tinkerwire_generated.availability import VERSIONS
from tinkerwire_generated.operations import OPERATIONS

MAX_WORDS = 25
MIN_REQUIREMENTS = 150


@cache
def _contract() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(files("tinkerwire_generated").joinpath("contract.json").read_bytes())
    return document


def test_number() -> None:
    """The catalogue has at least the promised number of requirements."""
    assert len(load_requirements()) >= MIN_REQUIREMENTS


def test_every_area_is_tested() -> None:
    """Every module of areas is in the catalogue."""
    entries = (files("tinkerwire") / "_conformance" / "areas").iterdir()
    names = {entry.name.removesuffix(".py") for entry in entries if not entry.name.startswith("_")}
    assert set(AREA_MODULES) == names


def test_ids_are_unique() -> None:
    """No two requirements have one id, no two areas have one name or prefix."""
    ids = [requirement.id for area in load_areas() for requirement in area.requirements]
    assert len(set(ids)) == len(ids)
    for names in ([area.name for area in load_areas()], [area.prefix for area in load_areas()]):
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("requirement", load_requirements().values(), ids=lambda requirement: requirement.id)
def test_requirement(requirement: Requirement) -> None:
    """A requirement is well formed, and what it refers to exists."""
    assert re.fullmatch(r"[A-Z]{3}-\d{3}", requirement.id)
    _check_sentence(requirement.sentence)
    assert requirement.remedy.strip().endswith("."), requirement.remedy
    assert requirement.contract
    for entry in requirement.contract:
        assert _exists(entry), f"{entry} is not in the contract"
    assert requirement.since in VERSIONS
    assert requirement.until is None or requirement.until in VERSIONS
    assert requirement.applies_to(requirement.since)
    for name in requirement.operations:
        assert name in OPERATIONS
    for breakage in requirement.breaks:
        assert breakage.oldest in VERSIONS
        assert breakage.newest is None or breakage.newest in VERSIONS
        assert breakage.effect
        assert not breakage.effect.endswith(".")
    assert requirement.max_s > 0


def test_needs_come_earlier() -> None:
    """A requirement needs only those that are tested before it."""
    earlier: set[str] = set()
    for requirement in load_requirements().values():
        assert set(requirement.needs) <= earlier, f"{requirement.id} needs {set(requirement.needs) - earlier}"
        earlier.add(requirement.id)


def test_selection() -> None:
    """Areas, prefixes and ids select requirements, whatever their case; needs are added in order."""
    area = load_areas()[0]
    ids = [requirement.id for requirement in area.requirements]
    assert [chosen.id for chosen in select_requirements([area.name])] == ids
    assert [chosen.id for chosen in select_requirements([area.prefix.lower()])] == ids
    assert [chosen.id for chosen in select_requirements([ids[0]])] == ids[:1]
    with pytest.raises(ValueError, match="areas:"):
        select_requirements(["nothing"])
    needy = next(requirement for requirement in load_requirements().values() if requirement.needs)
    needed = [requirement.id for requirement in with_needs([needy])]
    assert needed[-1] == needy.id
    assert set(needy.needs) <= set(needed)


def _check_sentence(sentence: str) -> None:
    assert sentence.endswith("."), sentence
    assert not re.search(r"[.!?] [A-Z]", sentence), f"more than one sentence: {sentence}"
    assert len(sentence.split()) <= MAX_WORDS, f"{len(sentence.split())} words: {sentence}"
    # A sentence may start with the name of an operation.
    first = sentence.split(maxsplit=1)[0]
    assert sentence[0].isupper() or "_" in first or first in OPERATIONS, sentence


def _exists(entry: str) -> bool:
    """Check whether an entry names an operation, a status of one, a model or a field of one."""
    document = _contract()
    operations = {
        operation["operationId"]: operation
        for item in document["paths"].values()
        for operation in item.values()
        if isinstance(operation, dict) and "operationId" in operation
    }
    name, _, status = entry.partition(" ")
    if status:
        return name in operations and status in operations[name]["responses"]
    model, _, field = entry.partition(".")
    schemas = document["components"]["schemas"]
    if field:
        return model in schemas and field in schemas[model].get("properties", {})
    return entry in operations or entry in schemas
