"""Events of one session, told to the server that it is a session of: in the background, and at no one's cost.

Nothing waits for it but the end of the session, shortly; nothing fails by it; nothing is told but what the module
incidents lets through, and what a user logs.
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
from tinkerwire_generated.api.telemetry import telemetry
from tinkerwire_generated.models import (
    GenericEvent,
    SessionEndEvent,
    SessionStartEvent,
    Severity,
    TelemetryEvent,
    TelemetrySendRequest,
    UnhandledExceptionEvent,
)

from .._connection.connection import Connection
from .._connection.retry import RetryConfig
from .._connection.retry_rules import Decision, Loop, find_rule
from .._futures.logger import log
from .._futures.operation_record import create_detached_task
from .._futures.timeout import wait_for
from .._transport.address import DEFAULT_BASE_URL
from .._transport.backpressure import Traffic
from . import exception_report

ON = frozenset({"1", "true", "yes", "on"})
"""Values of TINKER_TELEMETRY that switch it on."""
OFF = frozenset({"", "0", "false", "no", "off"})
"""Those that switch it off; so does any other, which is warned of."""
MAX_WAITING = 10_000
"""Events that wait to be sent; further ones are dropped."""
MAX_AT_ONCE = 100
LARGEST_DATA_BYTES = 4096
"""Data of one event; one with more is dropped."""
FLUSH_S = 10.0
SEND_TIMEOUT_S = 5.0
DRAIN_S = 2.0
"""How long the end of a session waits for what is left."""
ONCE = RetryConfig(enable_retry_logic=False)


def is_enabled(base_url: str) -> bool:
    """Whether a server is told: what TINKER_TELEMETRY says; where it is not set, the Tinker service alone."""
    word = os.environ.get("TINKER_TELEMETRY")
    if word is None:
        return base_url == DEFAULT_BASE_URL
    plain = word.strip().lower()
    if plain not in ON | OFF:
        log.warning("TINKER_TELEMETRY=%s is neither 1 nor 0; nothing is told, as with 0", word)
    return plain in ON


def create_reporter(connection: Connection) -> Telemetry | None:
    """A reporter for a connection; None for a server that is told nothing."""
    return Telemetry(connection) if is_enabled(connection.base_url) else None


class Telemetry:
    """The reporter of one session; ``get_telemetry()`` of its clients gives it, or None where it is switched off."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._waiting: deque[TelemetryEvent] = deque()
        # No lock: a signal handler may log while the thread that it interrupts does.
        self._numbers = itertools.count()
        self._is_over = False
        self._session_id = ""
        self._started = datetime.now(timezone.utc)
        self._wake = asyncio.Event()
        self._work: asyncio.Task[None] | None = None

    def log(self, event_name: str, event_data: Mapping[str, Any] | None = None, severity: Severity = "INFO") -> bool:
        """Tell of something. It never raises; False when it cannot be told: too much, no JSON, or all is over."""
        try:
            content = orjson.dumps(dict(event_data or {}))
            return len(content) <= LARGEST_DATA_BYTES and self._add(
                GenericEvent(**self._next(severity), event_name=event_name, event_data=orjson.loads(content))
            )
        except (TypeError, ValueError):
            return False

    def log_exception(self, exception: BaseException, severity: Severity = "ERROR") -> bool:
        """Tell of an exception, by class, call and place, without its text; as :meth:`log`."""
        try:
            if exception_report.is_users(exception):
                data = exception_report.details(exception)
                return self._add(GenericEvent(**self._next("WARNING"), event_name="user_error", event_data=data))
            return self._add(
                UnhandledExceptionEvent(
                    **self._next(severity),
                    error_type=type(exception).__name__,
                    error_message=exception_report.summary(exception),
                    traceback=exception_report.places(exception),
                )
            )
        except (TypeError, ValueError):
            return False

    # --- for the client itself, on the loop thread --------------------------------------------------------------------

    def record_exception(self, error: BaseException) -> None:
        """An operation failed with this; it is told soon."""
        if not isinstance(error, ClientClosedError) and self.log_exception(error):
            self._wake.set()

    def start(self, session_id: str) -> None:
        """The session is there; from now on events are sent."""
        self._session_id = session_id
        self._started = datetime.now(timezone.utc)
        self._add(SessionStartEvent(**self._next("INFO")))
        self._work = create_detached_task(self._send_for_ever())

    async def close(self) -> None:
        """The session is over: tell that and what is left, as far as that gets in :data:`DRAIN_S`; never raises."""
        if self._work is None:
            self._is_over = True
            return
        self._add(SessionEndEvent(**self._next("INFO"), duration=_duration(datetime.now(timezone.utc) - self._started)))
        self._is_over = True
        self._wake.set()
        await asyncio.wait([self._work], timeout=DRAIN_S)
        self._work.cancel()
        await asyncio.gather(self._work, return_exceptions=True)

    # --- inside -------------------------------------------------------------------------------------------------------

    def _next(self, severity: Severity) -> dict[str, Any]:
        """What all events have. An event that is dropped later leaves a gap in the count, which tells of it."""
        return {
            "event_id": str(uuid.uuid4()),
            "event_session_index": next(self._numbers),
            "severity": severity,
            "timestamp": datetime.now(timezone.utc),
        }

    def _add(self, event: TelemetryEvent) -> bool:
        if self._is_over or len(self._waiting) >= MAX_WAITING:
            return False
        self._waiting.append(event)
        return True

    async def _send_for_ever(self) -> None:
        try:
            while not (self._is_over and not self._waiting):
                if not self._is_over:
                    await self._sleep()
                while self._waiting:
                    batch = [self._waiting.popleft() for _ in range(min(MAX_AT_ONCE, len(self._waiting)))]
                    await self._send(batch)
        except Exception as error:
            # Whatever it is, it concerns nobody but us; without its text, for the reasons given above.
            log.debug("telemetry ends: %s", exception_report.summary(error))
        finally:
            self._is_over = True
            self._waiting.clear()

    async def _sleep(self) -> None:
        """Until there is something to tell soon, or for a while."""
        try:
            await wait_for(self._wake.wait(), FLUSH_S)
        except asyncio.TimeoutError:
            return
        self._wake.clear()

    async def _send(self, batch: list[TelemetryEvent]) -> None:
        """Send events, or drop them; raises what says that the server does not want any."""
        import platform  # noqa: PLC0415  (it compiles a dozen patterns)

        dialect = await self._connection.dialect()
        knows_process = dialect.may_have_field("TelemetrySendRequest", "process_uuid")
        request = TelemetrySendRequest(
            events=[self._without_secrets(event) for event in batch],
            platform=platform.system(),
            sdk_version=dialect.ceiling,
            session_id=self._session_id,
            process_uuid=_process_uuid(os.getpid()) if knows_process else None,
        )
        attempt = 0
        while True:
            try:
                await self._connection.call(
                    telemetry(body=request), Traffic.TELEMETRY, retry=ONCE, timeout_s=SEND_TIMEOUT_S
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

    def _without_secrets(self, event: TelemetryEvent) -> TelemetryEvent:
        if isinstance(event, GenericEvent):
            return attrs.evolve(event, event_data=self._connection.redacted(event.event_data))
        return event


@cache
def _process_uuid(_pid: int) -> str:
    """Identifies this process; a fork has one of its own."""
    return str(uuid.uuid4())


def _duration(time: timedelta) -> str:
    """A time as H:MM:SS.ffffff; there are no days in it."""
    minutes, seconds = divmod(time.total_seconds(), 60)
    hours, minutes = divmod(int(minutes), 60)
    return f"{hours}:{minutes:02}:{seconds:09.6f}"
