"""Pairs of schemas as bodies of requests and of responses; each side has the expected level and reason."""

from __future__ import annotations

import pytest
import yaml

from support.schema_documents import PAIRS, SAME, compare


@pytest.mark.parametrize("direction", ["request", "response"])
@pytest.mark.parametrize("name", PAIRS)
def test_pair_has_the_expected_level_and_reason(name: str, direction: str) -> None:
    """The worst change has the expected level; the reason is that of the table."""
    old, new, in_requests, in_responses, reason = PAIRS[name]
    level = in_requests if direction == "request" else in_responses
    changes = compare(yaml.safe_load(old), yaml.safe_load(new), direction)
    if level == "none":
        assert changes == []
    elif level == "same":
        assert [(change.level, change.reason) for change in changes] == [("safe", SAME)]
    else:
        assert changes, "no change"
        assert changes[0].level == level, changes
        assert all(change.reason != SAME for change in changes)
        worst = [change.reason for change in changes if change.level == level]
        assert level == "safe" or any(reason in text for text in worst), worst


def test_table_has_enough_pairs() -> None:
    """No pair was lost."""
    assert len(PAIRS) >= 150
