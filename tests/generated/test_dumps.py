"""Every model, by pydantic's methods: out and in again, as Python's values and as JSON."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from support.instances import Instances
from tinkerwire_base.conversion.versioning import union_document
from tinkerwire_codegen.contract.bundle import load
from tinkerwire_generated import models

UNION_INSTANCES = Instances(union_document(load(Path(__file__).parents[2] / "schema")))
MODELS = [name for name in UNION_INSTANCES.schemas if attrs.has(getattr(models, name))]
few_examples = settings(
    max_examples=6,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@pytest.mark.parametrize("name", MODELS)
@few_examples
@given(data=st.data())
def test_dumps_survive_a_round_trip(name: str, data: Any) -> None:
    """Copies and pickles are equal; a dump without defaults has all required fields."""
    cls = getattr(models, name)
    value = cls.model_validate(data.draw(UNION_INSTANCES.of(name)))
    assert cls.model_validate(value.model_dump()) == value
    assert cls.model_validate_json(value.model_dump_json()) == value
    sparse = value.model_dump(exclude_defaults=True)
    assert all((field.alias or name) in sparse for name, field in cls.model_fields.items() if field.is_required())
    assert json.loads(value.model_dump_json(indent=2)) == value.model_dump(mode="json")
    for copied in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value)), value.model_copy()):
        assert copied == value and type(copied) is cls


@pytest.mark.parametrize("name", MODELS)
@few_examples
@given(data=st.data())
def test_dumps_fit_their_schema(name: str, data: Any) -> None:
    """The JSON of model_dump fits the schema of the contract."""
    cls = getattr(models, name)
    value = cls.model_validate(data.draw(UNION_INSTANCES.of(name)))
    errors = list(UNION_INSTANCES.validator(name).iter_errors(value.model_dump(mode="json")))
    assert not errors, errors[0].message
    assert UNION_INSTANCES.schemas[name].get("properties", {}).keys() == cls.model_fields.keys()
