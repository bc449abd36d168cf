"""The official SDK 0.38.0 as oracle of values: both sides dump the same values alike.

The name keeps the module out of the fast tests: run `pytest tests/rigs/official/values_suite.py`.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.rigs.official.venv import ensure_venv

from support.instances import Instances
from tinkerwire_base.conversion.versioning import project
from tinkerwire_codegen.contract.bundle import load
from tinkerwire_generated import models
from tinkerwire_generated.availability import NEWEST

HERE = Path(__file__).parent
AT_NEWEST = Instances(project(load(HERE.parents[2] / "schema"), NEWEST))
REQUIRED_TAGS = {
    *("SessionStartEvent", "SessionEndEvent", "UnhandledExceptionEvent", "TelemetryBatch", "TelemetrySendRequest"),
    *("HealthResponse", "TelemetryResponse", "OptimStepRequest"),
}
"""Their dumps without defaults keep tags that must be given there, although they have one value only."""
ONE_FIELD = {"OptimStepRequest"}
"""Its two fields on the wire are one in the official type, which takes any settings for those of AdamW."""
GUESSED = {"SessionSummary"}
"""Draws may hold a status without a tag: tinkerwire identifies it by its keys, the SDK takes the first match."""
SETTINGS = "optimizer_config"
"""The official types may take it for the settings of any optimizer, where it names one that has a class of its own."""
pytestmark = pytest.mark.timeout(1800)


def values_of(name: str) -> list[Any]:
    """Return values that fit the schema of a type, the same in every run."""
    found: list[Any] = []

    @settings(
        max_examples=40,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(AT_NEWEST.of(name, unknown_keys=False))
    def collect(value: Any) -> None:
        found.append(value)

    collect()
    return found


@pytest.fixture(scope="module")
def official_dumps() -> dict[str, list[tuple[Any, Any]]]:
    """Return by type each value that the official type accepts, with its dumps."""
    values = {name: values_of(name) for name, each in AT_NEWEST.schemas.items() if "properties" in each}
    python = ensure_venv("official-0.38.0", HERE / "requirements-0.38.0.txt")
    run = subprocess.run(
        [str(python), "-I", str(HERE / "values_worker.py")],
        input=json.dumps(values),
        capture_output=True,
        text=True,
        check=False,
    )
    assert not run.returncode, run.stderr
    dumps = json.loads(run.stdout)
    return {name: [(v, d) for v, d in zip(values[name], dumps[name], strict=True) if d] for name in dumps}


def test_official_types_take_what_fits_the_contract(official_dumps: dict[str, list[tuple[Any, Any]]]) -> None:
    """Every official type accepts some values."""
    assert len(official_dumps) > 90
    assert [name for name, pairs in official_dumps.items() if not pairs] == []


def test_dumps_are_the_same(official_dumps: dict[str, list[tuple[Any, Any]]]) -> None:
    """Dumps are equal: complete, without nulls, and without defaults."""
    differing: dict[str, set[str]] = {}
    for name, pairs in official_dumps.items():
        for value, theirs in pairs:
            model = getattr(models, name).model_validate(value)
            ours = {
                "json": model.model_dump(mode="json"),
                "text": json.loads(model.model_dump_json()),
                "no nulls": model.model_dump(mode="json", exclude_none=True),
                "no defaults": model.model_dump(mode="json", exclude_defaults=True),
            }
            for how, dump in ours.items():
                if {**dump, SETTINGS: None} != {**theirs[how], SETTINGS: None}:
                    differing.setdefault(how, set()).add(name)
    whole = dict.fromkeys(("json", "text", "no nulls"), ONE_FIELD)
    assert {how: names - GUESSED for how, names in differing.items()} == {**whole, "no defaults": REQUIRED_TAGS}
