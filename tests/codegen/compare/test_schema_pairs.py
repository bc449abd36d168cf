"""Pairs of schemas as bodies of requests and of responses; each side has the expected level and reason."""

from __future__ import annotations

import pytest
import yaml

from support.schema_documents import PAIRS, PAIRS_3_0, SAME, compare, write_document
from tinkerwire_codegen.compare.contracts import compare_contracts


@pytest.mark.parametrize("direction", ["request", "response"])
@pytest.mark.parametrize("name", PAIRS)
def test_pair_has_the_expected_level_and_reason(name: str, direction: str) -> None:
    """The worst change has the expected level; the reason is that of the table."""
    check_pair(PAIRS[name], direction)


def check_pair(pair: list[str], direction: str, openapi: str = "3.1.0") -> None:
    old, new, in_requests, in_responses, reason = pair
    level = in_requests if direction == "request" else in_responses
    changes = compare(yaml.safe_load(old), yaml.safe_load(new), direction, openapi)
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


@pytest.mark.parametrize("direction", ["request", "response"])
@pytest.mark.parametrize("name", PAIRS_3_0)
def test_pair_of_openapi_3_0_has_the_expected_level(name: str, direction: str) -> None:
    """Keywords have the meaning that OpenAPI 3.0 gives them."""
    check_pair(PAIRS_3_0[name], direction, "3.0.3")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{type: string, nullable: true}", "{type: [string, 'null']}"),
        ("{type: number, minimum: 1, exclusiveMinimum: true}", "{type: number, exclusiveMinimum: 1}"),
        ("{type: string, format: byte, example: YQ==}", "{type: string, contentEncoding: base64}"),
    ],
)
def test_upgrade_to_openapi_3_1_changes_nothing(old: str, new: str) -> None:
    """A schema of OpenAPI 3.0 equals its form in 3.1."""
    for direction in ("request", "response"):
        before = write_document(yaml.safe_load(old), direction, "3.0.3")
        assert compare_contracts(before, write_document(yaml.safe_load(new), direction)) == []
