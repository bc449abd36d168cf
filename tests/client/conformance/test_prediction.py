"""Predictions for tinkerwire, from what the releases of the official SDK can do on a server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tinkerwire._conformance.areas.client_versions import AREA, FEATURES, id_of
from tinkerwire._conformance.outcome import Outcome, Status
from tinkerwire._conformance.prediction import TINKERWIRE, Prediction, predict
from tinkerwire._conformance.requirement import Feature

REQUIREMENTS = {requirement.id: requirement for requirement in AREA.requirements}
SHORT = "expected 8 prompt_logprobs for SDK 0.25.0, got one value too few"
UNSUPPORTED = "expected a sample for SDK 0.25.0, got the error HTTP 400"
UNNAMED = "expected one of sample_sequence_ids in the response to asample for SDK 0.30.4, got none"


def predict_tinkerwire(
    failures: Mapping[str, Mapping[str, str]], wire: str, features: Mapping[str, Feature] | None = None
) -> Prediction:
    """Return the prediction for tinkerwire if some steps fail, by release and step.

    Args:
        failures: reasons of failures by release and step.
        wire: the wire version of the server.
        features: the features of steps that are not about sampling.
    """

    def outcomes() -> Iterator[Outcome]:
        for version, reasons in failures.items():
            for feature in FEATURES:
                parts = [part for part in reasons.items() if (features or {}).get(part[0], Feature.SAMPLE) is feature]
                yield Outcome(
                    requirement=REQUIREMENTS[id_of(version, feature)],
                    status=Status.FAILED if parts else Status.PASSED,
                    parts=tuple(parts),
                )

    return next(prediction for prediction in predict(outcomes(), wire) if prediction.client == TINKERWIRE)


def test_failure_that_hides_another_one_does_not_count() -> None:
    """A rejected step fails, though newer releases fail earlier for a reason that tinkerwire survives."""
    steps = ("sample", "compute_logprobs", "sample with topk_prompt_logprobs")
    prediction = predict_tinkerwire(
        {
            "0.24.1": {"compute_logprobs": SHORT, "sample with topk_prompt_logprobs": UNSUPPORTED},
            "0.25.0": {"compute_logprobs": SHORT, "sample with topk_prompt_logprobs": UNSUPPORTED},
            "0.30.4": dict.fromkeys(steps, UNNAMED),
        },
        wire="0.25.0",
    )
    broken = prediction.find(Feature.SAMPLE)
    assert broken is not None
    assert broken.steps == ("sample with topk_prompt_logprobs",)
    assert prediction.reasons == (id_of("0.25.0", Feature.SAMPLE),)


def test_failure_of_the_closest_release_is_survived() -> None:
    """A step works if tinkerwire survives the failure of the release of the wire version, whatever older ones do."""
    prediction = predict_tinkerwire({"0.25.0": {"sample": UNSUPPORTED}, "0.30.4": {"sample": UNNAMED}}, wire="0.36.0")
    assert not prediction.breaks(Feature.SAMPLE)


def test_step_that_one_release_can_do_works() -> None:
    """A step works if any release can do it, since tinkerwire speaks every version."""
    prediction = predict_tinkerwire({"0.16.1": {}, "0.25.0": {"sample": UNSUPPORTED}}, wire="0.25.0")
    assert not prediction.breaks(Feature.SAMPLE)


def test_release_that_cannot_train_does_not_show_that_a_trained_model_can_be_loaded() -> None:
    features = {"forward_backward": Feature.TRAIN, "load_state": Feature.SAVE}
    prediction = predict_tinkerwire(
        {"0.24.1": {"load_state": "got HTTP 400"}, "0.38.0": {"forward_backward": "got HTTP 422"}}, "0.24.1", features
    )
    broken = prediction.find(Feature.SAVE)
    assert broken is not None
    assert broken.steps == ("load_state",)
    assert not prediction.breaks(Feature.TRAIN)


def test_releases_that_send_json_do_not_show_that_protobuf_fails() -> None:
    """The releases that send protobuf do not connect, because the server lacks client/config."""
    failures = {"0.16.1": {"forward_backward": "got HTTP 415"}}
    features = {"forward_backward": Feature.TRAIN}
    assert not predict_tinkerwire(failures, "0.38.0", features).breaks(Feature.TRAIN)
    assert predict_tinkerwire(failures, "0.16.1", features).breaks(Feature.TRAIN)
