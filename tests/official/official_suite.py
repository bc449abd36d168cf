"""One test for every step of the flow, the official SDK against our embedded server.

Its name keeps it out of the fast suite, which collects test_*.py: run `pytest tests/official/official_suite.py`.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.official.flow import STEPS
from tests.official.run import walk

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def records() -> dict[str, dict[str, Any]]:
    """One walk for all tests of this module."""
    return {record["step"]: record for record in walk("tinker")}


@pytest.mark.parametrize("step", [step.__name__ for step in STEPS])
def test_official_sdk(step: str, records: dict[str, dict[str, Any]]) -> None:
    """The official SDK does this step on our server, and the answer makes sense."""
    assert records[step]["ok"], f"{records[step]['outcome']}: {records[step]['detail']}"
