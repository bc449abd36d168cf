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

FOLDER = Path(__file__).parent
AT_NEWEST = Instances(project(load(FOLDER.parents[2] / "schema"), NEWEST))
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
"""The official types may decode it as settings of any optimizer, where tinkerwire uses the class of the named one."""
pytestmark = pytest.mark.timeout(1800)


def draw_values(name: str) -> list[Any]:
    """Return values that fit the schema of a type, the same in every run."""
    values: list[Any] = []

    @settings(
        max_examples=40,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(AT_NEWEST.of(name, unknown_keys=False))
    def collect(value: Any) -> None:
        values.append(value)

    collect()
    return values


@pytest.fixture(scope="module")
def official_dumps() -> dict[str, list[tuple[Any, Any]]]:
    """Return by type each value that the official type accepts, with its dumps."""
    values = {name: draw_values(name) for name, schema in AT_NEWEST.schemas.items() if "properties" in schema}
    python = ensure_venv("official-0.38.0", FOLDER / "requirements-0.38.0.txt")
    run = subprocess.run(
        [str(python), "-I", str(FOLDER / "values_worker.py")],
        input=json.dumps(values),
        capture_output=True,
        text=True,
        check=False,
    )
    assert not run.returncode, run.stderr
    dumps = json.loads(run.stdout)
    return {name: [(v, d) for v, d in zip(values[name], dumps[name], strict=True) if d] for name in dumps}


def test_official_types_accept_values_of_the_contract(official_dumps: dict[str, list[tuple[Any, Any]]]) -> None:
    """Every official type accepts some values."""
    assert len(official_dumps) > 90
    assert [name for name, pairs in official_dumps.items() if not pairs] == []


def test_dumps_equal_official_dumps(official_dumps: dict[str, list[tuple[Any, Any]]]) -> None:
    """Dumps are equal: complete, without nulls, and without defaults."""
    differing: dict[str, set[str]] = {}
    for name, pairs in official_dumps.items():
        for value, official_dump in pairs:
            model = getattr(models, name).model_validate(value)
            our_dumps = {
                "json": model.model_dump(mode="json"),
                "text": json.loads(model.model_dump_json()),
                "no nulls": model.model_dump(mode="json", exclude_none=True),
                "no defaults": model.model_dump(mode="json", exclude_defaults=True),
            }
            for form, dump in our_dumps.items():
                if {**dump, SETTINGS: None} != {**official_dump[form], SETTINGS: None}:
                    differing.setdefault(form, set()).add(name)
    expected = dict.fromkeys(("json", "text", "no nulls"), ONE_FIELD)
    assert {form: names - GUESSED for form, names in differing.items()} == {**expected, "no defaults": REQUIRED_TAGS}
