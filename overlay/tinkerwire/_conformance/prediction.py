"""Predictions: which clients work with a server, from the outcomes of its requirements."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence

import attrs

from tinkerwire_base.conversion.versioning import parse_version

from .._wire.dialect import BATCH_OPERATIONS, has_json_batches
from .areas.client_versions import FEATURES, VERSIONS, id_of
from .official_sdk.official_client import JSON_RESULT
from .official_sdk.sampling_steps import SHORT_PROMPT_LOGPROBS
from .official_sdk.steps_by_feature import STEPS
from .outcome import Outcome, Status
from .requirement import Feature, Level

TINKERWIRE = "tinkerwire"
SURVIVED_BY_TINKERWIRE = (
    SHORT_PROMPT_LOGPROBS,
    JSON_RESULT,
    "metrics: null",
    "sample_sequence_ids",
    "a successful weights_info",
)
"""Parts of the reasons for failures that tinkerwire survives."""
NEEDED_BY_COOKBOOK = frozenset(
    {
        *(step.name for step in STEPS[Feature.TRAIN]),
        *("create_sampling_client", "sample", "compute_logprobs", "get_tokenizer and get_base_model"),
        *("save_state", "save_weights_for_sampler", "create_sampling_client with a path"),
        *("save_weights_and_get_sampling_client", "create_training_client_from_state"),
        *("get_training_run", "delete_checkpoint"),
    }
)
"""Steps of programs of the cookbook."""


class Verdict(enum.Enum):
    """Degree to which a client works."""

    WORKS = "works"
    IN_PART = "works in part"
    DOES_NOT_CONNECT = "does not connect"
    UNKNOWN = "unknown"
    """The tests that show it were not run."""


@attrs.frozen
class BrokenFeature:
    """A feature of a client that a server breaks."""

    feature: Feature
    words: str
    """A few words about the failure."""
    is_seen: bool
    """True if the client's own requests failed; False if the effect follows from another requirement, and shows in
    some situations only."""
    steps: tuple[str, ...] = ()
    """Names of the steps of ``steps_by_feature`` that failed."""


@attrs.frozen
class Prediction:
    """Degree to which a client works with a server, with reasons."""

    client: str
    """Name and version of the client."""
    verdict: Verdict
    broken: tuple[BrokenFeature, ...] = ()
    reasons: tuple[str, ...] = ()
    """Ids of the failed requirements behind it."""
    runs_on: str = ""
    """Release of the official SDK with which the client works best, for clients on top of it."""

    def breaks(self, feature: Feature) -> bool:
        """Check whether the client's own requests for a feature failed."""
        return self.find(feature) is not None

    def find(self, feature: Feature) -> BrokenFeature | None:
        """Return a feature if the client's own requests for it failed."""
        return next((broken for broken in self.broken if broken.feature is feature and broken.is_seen), None)

    def describe(self) -> str:
        """Return verdict and broken features in one line."""
        details = "; ".join(f"{broken.feature.value}: {broken.words}" for broken in self.broken)
        is_of_use = self.verdict in (Verdict.WORKS, Verdict.IN_PART)
        base = f", best with SDK {self.runs_on}" if self.runs_on and is_of_use else ""
        return f"{self.verdict.value}{base}{f' ({details})' if details else ''}"


@attrs.frozen
class Cookbook:
    """Releases of the cookbook, which runs on the official SDK."""

    name: str
    oldest: str
    """The first version of the SDK that it accepts."""
    newest: str | None = None

    def accepts(self, version: str) -> bool:
        """Check whether it runs on a version of the SDK."""
        parsed = parse_version(version)
        return parse_version(self.oldest) <= parsed and (self.newest is None or parsed <= parse_version(self.newest))


COOKBOOKS = (Cookbook("cookbook 0.5", "0.22.3"), Cookbook("cookbook 0.6", "0.38.0"))


def predict(outcomes: Iterable[Outcome], wire: str) -> list[Prediction]:
    """Return what to expect of each client.

    Args:
        outcomes: outcomes of a run, of all areas or of ``client_versions`` only.
        wire: the wire version that was tested.
    """
    by_id = {outcome.requirement.id: outcome for outcome in outcomes}
    sdks = [_predict_sdk(by_id, version) for version in sorted(VERSIONS, key=parse_version)]
    cookbooks = [_predict_cookbook(by_id, cookbook) for cookbook in COOKBOOKS]
    return [*sdks, _predict_tinkerwire(by_id, wire), *cookbooks]


def _predict_sdk(by_id: Mapping[str, Outcome], version: str) -> Prediction:
    client = f"official SDK {version}"
    found = {feature: by_id.get(id_of(version, feature)) for feature in FEATURES}
    connection = found[Feature.CONNECT]
    if connection is None or connection.status not in (Status.PASSED, Status.FAILED):
        return Prediction(client, Verdict.UNKNOWN)
    if connection.status is Status.FAILED:
        words = cut_text(connection.received)
        return Prediction(
            client,
            Verdict.DOES_NOT_CONNECT,
            (BrokenFeature(Feature.CONNECT, words, is_seen=True),),
            (connection.requirement.id,),
        )
    broken, reasons = [], []
    for feature, outcome in found.items():
        if outcome is not None and outcome.status is Status.FAILED:
            steps = tuple(name for name, _ in outcome.parts)
            words = _list_steps(steps) if steps else cut_text(outcome.received)
            broken.append(BrokenFeature(feature, words, is_seen=True, steps=steps))
            reasons.append(outcome.requirement.id)
    for identifier, risk in _find_risks(by_id, version):
        broken.append(risk)
        reasons.append(identifier)
    return Prediction(client, Verdict.IN_PART if broken else Verdict.WORKS, tuple(broken), tuple(reasons))


def _find_risks(by_id: Mapping[str, Outcome], version: str) -> list[tuple[str, BrokenFeature]]:
    return [
        (identifier, BrokenFeature(breakage.feature, breakage.effect, is_seen=False))
        for identifier, outcome in by_id.items()
        if outcome.status is Status.FAILED and outcome.requirement.level is not Level.MAY
        for breakage in outcome.requirement.breaks
        if breakage.covers(version)
    ]


def _list_steps(names: Iterable[str]) -> str:
    return f"no {', '.join(names)}"


def _predict_cookbook(by_id: Mapping[str, Outcome], cookbook: Cookbook) -> Prediction:
    """Return the prediction on the release of the SDK with which the fewest things that it needs break."""
    candidates = []
    for version in sorted(filter(cookbook.accepts, VERSIONS), key=parse_version, reverse=True):
        sdk = _predict_sdk(by_id, version)
        if sdk.verdict in (Verdict.UNKNOWN, Verdict.DOES_NOT_CONNECT):
            rank = 1 if sdk.verdict is Verdict.DOES_NOT_CONNECT else 2
            candidates.append((rank, 0, version, attrs.evolve(sdk, client=cookbook.name, runs_on=version)))
            continue
        broken: list[BrokenFeature] = []
        reasons: list[str] = []
        for feature, reason in zip(sdk.broken, sdk.reasons, strict=True):
            steps = tuple(step for step in feature.steps if step in NEEDED_BY_COOKBOOK)
            if feature.steps and not steps:
                continue
            broken.append(attrs.evolve(feature, words=_list_steps(steps), steps=steps) if steps else feature)
            reasons.append(reason)
        verdict = Verdict.IN_PART if broken else Verdict.WORKS
        prediction = Prediction(cookbook.name, verdict, tuple(broken), tuple(reasons), version)
        candidates.append((0, len(broken), version, prediction))
    best = min(candidates, key=lambda candidate: candidate[:2])
    return best[3]


def _predict_tinkerwire(by_id: Mapping[str, Outcome], wire: str) -> Prediction:
    """Return the prediction for tinkerwire, which speaks every version: a step fails if no release can do it."""
    known = [version for version in VERSIONS if id_of(version, Feature.CONNECT) in by_id]
    connected = [version for version in known if by_id[id_of(version, Feature.CONNECT)].status is Status.PASSED]
    if not known:
        return Prediction(TINKERWIRE, Verdict.UNKNOWN)
    if not connected:
        reason = id_of(known[0], Feature.CONNECT)
        words = cut_text(by_id[reason].received)
        broken = BrokenFeature(Feature.CONNECT, words, is_seen=True)
        return Prediction(TINKERWIRE, Verdict.DOES_NOT_CONNECT, (broken,), (reason,))
    features: list[BrokenFeature] = []
    reasons: list[str] = []
    for feature in FEATURES[1:]:
        failed, causes = _find_common_failures(by_id, feature, connected, wire)
        if failed:
            features.append(BrokenFeature(feature, _list_steps(failed), is_seen=True, steps=tuple(failed)))
            reasons.append(causes)
    verdict = Verdict.IN_PART if features else Verdict.WORKS
    return Prediction(TINKERWIRE, verdict, tuple(features), tuple(reasons))


def _find_common_failures(
    by_id: Mapping[str, Outcome], feature: Feature, versions: Sequence[str], wire: str
) -> tuple[list[str], str]:
    """Return the steps that no release can do, and the requirement that shows it.

    The release closest to the wire version decides whether tinkerwire survives its failure: what another one cannot
    read may hide the failure behind it. Steps that are newer than the wire version are left out: the server does not
    claim them. Releases that cannot train are left out, too, where others can: a server may treat a model differently
    once it is trained.
    """
    trained = [version for version in versions if _passes(by_id, Feature.TRAIN, version)]
    if feature is not Feature.TRAIN and trained:
        versions = trained
    names: list[str] = []
    cause = ""
    for step in STEPS[feature]:
        if not step.applies_to(wire):
            continue
        able = [version for version in versions if step.applies_to(version)]
        failures = {version: _reason(by_id, feature, version, step.name) for version in able}
        if not able or not all(failures.values()):
            continue
        closest = _closest_version(able, wire)
        if step.name in BATCH_OPERATIONS and has_json_batches(closest) and not has_json_batches(wire):
            # No release that sends batches as protobuf connects, and tinkerwire sends them.
            continue
        if not any(text in failures[closest] for text in SURVIVED_BY_TINKERWIRE):
            names.append(step.name)
            cause = cause or id_of(closest, feature)
    return names, cause


def _passes(by_id: Mapping[str, Outcome], feature: Feature, version: str) -> bool:
    outcome = by_id.get(id_of(version, feature))
    return outcome is not None and outcome.status is Status.PASSED


def _closest_version(versions: Sequence[str], wire: str) -> str:
    """Return the newest of some versions that is not newer than the wire version; the oldest if all are."""
    older = [version for version in versions if parse_version(version) <= parse_version(wire)]
    return max(older, key=parse_version) if older else min(versions, key=parse_version)


def _reason(by_id: Mapping[str, Outcome], feature: Feature, version: str, step: str) -> str:
    """Return why a step of a release failed; nothing if it did not."""
    outcome = by_id.get(id_of(version, feature))
    if outcome is None or outcome.status is not Status.FAILED:
        return ""
    return next((reason for name, reason in outcome.parts if name == step), "")


def cut_text(text: str, length: int = 80) -> str:
    """Return the start of a text."""
    return text if len(text) <= length else f"{text[:length].rstrip()} ..."
