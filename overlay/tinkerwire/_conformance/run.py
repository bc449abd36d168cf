"""A whole run against one server: it opens the server, tests requirements, cleans up and makes the report."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timezone

import attrs

from .._futures.logger import log
from .._futures.timeout import wait_for
from ..version import __version__
from .catalogue import select_requirements, with_needs
from .discovery.discover import open_server
from .outcome import Outcome, Status
from .prediction import Prediction, Verdict, predict
from .report.redaction import ReportRedaction
from .report.run_report import RunReport
from .requirement import Level, Requirement
from .runner import run_requirements
from .subject.server import Server
from .violation import Blocked, Violation

CLEANUP_TIMEOUT_S = 60.0
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


async def perform_run(settings: RunSettings, observer: RunObserver) -> RunReport:
    """Test a server and return the report. The first SIGINT or SIGTERM ends the tests, and the report has the rest.

    Raises:
        ValueError: a setting is invalid, or the wire version cannot be found out.
        ServerLost: the server does not accept connections.
    """
    requirements = settings.select()
    started_at, started = datetime.now(timezone.utc), time.monotonic()
    server = await open_server(settings.url, settings.api_key, settings.wire, settings.model)
    try:
        outcomes, is_interrupted, model = await _test(settings, server, requirements, observer)
    finally:
        observer.clean_up()
        await close(server)
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


async def close(server: Server) -> None:
    """Delete what a run made on the server, within a time limit."""
    try:
        await wait_for(server.close(), CLEANUP_TIMEOUT_S)
    except asyncio.TimeoutError:
        log.warning("the server did not delete the models and checkpoints of the run within %g s", CLEANUP_TIMEOUT_S)


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
    settings: RunSettings, server: Server, requirements: Sequence[Requirement], observer: RunObserver
) -> tuple[list[Outcome], bool, str | None]:
    outcomes: list[Outcome] = []
    model = None

    def end(outcome: Outcome) -> None:
        outcomes.append(outcome)
        observer.end(outcome)

    async def test() -> None:
        nonlocal model
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

    task = asyncio.ensure_future(test())
    with _cancelled_by_signals(task) as signals:
        try:
            await task
        except asyncio.CancelledError:
            if not signals:
                raise
    rest = requirements[len(outcomes) :]
    outcomes += [Outcome(requirement=item, status=Status.NOT_RUN, reason=INTERRUPTED) for item in rest]
    return outcomes, bool(signals), model


@contextmanager
def _cancelled_by_signals(task: asyncio.Task[None]) -> Iterator[list[int]]:
    """Cancel a task on the first SIGINT or SIGTERM; yield the list of the signals that came."""
    received: list[int] = []
    loop = asyncio.get_running_loop()
    installed: list[signal.Signals] = []

    def cancel(number: signal.Signals) -> None:
        received.append(number)
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        # Only the main thread can handle signals, and not on Windows.
        with suppress(NotImplementedError, ValueError, RuntimeError):
            loop.add_signal_handler(number, cancel, number)
            installed.append(number)
    try:
        yield received
    finally:
        for number in installed:
            loop.remove_signal_handler(number)
