"""Interruptions of a run, by signals, by a cancellation and by the server: what the run leaves and reports."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from tinkerwire._conformance.interruption import Interrupted, Interruption
from tinkerwire._conformance.run import RunSettings, perform_run
from tinkerwire._testing.local_server import API_KEY
from tinkerwire.conformance import (
    Outcome,
    Requirement,
    RunObserver,
    RunReport,
    Status,
    run_conformance,
    run_conformance_async,
)
from tinkerwire.testing import LocalServer

WIRE = "0.36.0"
TIMEOUT_S = 120.0
needs_signals = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")


def _open_sessions(server: LocalServer) -> list[str]:
    """Return the sessions that are neither finished nor expired."""
    sessions: Any = server.embedded._state.sessions
    return [session.session_id for session in sessions._active.values() if session.finish_reason is None]


def _created(server: LocalServer) -> int:
    sessions: Any = server.embedded._state.sessions
    return int(sessions._count)


def _wait_for_session(server: LocalServer) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not _created(server) and time.monotonic() < deadline:
        time.sleep(0.01)


def test_interrupted_discovery_leaves_no_session() -> None:
    """An interruption before the tests begin finishes the sessions of the probes, also those being created."""

    async def run(server: LocalServer) -> None:
        interruption = Interruption()
        run = asyncio.ensure_future(perform_run(RunSettings(url=server.url), RunObserver(), interruption))
        await asyncio.to_thread(_wait_for_session, server)
        interruption.interrupt()
        with pytest.raises(Interrupted):
            await run

    with LocalServer(wire=WIRE) as server:
        server.fault_injection.delay_next(0.2, 20, only="create_session")
        asyncio.run(run(server))
        assert _created(server)
        assert _open_sessions(server) == []


@needs_signals
def test_ctrl_c_during_discovery_ends_the_program() -> None:
    """The exit code is that of an interruption, and no session stays open."""
    command = [sys.executable, "-m", "tinkerwire", "conformance"]
    with LocalServer(wire=WIRE) as server:
        server.fault_injection.delay_next(0.5, 20, only="create_session")
        with subprocess.Popen(
            [*command, server.url],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TINKER_BASE_URL": "http://127.0.0.1:1"},
        ) as process:
            _wait_for_session(server)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 130, err
        assert "Traceback" not in err
        assert _open_sessions(server) == []


class _Interrupting(RunObserver):
    """Interrupts a run after its first save, and a second time while the run deletes the checkpoint."""

    def __init__(self, interruption: Interruption, server: LocalServer) -> None:
        self.interruption = interruption
        self.server = server

    def start(self, *_: object) -> None:
        # Not earlier: discovery probes the operation, too.
        self.server.fault_injection.delay_next(TIMEOUT_S, 1000, only="delete_checkpoint")

    def end(self, outcome: Outcome) -> None:
        if outcome.requirement.id == "WGT-001":
            self.interruption.interrupt()

    def clean_up(self) -> None:
        asyncio.get_running_loop().call_later(0.2, self.interruption.interrupt)


def test_second_interruption_finishes_sessions() -> None:
    """A second interruption leaves checkpoints to the server, finishes the sessions, and keeps the report."""

    async def run(server: LocalServer) -> RunReport:
        interruption = Interruption()
        settings = RunSettings(url=server.url, api_key=API_KEY, wire=WIRE, only=("WGT-001", "WGT-005"))
        return await perform_run(settings, _Interrupting(interruption, server), interruption)

    with LocalServer(wire=WIRE) as server:
        started = time.monotonic()
        report = asyncio.run(run(server))
        assert time.monotonic() - started < TIMEOUT_S
        assert _created(server)
        assert _open_sessions(server) == []
        assert server.embedded.checkpoint_count > 0
    assert report.is_interrupted
    statuses = {outcome.requirement.id: outcome.status for outcome in report.outcomes}
    assert statuses["WGT-001"] is Status.PASSED
    assert statuses["WGT-005"] is Status.NOT_RUN


@needs_signals
def test_signals_get_their_handlers_back() -> None:
    """A run replaces the handlers of the program for its own time only."""

    def handle(*_: object) -> None:
        raise AssertionError

    earlier = signal.signal(signal.SIGTERM, handle)
    try:
        run_conformance("local", wire=WIRE, only=["SRV-001"])
        assert signal.getsignal(signal.SIGTERM) is handle
    finally:
        signal.signal(signal.SIGTERM, earlier)


def test_run_inside_an_event_loop() -> None:
    """The synchronous form names the asynchronous one, which runs there."""

    async def main() -> RunReport:
        with pytest.raises(RuntimeError, match="await run_conformance_async"):
            run_conformance("local")
        return await run_conformance_async("local", wire=WIRE, only=["SRV-001"])

    assert asyncio.run(main()).holds


def test_asynchronous_form_rejects_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="max_minutes must be above 0"):
        asyncio.run(run_conformance_async("local", max_minutes=0))
    with pytest.raises(ValueError, match="areas:"):
        asyncio.run(run_conformance_async("local", only=["nothing"]))


def test_cancelled_run_cleans_up() -> None:
    """A cancellation of the asynchronous form is raised, after the checkpoints and sessions are gone."""

    class Cancelling(RunObserver):
        task: asyncio.Task[RunReport]

        def begin(self, requirement: Requirement) -> None:
            if requirement.id == "WGT-005":
                self.task.cancel()

    async def main(server: LocalServer) -> None:
        observer = Cancelling()
        run = run_conformance_async(server.url, wire=WIRE, only=["WGT-005"], observer=observer)
        observer.task = asyncio.ensure_future(run)
        with pytest.raises(asyncio.CancelledError):
            await observer.task

    with LocalServer(wire=WIRE) as server:
        asyncio.run(main(server))
        assert server.embedded.checkpoint_count == 0
        assert _created(server)
        assert _open_sessions(server) == []
