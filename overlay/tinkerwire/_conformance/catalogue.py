"""All requirements, in the order in which they are tested, and the selection of some of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module

from .requirement import Area, Level, Requirement

AREA_MODULES = (
    "service",
    "authentication",
    "sessions",
    "models",
    "training",
    "losses",
    "sampling",
    "logprobs",
    "samplers",
    "distribution",
    "futures",
    "batched_polls",
    "order",
    "weights",
    "sampler_weights",
    "checkpoints",
    "downloads",
    "runs",
    "protocol",
    "bad_requests",
    "concurrency",
    "client_versions",
)
"""Modules and packages of the areas; each has an ``AREA``. Later areas need what earlier ones test."""


@cache
def load_areas() -> tuple[Area, ...]:
    """Return all areas with their requirements."""
    return tuple(import_module(f".areas.{name}", __package__).AREA for name in AREA_MODULES)


@cache
def load_requirements() -> dict[str, Requirement]:
    """Return all requirements by id, in order."""
    return {requirement.id: requirement for area in load_areas() for requirement in area.requirements}


def select_requirements(only: Sequence[str] = (), level: Level = Level.MAY) -> list[Requirement]:
    """Return the requirements to test.

    Args:
        only: names of areas, prefixes such as ``FUT``, or ids; nothing selects all.
        level: the lowest level to test.

    Raises:
        ValueError: a name in ``only`` means nothing; the error lists the areas.
    """
    requirements = load_requirements()
    names = {name.lower() for name in only}
    selected = [
        requirement
        for area in load_areas()
        for requirement in area.requirements
        if level.includes(requirement.level)
        and (not names or names & {area.name, area.prefix.lower(), requirement.id.lower()})
    ]
    known = {name.lower() for area in load_areas() for name in (area.name, area.prefix)} | {
        identifier.lower() for identifier in requirements
    }
    unknown = sorted(names - known)
    if unknown:
        areas = ", ".join(area.name for area in load_areas())
        raise ValueError(f"no area and no requirement is called {', '.join(unknown)}; areas: {areas}")
    return selected


def with_needs(selected: Sequence[Requirement]) -> list[Requirement]:
    """Return requirements together with those that they need, directly or not, in the order of the tests."""
    requirements = load_requirements()
    wanted: set[str] = set()
    waiting = [requirement.id for requirement in selected]
    while waiting:
        identifier = waiting.pop()
        if identifier not in wanted:
            wanted.add(identifier)
            waiting += requirements[identifier].needs
    return [requirement for identifier, requirement in requirements.items() if identifier in wanted]
