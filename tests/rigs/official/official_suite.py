"""One test for every step of the flow, each client against our embedded server.

Its name keeps it out of the fast suite, which collects test_*.py: run `pytest tests/rigs/official/official_suite.py`.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.rigs.official.flow import STEPS
from tests.rigs.official.run import WALKERS, walk

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module", params=WALKERS, ids=lambda walker: walker.title)
def records(request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    """One walk of each client for all tests of this module."""
    return {record["step"]: record for record in walk(request.param)}


@pytest.mark.parametrize("step", [step.__name__ for step in STEPS])
def test_every_step_works(step: str, records: dict[str, dict[str, Any]]) -> None:
    """The client does this step on our server of its version, and the answer makes sense; or it has no such step."""
    assert records[step]["ok"], f"{records[step]['outcome']}: {records[step]['detail']}"
