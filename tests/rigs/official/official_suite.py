"""One test per step of the flow, each client against the embedded server.

The name keeps the module out of the fast tests: run `pytest tests/rigs/official/official_suite.py`.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.rigs.official.flow import STEPS
from tests.rigs.official.run import CLIENT_RUNS, run_flow

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module", params=CLIENT_RUNS, ids=lambda client_run: client_run.title)
def records(request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    """Run the flow once with each client for all tests of this module."""
    return {record["step"]: record for record in run_flow(request.param)}


@pytest.mark.parametrize("step", [step.__name__ for step in STEPS])
def test_every_step_works(step: str, records: dict[str, dict[str, Any]]) -> None:
    """The step works with this client on a server of its version, or the client lacks the step."""
    assert records[step]["ok"], f"{records[step]['outcome']}: {records[step]['detail']}"
