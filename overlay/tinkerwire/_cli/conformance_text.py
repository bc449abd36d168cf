"""The report of ``tinkerwire conformance`` on a terminal: progress while it runs, then tables and failures."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import click

from .._conformance.outcome import Outcome, Status
from .._conformance.report.baseline import Comparison
from .._conformance.report.failure_text import list_details
from .._conformance.report.run_report import RunReport, group_reasons, join_ids, list_effects
from .._conformance.requirement import Level, Requirement
from .._conformance.run import RunObserver
from .._conformance.subject.server import Server
from .errors import escape
from .framework import SharedOptions
from .output import Table, get_width, print_line, print_table, report, uses_colors

LEVEL_WIDTH = 6
NAME_WIDTH = 10
COLORS = {Status.PASSED: "green", Status.FAILED: "red", Status.ERROR: "red", Status.BLOCKED: "yellow"}


class RunProgress(RunObserver):
    """A line of progress on standard error, if it is a terminal.

    Args:
        options: with JSON output nothing is shown.
    """

    def __init__(self, options: SharedOptions) -> None:
        self._options = options
        self._is_shown = sys.stderr.isatty() and not options.as_json
        self._total = 0
        self._done = 0
        self._failed = 0
        self._started = time.monotonic()
        self._line_length = 0

    def start(self, server: Server, model: str | None, requirements: Sequence[Requirement]) -> None:
        """Show the server."""
        self._total = len(requirements)
        self._started = time.monotonic()
        report(self._options, f"wire {server.wire}, model {model or 'unknown'}, {self._total} requirements")
        for observation in server.evidence:
            report(self._options, f"  {observation}")

    def begin(self, requirement: Requirement) -> None:
        """Show the requirement that is tested, and the time left."""
        share = self._done / self._total if self._total else 0.0
        elapsed = time.monotonic() - self._started
        left = f", about {format_duration(elapsed / share - elapsed)} left" if self._done else ""
        failed = f", {self._failed} failed" if self._failed else ""
        self._show(f"{share:4.0%} {requirement.id}{failed}{left}")

    def end(self, outcome: Outcome) -> None:
        """Count the outcome."""
        self._done += 1
        self._failed += outcome.status is Status.FAILED and outcome.requirement.level is not Level.MAY

    def clean_up(self) -> None:
        """Show that the run is over."""
        self._show("deleting what the tests made")

    def close(self) -> None:
        """Remove the line."""
        self._show("")

    def _show(self, text: str) -> None:
        if not self._is_shown or (not text and not self._line_length):
            return
        text = escape(text)[: get_width(sys.stderr) - 1]
        sys.stderr.write("\r" + text.ljust(self._line_length) + ("\r" if not text else ""))
        sys.stderr.flush()
        self._line_length = len(text)


def format_duration(seconds: float) -> str:
    """Return a duration as seconds, or as minutes and seconds."""
    whole = max(0, round(seconds))
    return f"{whole} s" if whole < 60 else f"{whole // 60}:{whole % 60:02} min"


def print_report(result: RunReport, comparison: Comparison | None) -> None:
    """Print the report: counts by area, failures, what was not tested, predictions, and the verdict."""
    print_table(_areas(result))
    for outcome in result.failures:
        _print_failure(outcome)
    if result.absent:
        print_line("")
        print_line(f"optional and not met: {join_ids(result.absent)}; --json and --html have the details")
    for status, text in (
        (Status.BLOCKED, "blocked"),
        (Status.NOT_RUN, "not run"),
        (Status.SKIPPED, "skipped"),
    ):
        groups = group_reasons(result.outcomes, status)
        if groups:
            print_line("")
        for reason, identifiers in groups.items():
            print_line(f"{text}: {join_ids(identifiers)}: {reason}")
    if result.predictions is not None:
        print_line("")
        print_table(_predictions(result))
    if comparison is not None:
        _print_comparison(comparison)
    print_line("")
    click.echo(_style(escape(result.describe_verdict()), "green" if result.holds else "red", bold=True))


def _areas(result: RunReport) -> Table:
    shown = [status for status, count in result.count().items() if count or status in (Status.PASSED, Status.FAILED)]
    rows = []
    for area in [*result.areas(), None]:
        counts = result.count(area)
        rows.append(("all" if area is None else area, *(str(counts[status] or "-").rjust(6) for status in shown)))
    return Table(("Area", *(status.value for status in shown)), rows)


def _print_failure(outcome: Outcome) -> None:
    requirement = outcome.requirement
    print_line("")
    status = _style(outcome.status.value, COLORS[outcome.status])
    click.echo(
        f"{_style(requirement.id, bold=True)} {requirement.level.value} {status}: {escape(requirement.sentence)}"
    )
    for name, text in list_details(outcome):
        print_line(f"  {name.ljust(NAME_WIDTH)}{text}")


def _predictions(result: RunReport) -> Table:
    rows = []
    for prediction in result.predictions or ():
        effects = list_effects(prediction)
        seen = [f"{effect.text} ({join_ids(effect.reasons)})" for effect in effects if effect.is_seen]
        risks = [reason for effect in effects if not effect.is_seen for reason in effect.reasons]
        client = f"{prediction.client} on SDK {prediction.runs_on}" if prediction.runs_on else prediction.client
        rows.append((client, prediction.verdict.value, "; ".join(seen), join_ids(risks)))
    return Table(("Client", "Prediction", "Does not work", "In some situations"), rows)


def _print_comparison(comparison: Comparison) -> None:
    print_line("")
    print_line(comparison.describe())
    for name, changes, color in (("worse", comparison.worse, "red"), ("better", comparison.better, "green")):
        for change in changes:
            click.echo(f"  {_style(name.ljust(7), color)}{change.id}: {change.before} -> {change.now}")
    for name, identifiers in (("new", comparison.new), ("gone", comparison.gone)):
        if identifiers:
            print_line(f"  {name.ljust(7)}{join_ids(identifiers)}")


def _style(text: str, color: str | None = None, *, bold: bool = False) -> str:
    return click.style(text, fg=color, bold=bold) if uses_colors(sys.stdout) else text
