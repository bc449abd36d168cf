"""Mutations of the embedded server: the kit notices a few of them, and each is described completely."""

from __future__ import annotations

import subprocess
import sys
from itertools import chain
from pathlib import Path

import attrs
import pytest

from rigs.conformance.mutations import load_groups, load_mutations
from tinkerwire._conformance.catalogue import load_requirements
from tinkerwire._server.emulation.fault_injection import FaultInjection
from tinkerwire._server.emulation.quirks import Quirks
from tinkerwire_generated.availability import VERSIONS

ROOT = Path(__file__).parents[3]
NAMES = (
    "health-is-up",
    "key-repeated",
    "outputs-reversed",
    "seed-ignored",
    "results-fetched-once",
    "always-overwritten",
    "errors-name-nothing",
)
ONLY = ("SRV-001", "AUT-004", "TRN-006", "SMP-009", "FUT-006", "WGT-008", "PRO-061")
MIN_MUTATIONS = 60
PROBABILITIES = {"p_408": "408", "p_429": "429", "p_5xx": "5xx", "p_reset": "reset", "p_lost_reply": "lost-reply"}


@pytest.mark.timeout(600)
def test_mutations_trip_what_is_meant() -> None:
    """Each of a few mutations trips exactly one of a few requirements."""
    only = chain.from_iterable(("--only", name) for name in ONLY)
    command = [sys.executable, "-m", "tests.rigs.conformance.run_mutations", *NAMES, *only]
    completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=500)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    lines = completed.stdout.splitlines()
    assert {line.split()[0] for line in lines} == set(NAMES)
    assert {line.rpartition("(")[2] for line in lines} == {f"{name})" for name in ONLY}


def test_every_mutation_is_described() -> None:
    """A mutation has a sentence, a wire version, and requirements that exist and apply, or a reason for none."""
    requirements = load_requirements()
    for mutation in load_mutations().values():
        assert mutation.change.endswith("."), mutation.name
        assert mutation.wire in VERSIONS
        assert bool(mutation.trips) != bool(mutation.unseen), mutation.name
        for identifier in mutation.trips:
            assert requirements[identifier].applies_to(mutation.wire), f"{mutation.name}: {identifier}"


def test_number() -> None:
    """There are as many mutations as promised, besides quirks and injected failures."""
    own = [m for group in load_groups() if group.title not in ("Quirks", "Injected failures") for m in group.mutations]
    assert len(own) >= MIN_MUTATIONS


def test_every_quirk_has_a_mutation() -> None:
    """Each value of each quirk that differs from the default is tried."""
    tried = set(chain.from_iterable(str(m.settings.get("quirks", "")).split(",") for m in load_mutations().values()))
    for field in attrs.fields(Quirks):
        if isinstance(field.default, bool):
            assert field.name in tried
        elif isinstance(field.default, str):
            for value in _choices(field):
                assert value == field.default or f"{field.name}={value}" in tried, (field.name, value)
        else:
            assert any(quirk.startswith(f"{field.name}=") for quirk in tried), field.name


def test_every_fault_has_a_mutation() -> None:
    """Each kind of injected failure is tried, by probability and by plan."""
    assert {f.name for f in attrs.fields(FaultInjection) if f.name.startswith("p_")} == set(PROBABILITIES)
    for kind in (*PROBABILITIES.values(), "delay"):
        assert {f"injected-{kind}", f"injected-planned-{kind}"} <= set(load_mutations())


def _choices(field: attrs.Attribute[str]) -> tuple[str, ...]:
    """Return the values of a quirk, which only its validator knows."""
    choices: tuple[str, ...] = field.validator.__closure__[0].cell_contents  # type: ignore[union-attr]
    return choices
