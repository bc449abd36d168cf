"""Checks of a server that send requests: credential, dialect, clock and latency."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

from tinkerwire_base.errors import AuthenticationError, TinkerError
from tinkerwire_generated.api.service import healthz

from .._connection.capabilities import fetch_capabilities
from .._connection.connection import Connection
from .._connection.retry import RetryConfig
from .._transport.address import is_embedded, is_replay
from .._transport.backpressure import Traffic
from .finding import Finding, has_failed
from .network import check_network

REQUESTS_TIMEOUT_S = 10.0
SLOW_MS = 1000.0
"""Latency from which the check warns."""
MAX_CLOCK_SKEW_S = 60.0
"""Difference of the clocks from which tokens are rejected early or late."""
LATENCY_SAMPLES = 3


async def diagnose(connection: Connection, *, uses_sockets: bool) -> list[Finding]:
    """Check the way to the server and the server; the list ends with the first failure.

    Args:
        connection: the connection to check.
        uses_sockets: whether the connection has its own transport, which reaches the server as the checks of the
            network do.
    """
    url = connection.base_url
    if is_replay(url):
        return [Finding("request", "ok", "not checked; a recording replaces the server")]
    findings = await asyncio.to_thread(check_network, url) if uses_sockets else []
    if has_failed(findings):
        return findings
    try:
        # An operation of its own, because the checks need less time than the client has for others.
        deadline = RetryConfig(progress_timeout=REQUESTS_TIMEOUT_S).deadline()
        findings += await connection.start(lambda: _check_server(connection), "diagnose", deadline)
    except AuthenticationError as error:
        findings.append(
            Finding("request", "failed", str(error), "check TINKER_API_KEY, or run `tinkerwire auth login`")
        )
    except TinkerError as error:
        findings.append(Finding("request", "failed", str(error), "check that the address is that of a Tinker server"))
    return findings


async def _check_server(connection: Connection) -> list[Finding]:
    times: list[float] = []
    count = 0
    for _ in range(LATENCY_SAMPLES):
        started = time.monotonic()
        count = len((await fetch_capabilities(connection)).supported_models)
        times.append((time.monotonic() - started) * 1000)
    findings = [
        Finding("request", "ok", f"the server accepts the credential and has {count} models"),
        Finding("dialect", "ok", str(await connection.dialect())),
    ]
    if not is_embedded(connection.base_url):
        findings.append(await _check_clock(connection))
    detail = f"{min(times):.0f} ms, best of {LATENCY_SAMPLES}"
    if min(times) > SLOW_MS:
        remedy = "check the network; long polls keep training fast in spite of latency"
        return [*findings, Finding("latency", "warning", detail, remedy)]
    return [*findings, Finding("latency", "ok", detail)]


async def _check_clock(connection: Connection) -> Finding:
    """Compare the clock with the Date header of the server."""
    request = connection.codec.encode(healthz(), await connection.dialect())
    try:
        response = await connection.exchange(request, Traffic.REST, REQUESTS_TIMEOUT_S)
        date = parsedate_to_datetime(response.headers.get("date", ""))
        skew = abs((date - datetime.now(timezone.utc)).total_seconds())
    except (TinkerError, OSError, ValueError, TypeError):
        return Finding("clock", "ok", "not compared; the server sends no date")
    if skew > MAX_CLOCK_SKEW_S:
        return Finding("clock", "warning", f"differs from the server's by {skew:.0f} s", "synchronize the clock (NTP)")
    return Finding("clock", "ok", f"within {max(skew, 1):.0f} s of the server's")
