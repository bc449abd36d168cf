"""The requirements as tests of pytest, one item for each; ``tinkerwire.conformance`` has the hooks."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Any, TypeVar

import pytest

from .outcome import Outcome, Status
from .report.failure_text import describe_failure
from .report.redaction import ReportRedaction
from .requirement import Level, Requirement
from .run import RunSettings
from .runner import run_requirement
from .subject.server import Server

T = TypeVar("T")
OpenAddress = Callable[[RunSettings], AbstractContextManager[RunSettings]]
XDIST_GROUP = "tinkerwire-conformance"
OPENING_TIMEOUT_S = 120.0
CLOSING_TIMEOUT_S = 90.0


def add_options(parser: pytest.Parser) -> None:
    """Add the options ``--tinker-*``."""
    group = parser.getgroup("tinkerwire", "conformance of a server of the Tinker API")
    group.addoption("--tinker-url", metavar="URL", help="server to test, or local for the embedded server")
    group.addoption("--tinker-wire", metavar="VERSION", help="wire version to test; by default it is found out")
    group.addoption("--tinker-model", metavar="NAME", help="model to test with; by default the first of the server")
    group.addoption(
        "--tinker-level",
        choices=[level.value for level in Level],
        default=Level.MUST.value,
        help="lowest level to test; by default must",
    )
    group.addoption(
        "--tinker-only",
        action="append",
        default=[],
        metavar="NAME",
        help="area or id to test, with what it needs; repeatable",
    )


def register(config: pytest.Config, open_address: OpenAddress) -> None:
    """Register the plugin if the options name a server.

    Raises:
        UsageError: an option is invalid, or pytest-xdist would spread the tests over several workers.
    """
    url = config.getoption("--tinker-url")
    if not url:
        return
    settings = RunSettings(
        url=url,
        api_key=os.environ.get("TINKER_API_KEY") or None,
        wire=config.getoption("--tinker-wire"),
        model=config.getoption("--tinker-model"),
        only=tuple(config.getoption("--tinker-only") or ()),
        level=Level(config.getoption("--tinker-level")),
    )
    try:
        requirements = settings.select()
    except ValueError as error:
        raise pytest.UsageError(f"--tinker-only: {error}") from None
    is_spread = bool(config.getoption("numprocesses", None)) and config.getoption("dist", "no") != "loadgroup"
    if is_spread and not hasattr(config, "workerinput"):
        raise pytest.UsageError(
            "--tinker-url: the requirements are tested in order, by one process; "
            "use -n 0, or --dist loadgroup, which runs them in one worker"
        )
    if "s" not in config.option.reportchars and "a" not in config.option.reportchars.lower():
        # Reasons of skipped tests are a part of the result.
        config.option.reportchars += "s"
    config.pluginmanager.register(ConformancePlugin(settings, requirements, open_address), "tinkerwire-conformance")


class ConformancePlugin:
    """Adds the requirements to the collected tests, and holds the connection to the server."""

    def __init__(self, settings: RunSettings, requirements: list[Requirement], open_address: OpenAddress) -> None:
        self._settings = settings
        self._requirements = requirements
        self._open_address = open_address
        self._loop = asyncio.new_event_loop()
        self._resources = ExitStack()
        self._server: Server | None = None
        self._failure: str = ""
        self._outcomes: dict[str, Outcome] = {}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> Iterator[None]:
        """Add the requirements, before -k selects items and before xdist groups them."""
        parent = RequirementCollector.from_parent(session, name="conformance", nodeid="conformance")
        # xdist writes the group of a test into its id. Its mark has no effect with pytest 9.2, whose ids are fixed.
        group = f"@{XDIST_GROUP}" if session.config.getoption("loadgroup", False) else ""
        for requirement in self._requirements:
            nodeid = f"{parent.nodeid}::{requirement.id}{group}"
            item = RequirementItem.from_parent(
                parent, name=requirement.id, nodeid=nodeid, requirement=requirement, plugin=self
            )
            items.append(item)
        yield

    def test(self, requirement: Requirement) -> Outcome:
        """Test a requirement and return its outcome, without secrets."""
        server = self._open()
        outcome = self._run(run_requirement(server, requirement, self._outcomes))
        self._outcomes[requirement.id] = outcome
        return ReportRedaction(server.client.secrets).redact_outcome(outcome)

    def pytest_unconfigure(self) -> None:
        """Delete what the tests made, and disconnect."""
        if self._server is not None:
            self._run(self._server.close(), CLOSING_TIMEOUT_S)
        self._resources.close()
        self._loop.close()

    def _open(self) -> Server:
        """Return the server; a failure to open it fails every test."""
        if self._failure:
            pytest.fail(self._failure, pytrace=False)
        if self._server is None:
            # discovery needs httpx, which the pytest process without --tinker-url does not load.
            from .discovery.discover import open_server  # noqa: PLC0415

            self._start_loop()
            try:
                settings = self._resources.enter_context(self._open_address(self._settings))
                opened = open_server(settings.url, settings.api_key, settings.wire, settings.model)
                self._server = self._run(opened, OPENING_TIMEOUT_S)
            except Exception as error:
                secrets = [] if self._settings.api_key is None else [self._settings.api_key]
                self._failure = ReportRedaction(secrets).redact_text(f"{self._settings.url} cannot be tested: {error}")
                raise pytest.fail.Exception(self._failure, pytrace=False) from None
        return self._server

    def _start_loop(self) -> None:
        # The loop runs on a thread, so that heartbeats continue while other tests run.
        thread = threading.Thread(target=self._loop.run_forever, name="tinkerwire-conformance", daemon=True)
        thread.start()

        def stop() -> None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()

        self._resources.callback(stop)

    def _run(self, coroutine: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result(timeout_s)
        except BaseException:
            future.cancel()
            raise


class RequirementCollector(pytest.Collector):
    """Parent of the requirements."""

    def collect(self) -> list[pytest.Item]:
        """Return nothing: the plugin adds the items."""
        return []


class RequirementItem(pytest.Item):
    """The test of one requirement."""

    def __init__(self, *, requirement: Requirement, plugin: ConformancePlugin, **settings: Any) -> None:
        super().__init__(**settings)
        self._requirement = requirement
        self._plugin = plugin
        self.user_properties.append(("requirement", requirement.sentence))

    def runtest(self) -> None:
        """Test the requirement."""
        outcome = self._plugin.test(self._requirement)
        if outcome.status is Status.SKIPPED:
            pytest.skip(f"{self.name}: {outcome.reason}")
        if outcome.status is not Status.PASSED:
            pytest.fail(f"{outcome.status.value}: {describe_failure(outcome)}", pytrace=False)

    def reportinfo(self) -> tuple[str, int | None, str]:
        """Return the place and the name of the test."""
        return "conformance", None, f"{self.name} {self._requirement.sentence}"
