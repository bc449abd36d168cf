"""The conformance kit: tests any server of the Tinker API against the contract.

    from tinkerwire.conformance import run_conformance

``tinkerwire conformance URL`` does the same from the command line. As a plugin of pytest
(``pytest -p tinkerwire.conformance --tinker-url URL``) this module runs the requirements as tests.
docs/conformance.md describes all three.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import attrs

from tinkerwire_base.errors import APIConnectionError, TinkerError

from ._conformance.catalogue import load_requirements
from ._conformance.interruption import Interrupted, Interruption
from ._conformance.outcome import Outcome, Status
from ._conformance.report.redaction import ReportRedaction
from ._conformance.report.run_report import RunReport
from ._conformance.requirement import Level, Requirement
from ._conformance.run import RunObserver, RunSettings, perform_run
from ._conformance.violation import ServerLost, Violation
from ._credentials.secret import is_sendable
from ._futures.logger import is_on_event_loop
from ._transport.address import EMBEDDED, refuse_plain_http, resolve_base_url

if TYPE_CHECKING:
    import pytest

__all__ = [
    "Level",
    "Outcome",
    "Requirement",
    "RunObserver",
    "RunReport",
    "Status",
    "load_requirements",
    "run_conformance",
    "run_conformance_async",
]


def run_conformance(
    url: str,
    *,
    api_key: str | None = None,
    wire: str | None = None,
    model: str | None = None,
    only: Sequence[str] = (),
    level: Level | str = Level.MAY,
    keep_going: bool = False,
    max_minutes: float | None = None,
    observer: RunObserver | None = None,
) -> RunReport:
    """Test a server and return the report; what the tests made on the server is deleted.

    In the main thread, SIGINT and SIGTERM end the tests early, and the report has what was tested. A second signal
    leaves models and checkpoints to the server.

    Args:
        url: address of the server; ``local`` starts an embedded server for the run.
        api_key: the API key; None sends none.
        wire: the wire version to test; None to find it out.
        model: name of the base model to train and sample; None for the first that the server names.
        only: names of areas, prefixes or ids of requirements; those that they need are tested, too. By default all.
        level: the lowest level to test.
        keep_going: continue after the server was lost, for servers that come back.
        max_minutes: time limit of the run; None for none.
        observer: gets notified about the course of the run.

    Raises:
        ValueError: an argument is invalid.
        APIConnectionError: the server does not accept connections, or does not respond as a server of the Tinker API.
        TinkerError: the server issues no token for the key, or the key would be sent over plain HTTP.
        ImportError: the extra ``conformance`` is not installed.
        RuntimeError: an event loop runs in this thread; await :func:`run_conformance_async` there.
        KeyboardInterrupt: a signal came before the tests began.

    Example:
        >>> report = run_conformance("local", only=["FUT-008"], wire="0.25.0")
        >>> report.holds, report.unmet
        (True, [])
    """
    settings = _make_settings(url, api_key, wire, model, only, level, keep_going, max_minutes)
    if is_on_event_loop():
        raise RuntimeError("run_conformance cannot run inside an event loop; await run_conformance_async there")
    interruption = Interruption()

    async def run() -> RunReport:
        with interruption.handling_signals():
            return await perform_run(resolved, observer or RunObserver(), interruption)

    with _open_address(settings) as resolved, _public_errors(api_key):
        try:
            return asyncio.run(run())
        except Interrupted:
            raise KeyboardInterrupt from None


async def run_conformance_async(
    url: str,
    *,
    api_key: str | None = None,
    wire: str | None = None,
    model: str | None = None,
    only: Sequence[str] = (),
    level: Level | str = Level.MAY,
    keep_going: bool = False,
    max_minutes: float | None = None,
    observer: RunObserver | None = None,
) -> RunReport:
    """Test a server like :func:`run_conformance`, inside an event loop.

    It does not handle signals. A cancellation ends the tests, and raises CancelledError after what they made on the
    server was deleted.
    """
    settings = _make_settings(url, api_key, wire, model, only, level, keep_going, max_minutes)
    with _open_address(settings) as resolved, _public_errors(api_key):
        return await perform_run(resolved, observer or RunObserver(), Interruption())


def _make_settings(
    url: str,
    api_key: str | None,
    wire: str | None,
    model: str | None,
    only: Sequence[str],
    level: Level | str,
    keep_going: bool,
    max_minutes: float | None,
) -> RunSettings:
    """Return the settings of a run; raise ValueError for an invalid one."""
    if max_minutes is not None and max_minutes <= 0:
        raise ValueError(f"max_minutes must be above 0, got {max_minutes:g}")
    settings = RunSettings(
        url=url,
        api_key=api_key,
        wire=wire,
        model=model,
        only=tuple(only),
        level=Level(level),
        keep_going=keep_going,
        max_s=float("inf") if max_minutes is None else 60 * max_minutes,
    )
    settings.select()
    return settings


@contextmanager
def _open_address(settings: RunSettings) -> Iterator[RunSettings]:
    """Yield the settings with the address of a server that runs; ``local`` starts one and ends it."""
    if settings.url == EMBEDDED:
        # Only runs of the embedded server load it.
        from ._testing.local_server import API_KEY, DEFAULT_MODEL, LocalServer  # noqa: PLC0415

        with LocalServer(wire=settings.wire) as server:
            yield attrs.evolve(settings, url=server.url, api_key=API_KEY, model=settings.model or DEFAULT_MODEL)
        return
    url = resolve_base_url(settings.url)
    if not url.startswith("http"):
        raise ValueError(f"url: {url!r} is not the address of a server; use an http(s) URL, or {EMBEDDED!r}")
    if settings.api_key is not None:
        if not is_sendable(settings.api_key):
            raise ValueError("api_key must be printable ASCII without blanks; copy it again")
        refuse_plain_http(url, None)
    yield attrs.evolve(settings, url=url)


@contextmanager
def _public_errors(api_key: str | None) -> Iterator[None]:
    """Raise the errors of the kit as those of the client, without the key."""
    redaction = ReportRedaction([] if api_key is None else [api_key])
    try:
        yield
    except ServerLost as error:
        raise APIConnectionError(message=redaction.redact_text(str(error))) from None
    except Violation as error:
        raise TinkerError(redaction.redact_text(f"the server cannot be tested: {error}")) from None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the plugin."""
    from ._conformance.pytest_plugin import add_options  # noqa: PLC0415

    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Add the requirements to the tests if there is a server to test."""
    from ._conformance.pytest_plugin import register  # noqa: PLC0415

    register(config, _open_address)
