"""Errors of large invalid bodies: they name the first wrong value, and take little memory."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinkerwire._server.http.invalid_part import MIN_ITEMS, PART_VALUES, find_invalid_part
from tinkerwire._server.http.openapi import load_contract
from tinkerwire._server.http.responses import HttpError
from tinkerwire._server.http.validation import MAX_CONTAINERS, Validator
from tinkerwire._server.http.validation_errors import MAX_DETAILS
from tinkerwire_generated.operations import OPERATIONS

SCHEMA = {
    "type": "object",
    "properties": {"rows": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}},
    "required": ["rows", "name"],
}
HEADERS = {"content-type": "application/json"}
numbers = st.lists(st.one_of(st.integers(), st.text(max_size=2)), max_size=8)


def places_of_errors(value: Any) -> tuple[list[list[Any]], int]:
    """Return the places of the errors of the part, and the size of that part."""
    validator = jsonschema_rs.Draft202012Validator(SCHEMA)
    part = find_invalid_part(validator.is_valid, value)
    return [error.instance_path for error in validator.iter_errors(part)], len(orjson.dumps(part))


@given(st.fixed_dictionaries({"rows": st.lists(numbers, max_size=8)}, optional={"name": st.just("a")}))
def test_small_values_stay_whole(value: Any) -> None:
    assert find_invalid_part(lambda _: False, value) == value


@pytest.mark.parametrize("position", [0, PART_VALUES - 1, PART_VALUES, 12_345, 99_999])
@pytest.mark.parametrize("rows", [1, 50])
def test_late_error_keeps_its_place(position: int, rows: int) -> None:
    value = {"rows": [[0] * 100_000 for _ in range(rows)], "name": "a"}
    value["rows"][-1][position] = "wrong"  # type: ignore[index]
    places, _ = places_of_errors(value)
    assert places == [["rows", rows - 1, position]]


def test_missing_field_after_long_lists_is_found() -> None:
    places, size = places_of_errors({"rows": [[0] * 100_000]})
    assert places == [[]]
    assert size < 10 * PART_VALUES


@pytest.mark.parametrize("rows", [[["x"] * 100_000], [["x"]] * 100_000, [[0] * 50_000 + ["x"] * 50_000]])
def test_of_many_errors_only_the_first_are_made(rows: Any) -> None:
    places, _ = places_of_errors({"rows": rows, "name": "a"})
    assert 0 < len(places) <= PART_VALUES + MIN_ITEMS


@pytest.mark.parametrize("item", [b"0,", b"{},", b'"a",', b"[],"])
@pytest.mark.parametrize(
    ("name", "head", "tail"),
    [
        ("create_session", b'{"tags":[', b"]}"),
        ("asample", b'{"prompt":{"chunks":[', b"]}}"),
        ("forward_backward", b'{"forward_backward_input":{"data":[', b"]}}"),
        ("create_model", b'{"lora_config":[', b"]}"),
        ("telemetry", b'{"events":[', b"]}"),
    ],
)
@pytest.mark.parametrize("version", ["0.4.1", "0.16.1"])
def test_errors_of_long_lists_are_few(version: str, name: str, head: bytes, tail: bytes, item: bytes) -> None:
    """A list of 100,000 wrong values has some errors, and not 100,000."""
    validator = Validator(load_contract(version))
    body = head + item * 100_000 + b"0" + tail
    with pytest.raises(HttpError) as rejection:
        validator.parse_body(OPERATIONS[name], body, HEADERS)
    assert rejection.value.status == 422
    assert 0 < len(rejection.value.detail) <= MAX_DETAILS


@pytest.mark.parametrize("brackets", [b"[],", b"{},"])
def test_body_with_too_many_lists_is_413(brackets: bytes) -> None:
    """Empty lists and objects take much more memory than their text."""
    validator = Validator(load_contract("0.16.1"))
    body = b'{"tags":[' + brackets * MAX_CONTAINERS + b"0]}"
    with pytest.raises(HttpError) as rejection:
        validator.parse_body(OPERATIONS["create_session"], body, HEADERS)
    assert rejection.value.status == 413
