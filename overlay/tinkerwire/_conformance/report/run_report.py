"""The report of one run: what was tested, with which outcome, and which clients will work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import attrs

from ..outcome import Outcome, Status
from ..prediction import Prediction
from ..requirement import Breakage, Level

UNDECIDED = (Status.BLOCKED, Status.NOT_RUN, Status.ERROR)
"""Ends of a test that leave open whether the server meets the requirement."""


@attrs.frozen(kw_only=True)
class RunReport:
    """The outcome of all requirements that a run selected, without secrets.

    Example:
        >>> from tinkerwire.conformance import run_conformance
        >>> report = run_conformance("local", only=["FUT-008"])
        >>> report.holds, report.unmet
        (True, [])
    """

    url: str
    """Address of the server."""
    wire: str
    """The wire version that was tested."""
    wire_evidence: tuple[str, ...]
    """Observations from which the version was found out."""
    model: str | None
    """Name of the model that was trained and sampled; None if the server names none."""
    started_at: datetime
    """Start of the run, in UTC."""
    seconds: float
    """Time that the run took."""
    version: str
    """Version of tinkerwire, whose requirements were tested."""
    outcomes: tuple[Outcome, ...]
    """Outcomes in the order of the tests."""
    predictions: tuple[Prediction, ...] | None = None
    """Predictions for clients; None if the run did not test what they depend on."""
    is_interrupted: bool = False
    """True if the user ended the run early."""

    @property
    def unmet(self) -> list[str]:
        """Ids of the musts that do not hold, or of which this is unknown: failed, blocked or not run."""
        open_or_failed = (Status.FAILED, *UNDECIDED)
        return [
            outcome.requirement.id
            for outcome in self.outcomes
            if outcome.requirement.level is Level.MUST and outcome.status in open_or_failed
        ]

    @property
    def holds(self) -> bool:
        """True if something was tested, and all its musts hold."""
        return not self.unmet and any(outcome.status is Status.PASSED for outcome in self.outcomes)

    @property
    def failures(self) -> list[Outcome]:
        """Outcomes of the musts and shoulds that failed, and of tests in which the kit itself failed."""
        return [
            outcome
            for outcome in self.outcomes
            if outcome.status is Status.ERROR
            or (outcome.status is Status.FAILED and outcome.requirement.level is not Level.MAY)
        ]

    @property
    def absent(self) -> list[str]:
        """Ids of the optional requirements that the server does not meet."""
        return [
            outcome.requirement.id
            for outcome in self.outcomes
            if outcome.status is Status.FAILED and outcome.requirement.level is Level.MAY
        ]

    def count(self, area: str | None = None) -> dict[Status, int]:
        """Return the number of outcomes by status, of an area or of all."""
        counts = Counter(
            outcome.status for outcome in self.outcomes if area is None or outcome.requirement.area == area
        )
        return {status: counts[status] for status in Status}

    def score(self) -> tuple[int, int]:
        """Return how many musts and shoulds passed, and how many of them apply."""
        statuses = [
            outcome.status
            for outcome in self.outcomes
            if outcome.requirement.level is not Level.MAY and outcome.status is not Status.SKIPPED
        ]
        return statuses.count(Status.PASSED), len(statuses)

    def areas(self) -> list[str]:
        """Return the names of the areas that were tested, in order."""
        return list(dict.fromkeys(outcome.requirement.area for outcome in self.outcomes))

    def describe_verdict(self) -> str:
        """Return the verdict as a sentence."""
        passed, applicable = self.score()
        musts = sum(
            outcome.requirement.level is Level.MUST and outcome.status is not Status.SKIPPED
            for outcome in self.outcomes
        )
        numbers = f"{passed} of {applicable} musts and shoulds passed"
        interrupted = "; the run was interrupted" if self.is_interrupted else ""
        if self.holds:
            return f"wire {self.wire}: all {musts} musts hold; {numbers}{interrupted}"
        if not self.unmet:
            return f"wire {self.wire}: no requirement was tested{interrupted}"
        failed = sum(outcome.status is Status.FAILED for outcome in self._outcomes_of(self.unmet))
        unknown = len(self.unmet) - failed
        parts = [f"{failed} of {musts} musts {'does' if failed == 1 else 'do'} not hold"] if failed else []
        if unknown:
            parts.append(f"{unknown} {'remains' if unknown == 1 else 'remain'} unknown")
        return f"wire {self.wire}: {', '.join(parts)}; {numbers}{interrupted}"

    def _outcomes_of(self, identifiers: Sequence[str]) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.requirement.id in identifiers]


def describe_breakage(breakage: Breakage) -> str:
    """Return which versions of the official SDK break, and how, as a sentence."""
    if breakage.newest is None:
        versions = f"{breakage.oldest} and later"
    elif breakage.newest == breakage.oldest:
        versions = breakage.oldest
    else:
        versions = f"{breakage.oldest} to {breakage.newest}"
    return f"official SDK {versions} ({breakage.feature.value}): {breakage.effect}"


@attrs.frozen
class ClientEffect:
    """A failure of a client, and the requirements that show it."""

    text: str
    is_seen: bool
    """True if the client's own requests failed; False if the effect shows in some situations only."""
    reasons: tuple[str, ...]


def list_effects(prediction: Prediction) -> list[ClientEffect]:
    """Return what does not work with a client; several requirements with one effect are one entry."""
    groups: dict[tuple[str, bool], list[str]] = {}
    for broken, reason in zip(prediction.broken, prediction.reasons, strict=True):
        groups.setdefault((f"{broken.feature.value}: {broken.words}", broken.is_seen), []).append(reason)
    return [ClientEffect(text, is_seen, tuple(dict.fromkeys(ids))) for (text, is_seen), ids in groups.items()]


def group_reasons(outcomes: Sequence[Outcome], status: Status) -> dict[str, list[str]]:
    """Return the ids of the outcomes with a status, by reason."""
    groups: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.status is status:
            groups.setdefault(outcome.reason, []).append(outcome.requirement.id)
    return groups


def join_ids(identifiers: Sequence[str]) -> str:
    """Return ids as a list, in which ``FUT-001 to FUT-004`` stands for consecutive numbers."""
    runs: list[list[str]] = []
    for identifier in identifiers:
        if runs and _follows(runs[-1][-1], identifier):
            runs[-1].append(identifier)
        else:
            runs.append([identifier])
    parts = [[f"{run[0]} to {run[-1]}"] if len(run) > 2 else run for run in runs]
    return ", ".join(part for group in parts for part in group)


def _follows(first: str, second: str) -> bool:
    (prefix, _, number), (other_prefix, _, other) = first.rpartition("-"), second.rpartition("-")
    return prefix == other_prefix and number.isdigit() and other.isdigit() and int(other) == int(number) + 1
