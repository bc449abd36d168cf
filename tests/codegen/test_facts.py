"""The contract says of each wire version what the official SDK of that version says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tinkerwire_base.projection import project
from tinkerwire_codegen.bundle import load
from tinkerwire_codegen.facts import canonical, compare

ROOT = Path(__file__).parents[2]
VERSIONS = ("0.4.1", "0.6.3", "0.16.1")
CONTRACT = load(ROOT / "schema")

ONE_VALUE_EACH = "The SDK types the kind of an event as any EventType; each kind sends its own value only."
RESULT_OF_FUTURE = "The SDK's union forgets it, its table of futures has it."
REASONS = {
    "member of FutureRetrieveResponse: contract 'SampleResponse', facts None": RESULT_OF_FUTURE,
    "member of FutureRetrieveResponse: contract 'SaveWeightsForSamplerResponseInternal', facts None": (
        RESULT_OF_FUTURE
    ),
    "response of GET /api/v1/training_runs/{}/checkpoints/{}/archive: contract 'null', facts 'APIResponse'": (
        "The SDK reads the headers of the raw response; the contract has them on the 302."
    ),
    "discriminator of TelemetryEvent: contract 'event', facts None": (
        "The SDK only writes events; who reads them tells them apart by this field."
    ),
    "type of GenericEvent.event: contract '\"GENERIC_EVENT\"', facts 'EventType'": ONE_VALUE_EACH,
    "type of SessionEndEvent.event: contract '\"SESSION_END\"', facts 'EventType'": ONE_VALUE_EACH,
    "type of SessionStartEvent.event: contract '\"SESSION_START\"', facts 'EventType'": ONE_VALUE_EACH,
    "type of UnhandledExceptionEvent.event: contract '\"UNHANDLED_EXCEPTION\"', facts 'EventType'": (ONE_VALUE_EACH),
}
"""Where the contract differs on purpose, and why; the same in all three versions."""


def facts_of(version: str) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((ROOT / "tests" / "facts" / f"{version}.json").read_text())
    return facts


@pytest.mark.parametrize("version", VERSIONS)
def test_contract_differs_from_the_facts_for_given_reasons_only(version: str) -> None:
    """Nothing differs that is not in REASONS, and nothing is in REASONS that no longer differs."""
    found = {str(difference) for difference in compare(project(CONTRACT, version), facts_of(version))}
    assert found == set(REASONS)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda s: s.pop("Cursor"), "type of types: contract None, facts 'Cursor'"),
        (
            lambda s: s["Cursor"].update(additionalProperties=False),
            "strictness of Cursor: contract True, facts False",
        ),
        (
            lambda s: s["LoraConfig"]["required"].clear(),
            "required of LoraConfig.rank: contract False, facts True",
        ),
        (
            lambda s: s["AdamParams"]["properties"]["beta2"].update(default=0.999),
            "default of AdamParams.beta2: contract 0.999, facts 0.95",
        ),
        (
            lambda s: s["OptimStepResponse"]["properties"].update(success={"type": "boolean"}),
            "field of OptimStepResponse: contract 'success', facts None",
        ),
        (
            lambda s: s["SaveWeightsRequest"]["properties"].pop("path"),
            "field of SaveWeightsRequest: contract None, facts 'path'",
        ),
        (lambda s: s["StopReason"]["enum"].append("eos"), "value of StopReason: contract 'eos', facts None"),
        (
            lambda s: s["ModelInputChunk"]["anyOf"].pop(),
            "member of ModelInputChunk: contract None, facts 'ImageChunk'",
        ),
        (
            lambda s: s["SampleRequest"]["properties"]["prompt_logprobs"].update(type="boolean"),
            "type of SampleRequest.prompt_logprobs: contract 'bool', facts 'bool | null'",
        ),
        (
            lambda s: s["QueueState"]["enum"].append("asleep"),
            "type of TryAgainResponse.queue_state: contract "
            '\'"active" | "asleep" | "paused_capacity" | "paused_rate_limit"\', '
            'facts \'"active" | "paused_capacity" | "paused_rate_limit"\'',
        ),
    ],
)
def test_a_wrong_schema_is_found(change: Any, expected: str) -> None:
    """Each kind of fault in a schema shows as a difference that names the place."""
    document = project(CONTRACT, "0.16.1")
    change(document["components"]["schemas"])
    assert expected in map(str, compare(document, facts_of("0.16.1")))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            lambda p: p.pop("/api/v1/asample"),
            "endpoint of endpoints: contract None, facts 'POST /api/v1/asample'",
        ),
        (
            lambda p: p["/api/v1/checkpoints"]["get"]["parameters"].pop(),
            "query of GET /api/v1/checkpoints: contract None, facts 'offset'",
        ),
        (
            lambda p: p["/api/v1/checkpoints"]["get"]["parameters"][0]["schema"].update(default=20),
            "default of GET /api/v1/checkpoints?limit: contract 20, facts 100",
        ),
        (
            lambda p: p["/api/v1/get_info"]["post"].pop("requestBody"),
            "request of POST /api/v1/get_info: contract None, facts 'GetInfoRequest'",
        ),
        (
            lambda p: p["/api/v1/get_info"]["post"]["responses"].pop("200"),
            "response of POST /api/v1/get_info: contract 'null', facts 'GetInfoResponse'",
        ),
        (
            lambda p: p["/api/v1/weights_info"]["post"].pop("requestBody"),
            "request of POST /api/v1/weights_info: contract {}, facts {'tinker_path': 'str'}",
        ),
    ],
)
def test_a_wrong_endpoint_is_found(change: Any, expected: str) -> None:
    """Each kind of fault in an endpoint shows as a difference that names the place."""
    document = project(CONTRACT, "0.16.1")
    change(document["paths"])
    assert expected in map(str, compare(document, facts_of("0.16.1")))


def test_union_order_does_not_count() -> None:
    """Types are compared with the members of every union in one order, also inside lists and quotes."""
    assert canonical("null | list[str | int]") == canonical("list[int | str] | null")
    assert canonical('"b | a" | "a"') == '"a" | "b | a"'
    assert canonical("map[str, tuple[int, float]] | null") == "map[str, tuple[int, float]] | null"
    assert canonical("tuple[int, float]") != canonical("tuple[float, int]")
