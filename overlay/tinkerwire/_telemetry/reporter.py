"""Sends the telemetry events of one session in the background.

No operation waits for telemetry or fails because of it; only the end of the session waits briefly. Telemetry contains
the events that the user logs, and of errors only the fields in exception_report.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import uuid
from collections import deque
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from functools import cache
from typing import Any

import attrs
import orjson

from tinkerwire_base.errors import ClientClosedError, TinkerError
from tinkerwire_generated import models
from tinkerwire_generated.api.telemetry import telemetry

from .._connection.connection import Connection
from .._connection.retry import SINGLE_ATTEMPT
from .._connection.retry_rules import Decision, Loop, find_rule
from .._futures.logger import log
from .._futures.operation_record import create_detached_task
from .._futures.timeout import wait_for
from .._transport.address import DEFAULT_BASE_URL
from .._transport.backpressure import Traffic
from . import exception_report

ENABLING_VALUES = frozenset({"1", "true", "yes", "on"})
"""Values of TINKER_TELEMETRY that enable telemetry."""
DISABLING_VALUES = frozenset({"", "0", "false", "no", "off"})
"""Values that disable telemetry, as any other value does with a warning."""
MAX_QUEUED_EVENTS = 10_000
"""Maximum number of events that wait to be sent; further events are dropped."""
MAX_BATCH = 100
MAX_DATA_BYTES = 4096
"""Maximum size of the data of one event; larger events are dropped."""
FLUSH_S = 10.0
SEND_TIMEOUT_S = 5.0
DRAIN_S = 2.0
"""Time that the end of a session waits for the remaining events."""


def is_enabled(base_url: str) -> bool:
    """Return whether TINKER_TELEMETRY enables telemetry; by default it is enabled for the Tinker service only."""
    value = os.environ.get("TINKER_TELEMETRY")
    if value is None:
        return base_url == DEFAULT_BASE_URL
    normalized = value.strip().lower()
    if normalized not in ENABLING_VALUES | DISABLING_VALUES:
        log.warning("TINKER_TELEMETRY must be 1 or 0, got %s; telemetry is disabled", value)
    return normalized in ENABLING_VALUES


def create_reporter(connection: Connection) -> Telemetry | None:
    """Return a reporter for a connection; None if telemetry is disabled."""
    return Telemetry(connection) if is_enabled(connection.base_url) else None


class Telemetry:
    """The reporter of one session; ``get_telemetry()`` of its clients returns it, or None if telemetry is disabled."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._queue: deque[models.TelemetryEvent] = deque()
        # No lock: a signal handler may log while it interrupts a thread that logs.
        self._numbers = itertools.count()
        self._is_over = False
        self._session_id = ""
        self._started = datetime.now(timezone.utc)
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def log(
        self, event_name: str, event_data: Mapping[str, Any] | None = None, severity: models.Severity = "INFO"
    ) -> bool:
        """Log an event; never raises.

        Returns:
            False if the event is dropped: the data are too large or not JSON, the queue is full, or the session has
            ended.
        """
        try:
            content = orjson.dumps(dict(event_data or {}))
            return len(content) <= MAX_DATA_BYTES and self._add(
                models.GenericEvent(
                    **self._common_fields(severity), event_name=event_name, event_data=orjson.loads(content)
                )
            )
        except (TypeError, ValueError):
            return False

    def log_exception(self, exception: BaseException, severity: models.Severity = "ERROR") -> bool:
        """Log an exception by class, call and location, without its text; see :meth:`log`."""
        try:
            if exception_report.is_user_error(exception):
                data = exception_report.error_fields(exception)
                fields = self._common_fields("WARNING")
                return self._add(models.GenericEvent(**fields, event_name="user_error", event_data=data))
            return self._add(
                models.UnhandledExceptionEvent(
                    **self._common_fields(severity),
                    error_type=type(exception).__name__,
                    error_message=exception_report.summary(exception),
                    traceback=exception_report.traceback_locations(exception),
                )
            )
        except (TypeError, ValueError):
            return False

    # --- for the client itself, on the loop thread -------------------------------------------------------------------

    def record_exception(self, error: BaseException) -> None:
        """Log the error of an operation, and send it soon."""
        if not isinstance(error, ClientClosedError) and self.log_exception(error):
            self._wake.set()

    def start(self, session_id: str) -> None:
        """Start to send events, once the session is created."""
        self._session_id = session_id
        self._started = datetime.now(timezone.utc)
        self._add(models.SessionStartEvent(**self._common_fields("INFO")))
        if self._task is None:
            self._task = create_detached_task(self._send_loop())

    async def close(self) -> None:
        """Send the end of the session and the remaining events, within :data:`DRAIN_S`; never raises."""
        if self._task is None:
            self._is_over = True
            return
        duration = _duration(datetime.now(timezone.utc) - self._started)
        self._add(models.SessionEndEvent(**self._common_fields("INFO"), duration=duration))
        self._is_over = True
        self._wake.set()
        await asyncio.wait([self._task], timeout=DRAIN_S)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _common_fields(self, severity: models.Severity) -> dict[str, Any]:
        """Return the fields that all events have. The number of a dropped event is missing, so that drops show."""
        return {
            "event_id": str(uuid.uuid4()),
            "event_session_index": next(self._numbers),
            "severity": severity,
            "timestamp": datetime.now(timezone.utc),
        }

    def _add(self, event: models.TelemetryEvent) -> bool:
        if self._is_over or len(self._queue) >= MAX_QUEUED_EVENTS:
            return False
        self._queue.append(event)
        return True

    async def _send_loop(self) -> None:
        try:
            while not (self._is_over and not self._queue):
                if not self._is_over:
                    await self._sleep()
                while self._queue:
                    batch = [self._queue.popleft() for _ in range(min(MAX_BATCH, len(self._queue)))]
                    await self._send(batch)
        except Exception as error:
            # Telemetry must not disturb the program. The log has no text of the error, as the events have none.
            log.debug("telemetry stopped: %s", exception_report.summary(error))
        finally:
            self._is_over = True
            self._queue.clear()

    async def _sleep(self) -> None:
        """Wait until an error is recorded, or for at most :data:`FLUSH_S`."""
        try:
            await wait_for(self._wake.wait(), FLUSH_S)
        except asyncio.TimeoutError:
            return
        self._wake.clear()

    async def _send(self, batch: list[models.TelemetryEvent]) -> None:
        """Send events, or drop them.

        Raises:
            TinkerError: the server accepts no telemetry, or the session has ended.
        """
        import platform  # noqa: PLC0415  (it compiles a dozen patterns)

        dialect = await self._connection.dialect()
        knows_process = dialect.may_have_field("TelemetrySendRequest", "process_uuid")
        request = models.TelemetrySendRequest(
            events=[self._without_secrets(event) for event in batch],
            platform=platform.system(),
            sdk_version=dialect.max_version,
            session_id=self._session_id,
            process_uuid=_process_uuid(os.getpid()) if knows_process else None,
        )
        attempt = 0
        while True:
            try:
                await self._connection.call(
                    telemetry(body=request), Traffic.TELEMETRY, retry=SINGLE_ATTEMPT, timeout_s=SEND_TIMEOUT_S
                )
                return
            except TinkerError as error:
                rule = find_rule(Loop.TELEMETRY, error)
                if rule.decision is Decision.FAIL or self._is_over:
                    raise
                attempt += 1
                if rule.max_retries is not None and attempt > rule.max_retries:
                    break
                await asyncio.sleep(rule.delay_s or 0.0)
        log.debug("telemetry: %d events were dropped", len(batch))

    def _without_secrets(self, event: models.TelemetryEvent) -> models.TelemetryEvent:
        if isinstance(event, models.GenericEvent):
            return attrs.evolve(event, event_data=self._connection.redact(event.event_data))
        return event


@cache
def _process_uuid(_pid: int) -> str:
    """Return an id of this process; a fork has another one."""
    return str(uuid.uuid4())


def _duration(time: timedelta) -> str:
    """Return a time as H:MM:SS.ffffff; hours may exceed 23."""
    minutes, seconds = divmod(time.total_seconds(), 60)
    hours, minutes = divmod(int(minutes), 60)
    return f"{hours}:{minutes:02}:{seconds:09.6f}"
