"""Hypothesis profiles of all tests, and the proofs that a run of the whole suite must have."""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import HealthCheck, settings

from support.proofs import find_unproven, is_provable, list_named_tests

# A busy machine may stand still within any draw, so none has a time limit.
ANY_TIME = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None)
settings.register_profile("tests", ANY_TIME, derandomize=True)
# Other draws, and more of them: pytest --hypothesis-profile=explore
settings.register_profile("explore", ANY_TIME, derandomize=False, max_examples=1000)
settings.load_profile("tests")

# Tests start hundreds of processes, each of which would compile all modules again; __pycache__ is not committed.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

OUTCOMES: dict[str, str] = {}
"""The outcome of each test of this run, by its id."""


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep the outcome of each test; with xdist the workers' reports come here, too."""
    if report.when == "call" or report.outcome != "passed":
        OUTCOMES[report.nodeid] = report.outcome


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run of the whole suite in which a proof that docs/known-bugs.md names did not pass."""
    config, option = session.config, session.config.option
    is_whole = config.args == config.getini("testpaths") and not (option.keyword or option.markexpr or option.maxfail)
    if hasattr(config, "workerinput") or not is_whole or option.collectonly or session.exitstatus != pytest.ExitCode.OK:
        return
    lacking = find_unproven([proof for proof in list_named_tests() if is_provable(proof[0])], OUTCOMES)
    if lacking:
        sys.stderr.write("docs/known-bugs.md names tests that did not pass:\n" + "\n".join(lacking) + "\n")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
