"""One change, one report: no value, member or type repeats what another report describes."""

from __future__ import annotations

import pytest
import yaml

from support.schema_documents import compare


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{type: string}", "{type: string, enum: [a, b]}"),
        ("{anyOf: [{enum: [a, b]}, {type: string}]}", "{enum: [a, b]}"),
        (
            "{type: object, properties: {a: {}, b: {}}}",
            "{type: object, not: {required: [a, b]}, properties: {a: {}, b: {}}}",
        ),
        ("{type: [integer, string]}", "{type: [integer, string], not: {type: integer}}"),
        ("{type: integer, const: 1}", "{type: string, const: a}"),
    ],
)
@pytest.mark.parametrize("direction", ["request", "response"])
def test_one_edit_has_one_report_per_level(old: str, new: str, direction: str) -> None:
    """Many values show the edit; the report has the smallest of them."""
    changes = compare(yaml.safe_load(old), yaml.safe_load(new), direction)
    levels = [change.level for change in changes]
    assert levels
    assert len(levels) == len(set(levels)), changes
