"""Comparison of a run with the JSON report of an earlier one."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import attrs

from ..outcome import Status
from .run_report import RunReport

_RANKS = {Status.PASSED.value: 2, Status.SKIPPED.value: 1}
"""Other ends of a test, such as failed and blocked, rank below these."""


class Change(NamedTuple):
    """A requirement with another outcome than before."""

    id: str
    before: str
    now: str


@attrs.frozen
class Baseline:
    """Outcomes of an earlier run by id."""

    name: str
    """The file and what it is a report of."""
    statuses: dict[str, str]


@attrs.frozen(kw_only=True)
class Comparison:
    """Changes since an earlier run."""

    baseline: str
    better: tuple[Change, ...]
    worse: tuple[Change, ...]
    new: tuple[str, ...]
    """Ids that the earlier report does not have."""
    gone: tuple[str, ...]
    """Ids of the earlier report that the kit no longer has."""

    def describe(self) -> str:
        """Return the numbers in one line."""
        return (
            f"compared with {self.baseline}: {len(self.better)} better, {len(self.worse)} worse, "
            f"{len(self.new)} new, {len(self.gone)} gone"
        )


def read_baseline(path: Path) -> Baseline:
    """Return the outcomes in the JSON report of an earlier run.

    Raises:
        ValueError: the file is not such a report.
        OSError: the file cannot be read.
    """
    try:
        value: Any = json.loads(path.read_bytes())
        statuses = {item["id"]: item["status"] for item in value["requirements"]}
        name = f"{path.name} ({value['url']}, wire {value['wire']}, {value['started_at']})"
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError(f"{path} is not a report that `tinkerwire conformance --json` wrote") from None
    if not all(isinstance(part, str) for pair in statuses.items() for part in pair):
        raise ValueError(f"{path} is not a report that `tinkerwire conformance --json` wrote")
    return Baseline(name, statuses)


def compare(report: RunReport, baseline: Baseline, known: Collection[str]) -> Comparison:
    """Compare a run with an earlier one; requirements that one of them did not run have no change.

    Args:
        report: the run.
        baseline: the earlier run.
        known: ids of all requirements of the kit, tested in this run or not.
    """
    not_run = Status.NOT_RUN.value
    now = {outcome.requirement.id: outcome.status.value for outcome in report.outcomes}
    changes = [
        Change(identifier, baseline.statuses[identifier], status)
        for identifier, status in now.items()
        if identifier in baseline.statuses and not_run not in (status, baseline.statuses[identifier])
    ]
    return Comparison(
        baseline=baseline.name,
        better=tuple(change for change in changes if _rank(change.now) > _rank(change.before)),
        worse=tuple(change for change in changes if _rank(change.now) < _rank(change.before)),
        new=tuple(identifier for identifier in now if identifier not in baseline.statuses),
        gone=tuple(identifier for identifier in baseline.statuses if identifier not in known),
    )


def _rank(status: str) -> int:
    return _RANKS.get(status, 0)
