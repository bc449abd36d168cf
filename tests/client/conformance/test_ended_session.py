"""Servers that end the session of a run: no requirement fails because of that."""

from __future__ import annotations

import asyncio
from typing import Any

from tinkerwire._conformance.client.wire_client import WireClient
from tinkerwire._conformance.outcome import Outcome, Status
from tinkerwire._conformance.requirement import Area, Requirement
from tinkerwire._conformance.runner import run_requirement
from tinkerwire._conformance.subject.server import Server
from tinkerwire._testing.local_server import API_KEY, DEFAULT_MODEL
from tinkerwire._wire.dialect import Dialect
from tinkerwire.conformance import RunObserver, run_conformance
from tinkerwire.testing import LocalServer

WIRE = "0.36.0"


def _end_sessions(server: LocalServer) -> None:
    """Let all sessions of a server expire at once; new ones last."""
    sessions: Any = server.embedded._state.sessions
    lifetime, sessions._ttl_s = sessions._ttl_s, -1.0
    sessions.expire()
    sessions._ttl_s = lifetime


async def _run(server: LocalServer, requirement: Requirement) -> Outcome:
    kit = Server(WireClient(server.url, API_KEY, Dialect.for_version(WIRE)), API_KEY, DEFAULT_MODEL)
    try:
        return await run_requirement(kit, requirement, {})
    finally:
        await kit.close()


def test_run_continues_in_a_new_session() -> None:
    """A run whose session ends before a test passes that test, and the later ones."""

    class Ending(RunObserver):
        def begin(self, requirement: Requirement) -> None:
            if requirement.id in ("FUT-002", "ORD-010", "WGT-003"):
                _end_sessions(server)

    with LocalServer(wire=WIRE) as server:
        report = run_conformance(server.url, wire=WIRE, only=["FUT", "ORD-010", "WGT-003"], observer=Ending())
    assert report.holds, report.unmet
    assert {outcome.status for outcome in report.outcomes} <= {Status.PASSED, Status.SKIPPED}


def test_session_that_ends_in_each_attempt_blocks() -> None:
    """A test during which the session ends again is blocked; the outcome names the reason."""
    attempts = 0
    area = Area("END", "end", "Sessions that end")

    @area.must(1, contract="create_model", remedy="Keep sessions.")
    async def creates_model(kit: Server) -> None:
        """create_model creates a model."""
        nonlocal attempts
        attempts += 1
        await kit.session()
        _end_sessions(server)
        await kit.create_model()

    with LocalServer(wire=WIRE) as server:
        outcome = asyncio.run(_run(server, area.requirements[0]))
    assert attempts == 2
    assert outcome.status is Status.BLOCKED
    assert "ended the session of the run" in outcome.reason
    assert outcome.exchange is not None


def test_failure_with_an_open_session_counts() -> None:
    """A server that rejects heartbeats, also of new sessions, has not ended the session: its failure is reported."""
    attempts = 0
    area = Area("END", "end", "Sessions that end")

    @area.must(1, contract="create_model", remedy="Create models.")
    async def creates_model(kit: Server) -> None:
        """create_model creates a model."""
        nonlocal attempts
        attempts += 1
        await kit.session()
        server.fault_injection.fail_next(422, only="create_model")
        server.fault_injection.fail_next(404, 10, only="session_heartbeat")
        await kit.create_model()

    with LocalServer(wire=WIRE) as server:
        outcome = asyncio.run(_run(server, area.requirements[0]))
    assert attempts == 1
    assert outcome.status is Status.FAILED
