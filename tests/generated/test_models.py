"""Every type of the contract, in every era: what fits the schema survives the way in and out."""

from __future__ import annotations

import ast
import os
import pickle
from pathlib import Path
from typing import Any, get_type_hints

import attrs
import orjson
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from support.generated_package import run_python
from support.instances import PREFIX, Instances
from tinkerwire._wire.contract_rules import contract_rules
from tinkerwire_base.conversion.converter import Converter
from tinkerwire_base.conversion.versioning import is_marked_protobuf_only, project, union_document
from tinkerwire_base.errors import DialectError
from tinkerwire_codegen.contract.bundle import families_of_schemas, load
from tinkerwire_generated import models
from tinkerwire_generated.availability import (
    FIELD_VERSIONS,
    NEWEST,
    REQUIRED_VERSIONS,
    SCALAR_TYPE_VERSIONS,
    TYPE_VERSIONS,
    VALUE_VERSIONS,
)

SCHEMA = Path(__file__).parents[2] / "schema"
CONTRACT = load(SCHEMA)
FAMILIES = {
    file.stem: ast.parse(file.read_text(encoding="utf-8"))
    for file in sorted(Path(models.__file__).parent.glob("*.py"))
    if file.stem != "__init__"
}
"""The source of each module of models, by family."""
TESTED_VERSIONS = ("0.4.1", "0.6.3", "0.16.1", "0.25.0", "0.38.0")
UNION_INSTANCES = Instances(union_document(CONTRACT))
AT = {version: Instances(project(CONTRACT, version)) for version in TESTED_VERSIONS}
TYPES = [(version, name) for version in TESTED_VERSIONS for name in AT[version].schemas]
BINARY = {name for name, schema in UNION_INSTANCES.schemas.items() if is_marked_protobuf_only(schema)}
# Types that came and went between two tested versions are tested at the version that introduced them.
UNTESTED = UNION_INSTANCES.schemas.keys() - {name for _, name in TYPES} - BINARY
SHORT_LIVED = {name: TYPE_VERSIONS[name][0] for name in UNTESTED}
AT |= {version: Instances(project(CONTRACT, version)) for version in sorted(set(SHORT_LIVED.values()))}
TYPES += sorted((version, name) for name, version in SHORT_LIVED.items())
MODELS = [name for name in UNION_INSTANCES.schemas if attrs.has(getattr(models, name))]
few_examples = settings(
    max_examples=int(os.environ.get("TINKERWIRE_EXAMPLES", "6")),
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def create_converter(version: str) -> Converter:
    return Converter(contract_rules(version, version, f"wire {version}"))


TABLES: list[Any] = [FIELD_VERSIONS, REQUIRED_VERSIONS, TYPE_VERSIONS, VALUE_VERSIONS, SCALAR_TYPE_VERSIONS]
TIMED = {name for table in TABLES for name in table}
CONVERTERS = {version: create_converter(version) for version in AT}


def assert_valid(instances: Instances, name: str, value: Any) -> None:
    errors = [f"{error.json_path}: {error.message}" for error in instances.validator(name).iter_errors(value)]
    assert not errors, (name, value, errors)


@pytest.mark.parametrize(("version", "name"), TYPES)
@few_examples
@given(data=st.data())
def test_valid_json_keeps_its_meaning(version: str, name: str, data: st.DataObject) -> None:
    """JSON that fits the schema of a version is read, written, fits again, and means the same."""
    instances, conv, kind = AT[version], CONVERTERS[version], getattr(models, name)
    # The keys distinguish the members of a union of results, so unknown keys would make them ambiguous.
    value = data.draw(instances.of(name, unknown_keys=name != "FutureRetrieveResponse"))
    assert_valid(instances, name, value)
    encoded = orjson.loads(conv.encode(conv.structure(value, kind)))
    assert_valid(instances, name, encoded)
    schema = {"$ref": PREFIX + name}
    assert instances.meaning(schema, encoded) == instances.meaning(schema, value)


@pytest.mark.parametrize("name", MODELS)
@few_examples
@given(data=st.data())
def test_models_survive_a_round_trip(name: str, data: st.DataObject) -> None:
    """Pickling and, at each version, encoding keep a model, or a DialectError gives the reason."""
    kind = getattr(models, name)
    model = CONVERTERS[NEWEST].structure(data.draw(UNION_INSTANCES.of(name)), kind)
    assert pickle.loads(pickle.dumps(model)) == model
    assert repr(model).startswith(f"{name}(") and len(repr(model)) < 20_000
    for version in AT:
        try:
            text = CONVERTERS[version].encode(model)
        except DialectError as error:
            assert error.version == version
            assert error.what.partition(".")[0] in TIMED
            continue
        if name in AT[version].schemas:
            assert_valid(AT[version], name, orjson.loads(text))
        assert CONVERTERS[version].decode(text, kind) == model


def test_newest_version_is_tested() -> None:
    """A version that the contract learns is tried, too, and no type is left out."""
    assert TESTED_VERSIONS[-1] == NEWEST
    assert {name for _, name in TYPES} | BINARY == CONTRACT["components"]["schemas"].keys()
    assert not {name for _, name in TYPES} & BINARY


def test_names_equal_those_of_the_schemas() -> None:
    """The modules of the families define exactly the schemas of their files, and the package has all of them."""
    defined = {}
    for family, source in FAMILIES.items():
        defined |= {node.name: family for node in source.body if isinstance(node, ast.ClassDef)}
        targets = [node.target for node in source.body if isinstance(node, ast.AnnAssign)]
        defined |= {target.id: family for target in targets if isinstance(target, ast.Name)}
    assert defined == families_of_schemas(SCHEMA)
    assert sorted(models.__all__) == sorted(defined)
    assert set(models.__all__) <= set(dir(models))


def test_family_is_imported_with_its_first_name() -> None:
    """The package imports a family when one of its names is read, together with the families that it refers to."""
    program = """
import sys
from tinkerwire_generated import models
def families():
    return sorted(name.rpartition(".")[2] for name in sys.modules if name.startswith("tinkerwire_generated.models."))
print(families(), "Datum" in vars(models))
models.Datum, models.Cursor
print(families(), "Datum" in vars(models))
models.ForwardBackwardInput
print(families())
"""
    assert run_python(program, SCHEMA).splitlines() == [
        "[] False",
        "['inputs', 'runs'] True",
        "['inputs', 'optimizers', 'runs', 'training']",
    ]


def test_unknown_name_is_an_attribute_error() -> None:
    """A name that the contract does not have raises the error of any module."""
    with pytest.raises(AttributeError, match=r"module 'tinkerwire_generated\.models' has no attribute 'Datums'"):
        _ = models.Datums  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [name for name in models.__all__ if attrs.has(getattr(models, name))])
def test_type_hints_of_every_model_resolve(name: str) -> None:
    """``typing.get_type_hints`` resolves every field, also types of other families."""
    assert get_type_hints(getattr(models, name))


def test_pickles_of_a_single_module_load() -> None:
    """A pickle that names the package as the module of a class gives the class of its family."""
    text = pickle.dumps(models.AdamParams, protocol=0)
    assert b"tinkerwire_generated.models.optimizers" in text
    assert pickle.loads(text.replace(b".optimizers", b"")) is models.AdamParams


def test_every_name_has_a_docstring_with_its_version() -> None:
    """Classes and aliases have a description and their wire versions; fields have a description."""
    body = [node for source in FAMILIES.values() for node in source.body]
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.ClassDef):
            text = ast.get_docstring(node) or ""
            assert "Wire: " in text and len(text.splitlines()[0]) > 3, node.name
            for part, doc in zip(node.body[1:], node.body[2:], strict=False):
                assert not isinstance(part, ast.AnnAssign) or isinstance(doc, ast.Expr), (node.name, ast.unparse(part))
        elif isinstance(node, ast.AnnAssign):
            assert isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant), ast.unparse(node)
            assert "Wire: " in str(after.value.value), ast.unparse(node)


def test_only_request_fields_have_validators() -> None:
    """Fields of requests have validators, but those that their behaviour checks; what servers send comes as it is."""
    assert all(field.validator for field in attrs.fields(models.SamplingParams) if field.name != "extra_fields")
    assert [field.name for field in attrs.fields(models.Datum) if not field.validator] == ["loss_fn_inputs"]
    assert not any(field.validator for field in attrs.fields(models.SampleResponse))


def test_models_are_immutable_slotted_and_keyword_only() -> None:
    """No field can be set later, none be made up, none be given by position but in the SDK's dataclasses."""
    schemas = UNION_INSTANCES.schemas
    for name in MODELS:
        cls = getattr(models, name)
        by_position = [field.alias for field in attrs.fields(cls) if not field.kw_only]
        expected = list(schemas[name]["properties"]) if schemas[name].get("x-dataclass") == "positional" else []
        assert not hasattr(cls.__new__(cls), "__dict__"), name
        assert by_position == expected, name
    params = models.AdamParams()
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        params.beta1 = 0.5  # type: ignore[misc]
    with pytest.raises(TypeError):
        models.AdamParams(0.1)  # type: ignore[call-arg]
