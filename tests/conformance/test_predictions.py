"""Tests of the predictions and of the requirements behind them, on embedded servers with and without quirks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from support.embedded import embedded_http_server
from tinkerwire._conformance.areas.client_versions import AREA, FEATURES, VERSIONS, id_of
from tinkerwire._conformance.client.wire_client import WireClient
from tinkerwire._conformance.outcome import Outcome, Status
from tinkerwire._conformance.prediction import Prediction, Verdict, predict
from tinkerwire._conformance.requirement import Area, Breakage, Feature, Requirement
from tinkerwire._conformance.runner import run_requirements
from tinkerwire._conformance.subject.server import Server
from tinkerwire._wire.dialect import Dialect

REQUIREMENTS = {requirement.id: requirement for requirement in AREA.requirements}
KEY = "tml-test"


def _run(wire: str, quirks: str, versions: Sequence[str]) -> list[Outcome]:
    """Return the outcomes of the requirements on some releases."""

    async def run(url: str) -> list[Outcome]:
        server = Server(WireClient(url, KEY, Dialect.for_version(wire)), KEY, "tinkerwire/byte-nano")
        chosen = [REQUIREMENTS[id_of(version, feature)] for version in versions for feature in FEATURES]
        outcomes = await run_requirements(server, chosen)
        await server.close()
        return outcomes

    options = ["--wire", wire, "--seed", "1", *(["--quirks", quirks] if quirks else [])]
    with embedded_http_server(*options) as url:
        return asyncio.run(run(url))


def _find(predictions: Sequence[Prediction], client: str) -> Prediction:
    return next(prediction for prediction in predictions if prediction.client == client)


def _outcome(requirement: Requirement, status: Status, parts: Sequence[tuple[str, str]] = ()) -> Outcome:
    return Outcome(requirement=requirement, status=status, received="what came", parts=tuple(parts))


def _all(status: Status = Status.PASSED) -> dict[str, Outcome]:
    return {identifier: _outcome(requirement, status) for identifier, requirement in REQUIREMENTS.items()}


def test_ids_never_change() -> None:
    """A release keeps its ids: new ones are added at the end of the table."""
    expected = {"0.3.0": "VER-101", "0.16.1": "VER-161", "0.38.0": "VER-231"}
    assert {version: id_of(version, Feature.CONNECT) for version in expected} == expected
    assert id_of("0.38.0", Feature.MANAGE) == "VER-235"
    assert len(REQUIREMENTS) == len(VERSIONS) * len(FEATURES)


@pytest.mark.parametrize("version", VERSIONS)
def test_release_works_on_a_server_of_its_version(version: str) -> None:
    """The embedded server passes all requirements on the release whose wire version it speaks."""
    outcomes = _run(version, "", [version])
    assert [outcome.received for outcome in outcomes if outcome.status is not Status.PASSED] == []


@pytest.mark.parametrize(
    ("wire", "quirks", "version", "feature", "steps"),
    [
        ("0.38.0", "missing=client_config", "0.38.0", Feature.CONNECT, ()),
        ("0.38.0", "missing=client_dynamic_config,missing_status=405", "0.38.0", Feature.CONNECT, ()),
        ("0.4.1", "", "0.16.1", Feature.CONNECT, ()),
        ("0.38.0", "batches=protobuf", "0.16.1", Feature.TRAIN, ("forward", "forward_backward")),
        ("0.24.1", "batches=json", "0.38.0", Feature.TRAIN, ("create_lora_training_client",)),
        ("0.16.1", "metrics=null", "0.16.1", Feature.TRAIN, ("forward", "forward_backward")),
        ("0.24.1", "results=json", "0.25.0", Feature.TRAIN, ("forward", "forward_backward")),
        ("0.16.1", "prompt_logprobs=short", "0.16.1", Feature.SAMPLE, ("compute_logprobs",)),
        ("0.25.0", "topk=ignored", "0.25.0", Feature.SAMPLE, ("sample with topk_prompt_logprobs",)),
        ("0.16.1", "load_first", "0.16.1", Feature.SAVE, ("load_state",)),
        ("0.16.1", "failure=500", "0.16.1", Feature.SAVE, ("load_state of an unknown path",)),
        ("0.16.1", "missing=publish_checkpoint", "0.16.1", Feature.MANAGE, ("publish_checkpoint",)),
    ],
)
def test_quirk_breaks_the_feature(wire: str, quirks: str, version: str, feature: Feature, steps: Sequence[str]) -> None:
    """A quirk, or another wire version, breaks exactly the steps that it concerns."""
    prediction = _find(predict(_run(wire, quirks, [version]), wire), f"official SDK {version}")
    broken = prediction.find(feature)
    assert broken is not None
    assert broken.steps == tuple(steps)
    assert id_of(version, feature) in prediction.reasons


def test_survived_quirks_do_not_break_tinkerwire() -> None:
    """Our client works where every release fails in a way that tinkerwire survives."""
    predictions = predict(_run("0.38.0", "results=json,prompt_logprobs=short", ["0.36.0", "0.38.0"]), "0.38.0")
    assert _find(predictions, "official SDK 0.38.0").verdict is Verdict.IN_PART
    assert _find(predictions, "tinkerwire").verdict is Verdict.WORKS


def test_every_client_has_a_prediction() -> None:
    """All releases, tinkerwire and the cookbooks work if everything passed."""
    predictions = predict(_all().values(), "0.38.0")
    assert {prediction.verdict for prediction in predictions} == {Verdict.WORKS}
    clients = [prediction.client for prediction in predictions]
    assert clients == [*(f"official SDK {v}" for v in VERSIONS), "tinkerwire", "cookbook 0.5", "cookbook 0.6"]


def test_requirements_that_were_not_run_predict_nothing() -> None:
    """Without outcomes every verdict is unknown."""
    assert {prediction.verdict for prediction in predict([], "0.38.0")} == {Verdict.UNKNOWN}


def test_cookbook_takes_the_release_that_works_best() -> None:
    """A cookbook for several releases works if one of them works, and needs some of the steps only."""
    outcomes = _all()
    identifier = id_of("0.38.0", Feature.CONNECT)
    outcomes[identifier] = _outcome(REQUIREMENTS[identifier], Status.FAILED)
    for version in ("0.22.7", "0.24.1", "0.25.0", "0.30.4", "0.36.0"):
        identifier = id_of(version, Feature.MANAGE)
        parts = [("list_sessions", "HTTP 404")]
        outcomes[identifier] = _outcome(REQUIREMENTS[identifier], Status.FAILED, parts)
    predictions = predict(outcomes.values(), "0.38.0")
    assert _find(predictions, "cookbook 0.6").verdict is Verdict.DOES_NOT_CONNECT
    older = _find(predictions, "cookbook 0.5")
    assert (older.verdict, older.runs_on) == (Verdict.WORKS, "0.36.0")
    assert _find(predictions, "official SDK 0.36.0").verdict is Verdict.IN_PART


def test_failed_requirement_of_another_area_is_a_risk() -> None:
    """A failed requirement with a breakage affects the releases that it covers, without a failed request of theirs."""
    area = Area("TST", "test", "Test")

    async def test(server: Server) -> None:
        """The server does something."""

    breakage = Breakage("0.18.2", "0.25.0", Feature.TRAIN, "loses a result")
    area.must(1, contract="forward_backward", remedy="Do it.", breaks=[breakage])(test)
    outcomes = [*_all().values(), _outcome(area.requirements[0], Status.FAILED)]
    predictions = predict(outcomes, "0.38.0")
    affected = _find(predictions, "official SDK 0.24.1")
    assert affected.verdict is Verdict.IN_PART
    assert affected.reasons == ("TST-001",)
    assert not affected.breaks(Feature.TRAIN)
    assert "loses a result" in affected.describe()
    assert _find(predictions, "official SDK 0.38.0").verdict is Verdict.WORKS
