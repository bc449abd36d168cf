"""A whole run against one server: it opens the server, tests requirements, cleans up and makes the report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timezone

import attrs

from ..version import __version__
from .catalogue import select_requirements, with_needs
from .discovery.discover import open_server
from .interruption import Interrupted, Interruption
from .outcome import Outcome, Status
from .prediction import Prediction, Verdict, predict
from .report.redaction import ReportRedaction
from .report.run_report import RunReport
from .requirement import Level, Requirement
from .runner import run_requirements
from .subject.server import Server
from .violation import Blocked, Violation

INTERRUPTED = "the run was interrupted"


@attrs.frozen(kw_only=True)
class RunSettings:
    """Settings of a run: the server, the requirements to test, and limits."""

    url: str
    api_key: str | None = attrs.field(default=None, repr=False)
    wire: str | None = None
    model: str | None = None
    only: tuple[str, ...] = ()
    level: Level = Level.MAY
    keep_going: bool = False
    max_s: float = float("inf")

    def select(self) -> list[Requirement]:
        """Return the requirements to test, and those that they need; raise ValueError for an unknown name."""
        return with_needs(select_requirements(self.only, self.level))


class RunObserver:
    """Gets notified about the course of a run; the methods of this class do nothing."""

    def start(self, server: Server, model: str | None, requirements: Sequence[Requirement]) -> None:
        """Take the server that was opened, and what will be tested."""

    def begin(self, requirement: Requirement) -> None:
        """Take the requirement that is tested next."""

    def end(self, outcome: Outcome) -> None:
        """Take the outcome of a test."""

    def clean_up(self) -> None:
        """Get notified that the tests are over, and that what they made is deleted."""


async def perform_run(settings: RunSettings, observer: RunObserver, interruption: Interruption) -> RunReport:
    """Test a server and return the report; what the tests made on the server is deleted.

    Args:
        settings: what to test.
        observer: gets notified about the course of the run.
        interruption: ends the tests, and the report has the rest; a second one ends the deletion, except for that of
            sessions, and a third one that, too.

    Raises:
        Interrupted: the run was interrupted before its tests began.
        ValueError: a setting is invalid, or the wire version cannot be found out.
        ServerLost: the server does not accept connections.
        Violation: the server asks for a token and does not issue one.
    """
    requirements = settings.select()
    started_at, started = datetime.now(timezone.utc), time.monotonic()
    opening = open_server(settings.url, settings.api_key, settings.wire, settings.model)
    server = await interruption.run(opening)
    if server is None:
        raise Interrupted
    outcomes: list[Outcome] = []
    model = None
    try:
        if not interruption.count:
            model = await interruption.run(_test(settings, server, requirements, observer, outcomes))
        is_interrupted = interruption.count > 0
    finally:
        observer.clean_up()
        await interruption.run(server.close())
    rest = requirements[len(outcomes) :]
    outcomes += [Outcome(requirement=item, status=Status.NOT_RUN, reason=INTERRUPTED) for item in rest]
    return make_report(
        settings,
        server,
        outcomes,
        model=model,
        started_at=started_at,
        seconds=time.monotonic() - started,
        is_interrupted=is_interrupted,
    )


async def find_model(server: Server) -> str | None:
    """Return the name of the model under test; None if the server names none."""
    with suppress(Violation, Blocked):
        return await server.base_model()
    return None


def make_report(
    settings: RunSettings,
    server: Server,
    outcomes: Sequence[Outcome],
    *,
    model: str | None,
    started_at: datetime,
    seconds: float,
    is_interrupted: bool,
) -> RunReport:
    """Return the report of outcomes, without secrets."""
    redaction = ReportRedaction(server.client.secrets)
    redacted = tuple(redaction.redact_outcome(outcome) for outcome in outcomes)
    return RunReport(
        url=settings.url,
        wire=server.wire,
        wire_evidence=server.evidence,
        model=None if model is None else redaction.redact_text(model),
        started_at=started_at,
        seconds=seconds,
        version=__version__,
        outcomes=redacted,
        predictions=_predict(redacted, server.wire),
        is_interrupted=is_interrupted,
    )


def _predict(outcomes: Sequence[Outcome], wire: str) -> tuple[Prediction, ...] | None:
    """Return the predictions for clients; None if nothing was tested that they depend on."""
    predictions = tuple(predict(outcomes, wire))
    return predictions if any(item.verdict is not Verdict.UNKNOWN for item in predictions) else None


async def _test(
    settings: RunSettings,
    server: Server,
    requirements: Sequence[Requirement],
    observer: RunObserver,
    outcomes: list[Outcome],
) -> str | None:
    """Test requirements, add their outcomes to a list as they come, and return the name of the model under test."""

    def end(outcome: Outcome) -> None:
        outcomes.append(outcome)
        observer.end(outcome)

    model = await find_model(server)
    observer.start(server, model, requirements)
    await run_requirements(
        server,
        requirements,
        max_s=settings.max_s,
        keep_going=settings.keep_going,
        on_begin=observer.begin,
        on_outcome=end,
    )
    return model
