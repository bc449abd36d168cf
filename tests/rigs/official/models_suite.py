"""The official SDKs 0.16.1 and 0.38.0 as judges of JSON, type by type.

What their types accept, and what they dump, decodes and encodes here to what is the same to them; what we encode they
accept, and dump it as what is the same to us. Its name keeps it out of the fast suite: run
`pytest tests/rigs/official/models_suite.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.rigs.official import exceptions
from tests.rigs.official.drawable import convert_pydantic_schema, narrow
from tests.rigs.official.exceptions import NO_TYPES, NOT_COVERED, OWN_DUMP_REFUSED, TAGS, Excuse, list_excuses
from tests.rigs.official.oracle import Oracle

from support.drawing import examples
from support.instances import PREFIX, Instances
from tinkerwire._wire.contract_rules import contract_rules
from tinkerwire_base.conversion.converter import Converter
from tinkerwire_base.conversion.versioning import project
from tinkerwire_codegen.contract.bundle import load
from tinkerwire_generated import models

pytestmark = pytest.mark.timeout(1800)

Json = dict[str, Any]
ROOT = Path(__file__).parents[3]
VERSIONS = ("0.16.1", "0.38.0")
MAX_VALUES = 60
"""Number of values for each type and direction."""
MIN_ACCEPTED = 5
"""Number of values that the SDK must accept, so that a test is meaningful."""
CONTRACT = load(ROOT / "schema")
FACTS: dict[str, Json] = {v: json.loads((ROOT / "tests" / "facts" / f"{v}.json").read_text()) for v in VERSIONS}
AT = {version: Instances(project(CONTRACT, version)) for version in VERSIONS}
NARROW = {version: Instances(narrow(project(CONTRACT, version))) for version in VERSIONS}
OUR_NAMES = {v: {schema.get("x-sdk-name", name): name for name, schema in AT[v].schemas.items()} for v in VERSIONS}
CONVERTERS = {version: Converter(contract_rules(version, version, f"wire {version}")) for version in VERSIONS}
TYPES = [(v, name) for v in VERSIONS for name in sorted(FACTS[v]["types"]) if (v, name) not in NOT_COVERED]


@pytest.fixture(scope="module")
def judges() -> Iterator[dict[str, Oracle]]:
    """Run a worker of each version."""
    with Oracle("0.16.1", "models_worker.py") as old, Oracle("0.38.0", "models_worker.py") as new:
        yield {"0.16.1": old, "0.38.0": new}


class Trial:
    """One official type of one version, and ours of the same JSON."""

    def __init__(self, version: str, name: str, oracle: Oracle) -> None:
        self.location = [FACTS[version]["types"][name]["module"], name]
        self.our_name = OUR_NAMES[version][name]
        self._model_class = getattr(models, self.our_name)
        self._converter = CONVERTERS[version]
        self._oracle = oracle

    def schema(self) -> Any:
        """Return the JSON Schema of the official type."""
        return self._oracle.send({"schema": self.location})

    def judge(self, values: list[Any]) -> list[Json]:
        """Return the official type's results for JSON values: an error, or dumps."""
        verdicts: list[Json] = self._oracle.send({"judge": self.location, "values": values})
        return verdicts

    def convert(self, value: Any) -> Any:
        """Return a JSON value after our decoding and encoding."""
        return self.encode(self._converter.structure(value, self._model_class))

    def encode(self, model: Any) -> Any:
        """Return the JSON value of a model."""
        return orjson.loads(self._converter.encode(model))


@pytest.mark.parametrize(("version", "name"), TYPES)
def test_official_instances_keep_their_meaning(version: str, name: str, judges: dict[str, Oracle]) -> None:
    """Values drawn of the official type's own schema, as drawn and as it dumps them, pass through our model."""
    trial = Trial(version, name, judges[version])
    # Members of a union of results are dumped apart by their keys, so that unknown ones would blur them.
    strategy = Instances(convert_pydantic_schema(name, trial.schema())).of(
        name, unknown_keys=name != "FutureRetrieveResponse"
    )
    values = examples(strategy, MAX_VALUES)
    verdicts = zip(values, trial.judge(values), strict=True)
    accepted = [(value, dumps) for value, dumps in verdicts if "error" not in dumps]
    assert len(accepted) >= min(MIN_ACCEPTED, len(values)), f"the SDK accepts {len(accepted)} of {len(values)} values"
    forms = [form for value, dumps in accepted for form in (value, dumps["wire"], dumps["full"])]
    expected = trial.judge(forms)
    is_rejected = ["error" in verdict for verdict in expected]
    assert any(is_rejected) == ((version, name) in OWN_DUMP_REFUSED)
    pairs = [(form, verdict["full"]) for form, verdict in zip(forms, expected, strict=True) if "error" not in verdict]
    converted = [attempt(trial, form) for form, _ in pairs]
    dumps = trial.judge([value for value, _ in converted])
    results = [
        (form, "" if not error and dumped.get("full") == full else f"is {full}, but {value} {error} dumps as {dumped}")
        for (form, full), (value, error), dumped in zip(pairs, converted, dumps, strict=True)
    ]
    assert_excused(list_excuses(version, name, "theirs"), results)


def assert_excused(excuses: list[Excuse], results: list[tuple[Any, str]]) -> None:
    """Check that only the listed values differ, and that each listed difference still occurs."""
    unused_excuses, unexcused = list(excuses), []
    for value, error in results:
        excuse = next((candidate for candidate in excuses if candidate.when(value)), None)
        if error and excuse is None:
            unexcused.append(f"{value}: {error}")
        elif error and excuse in unused_excuses:
            unused_excuses.remove(excuse)
    assert not unexcused, f"{len(unexcused)} of {len(results)} values, such as {unexcused[0]}"
    assert not unused_excuses, f"nothing differs any more: {unused_excuses[0].reason}"


def attempt(trial: Trial, value: Any) -> tuple[Any, str]:
    """Return a value after our model, and the error if there is one."""
    try:
        return trial.convert(value), ""
    except ValueError as error:
        return None, str(error)


@pytest.mark.parametrize(("version", "name"), TYPES)
def test_official_types_accept_our_instances(version: str, name: str, judges: dict[str, Oracle]) -> None:
    """The official type accepts our encoding of random models, and its dumps mean the same."""
    trial = Trial(version, name, judges[version])
    values = examples(NARROW[version].of(trial.our_name, unknown_keys=False), MAX_VALUES)
    encoded = [trial.convert(value) for value in values]
    forms = ["full"] if (version, name) in OWN_DUMP_REFUSED else ["full", "wire"]
    results = [
        (value, verdict.get("error") or find_difference(trial, AT[version], value, [verdict[form] for form in forms]))
        for value, verdict in zip(encoded, trial.judge(encoded), strict=True)
    ]
    assert_excused(list_excuses(version, name, "ours"), results)


def find_difference(trial: Trial, instances: Instances, value: Any, dumps: list[Any]) -> str:
    """Return the difference in meaning between the official dumps and the value, or an empty string."""
    schema = {"$ref": PREFIX + trial.our_name}
    meaning = instances.meaning(schema, value)
    for dump in dumps:
        converted, error = attempt(trial, dump)
        if error or instances.meaning(schema, converted) != meaning:
            return f"dumped as {dump}, which reads as {converted} {error}"
    return ""


@pytest.mark.parametrize("version", VERSIONS)
def test_every_type_is_covered_or_listed(version: str, judges: dict[str, Oracle]) -> None:
    """Every class of the package is a type of the facts or listed, and every entry of the list is needed."""
    types = FACTS[version]["types"]
    classes = set(judges[version].send({"names": True}))
    assert {name for name, fact in types.items() if fact["kind"] in ("pydantic", "enum")} <= classes
    assert classes - types.keys() == {name for name, (versions, _) in NO_TYPES.items() if version in versions}
    listed = {name for at, name in NOT_COVERED if at == version}
    unnamed = {name for name in types if name not in OUR_NAMES[version]}
    formless = {name for name in types.keys() - unnamed if not Trial(version, name, judges[version]).schema()}
    assert unnamed | formless == listed
    undeclared = {name for name, schema in AT[version].schemas.items() if schema.get("x-undeclared")}
    assert {name for at, name in TYPES if at == version} | undeclared | listed >= OUR_NAMES[version].keys()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", TAGS)
def test_contract_narrows_tags_of_events(version: str, name: str, judges: dict[str, Oracle]) -> None:
    """The SDK accepts other tags than the contract for these types."""
    field = Trial(version, name, judges[version]).schema()["properties"][TAGS[name][0]]
    assert "const" not in field


def test_every_exception_names_covered_type() -> None:
    """Every excuse is for a type and version of the tests."""
    assert {(excuse.version, excuse.name) for excuse in exceptions.EXCUSES} <= set(TYPES)
    assert set(OWN_DUMP_REFUSED) <= set(TYPES)
