"""Tests of the search for the recorded operation that a request repeats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from tinkerwire._tape.recorded_operations import RecordedOperations
from tinkerwire._tape.request_content import RequestContent, find_first_difference, read_content
from tinkerwire._tape.tape_file import RecordedExchange


def exchange(at: int, name: str, body: dict[str, Any], response: dict[str, Any], key: str = "") -> RecordedExchange:
    """Return an exchange of an operation."""
    return RecordedExchange(
        at=at,
        method="POST",
        path=f"/api/v1/{name}",
        headers={"x-idempotency-key": key or str(at)},
        content=orjson.dumps(body),
        status=200,
        response=orjson.dumps(response),
    )


def content(name: str, **body: Any) -> RequestContent:
    """Return the content of a request."""
    return read_content("POST", f"/api/v1/{name}", (), {}, orjson.dumps(body))


@pytest.fixture
def claims(tmp_path: Path) -> Path:
    """Return a folder for claims."""
    return tmp_path


def test_equal_operations_are_matched_in_order_and_once(claims: Path) -> None:
    tape = [exchange(at, "asample", {"prompt": 1, "seq_id": at}, {"request_id": f"r{at}"}) for at in (5, 6)]
    operations = RecordedOperations(tape, claims)
    found = [operations.claim(content("asample", prompt=1, seq_id=number)) for number in (90, 91, 92)]
    assert [operation and operation.number for operation in found] == [0, 1, None]


def test_other_order_of_different_operations_is_matched(claims: Path) -> None:
    tape = [exchange(at, "asample", {"prompt": at, "seq_id": at}, {}) for at in range(3)]
    operations = RecordedOperations(tape, claims)
    found = [operations.claim(content("asample", prompt=prompt, seq_id=0)) for prompt in (2, 0, 1)]
    assert [operation and operation.number for operation in found] == [2, 0, 1]


def test_attempts_with_one_idempotency_key_are_one_operation(claims: Path) -> None:
    lost = RecordedExchange(
        at=2, method="POST", path="/api/v1/asample", headers={"x-idempotency-key": "1"}, content=b"{}", error={}
    )
    first = exchange(1, "asample", {}, {"n": 1}, key="1")
    operations = RecordedOperations([first, lost, exchange(3, "asample", {}, {"n": 2})], claims)
    assert len(operations.all) == 2
    assert operations.all[0].outcome is first


def test_ids_that_threads_raced_for_are_exchanged(claims: Path) -> None:
    """Three threads get the models of each other; each operation still finds the recorded one of its data."""
    tape, at = [], 0
    for model in range(3):
        at += 1
        tape.append(exchange(at, "create_model", {"session_id": "s", "model_seq_id": model}, {"model_id": f"m{model}"}))
    for model in range(3):
        for step in range(2):
            at += 1
            body = {"model_id": f"m{model}", "seq_id": step, "data": [model, step]}
            tape.append(exchange(at, "forward_backward", body, {}))
    operations = RecordedOperations(tape, claims)
    for step in range(2):
        for model, recorded in (("m0", 2), ("m1", 0), ("m2", 1)):
            found = operations.claim(content("forward_backward", model_id=model, seq_id=step, data=[recorded, step]))
            assert found is not None
            assert found.content.body["model_id"] == f"m{recorded}"
    assert operations.claim(content("forward_backward", model_id="m0", seq_id=0, data=[2, 0])) is None


def test_operation_of_another_model_is_not_matched_once_the_models_are_known(claims: Path) -> None:
    tape = [
        exchange(1, "forward", {"model_id": "a", "data": 1}, {}),
        exchange(2, "forward", {"model_id": "b", "data": 2}, {}),
        exchange(3, "forward", {"model_id": "b", "data": 3}, {}),
    ]
    operations = RecordedOperations(tape, claims)
    assert operations.claim(content("forward", model_id="a", data=2)) is not None
    assert operations.claim(content("forward", model_id="b", data=3)) is None


def test_processes_share_the_matches(claims: Path) -> None:
    tape = [exchange(at, "asample", {"prompt": 1}, {}) for at in range(4)]
    processes = [RecordedOperations(tape, claims) for _ in range(2)]
    found = [processes[number % 2].claim(content("asample", prompt=1)) for number in range(5)]
    assert [operation and operation.number for operation in found] == [0, 1, 2, 3, None]


@pytest.mark.parametrize(
    ("recorded", "current", "expected"),
    [
        ({"a": 1}, {"a": 1}, None),
        ({"a": 1}, {"a": 2}, ("a", 1, 2)),
        ({"a": 1}, {"a": 1.0}, ("a", 1, 1.0)),
        ({"a": 1}, {}, ("a", 1, "nothing")),
        ({}, {"b": 1}, ("b", "nothing", 1)),
        ({"a": [{"b": [1, 2]}]}, {"a": [{"b": [1, 3]}]}, ("a[0].b[1]", 2, 3)),
        ({"a": [1]}, {"a": [1, 2]}, ("a", "1 items", "2 items")),
    ],
)
def test_first_difference_is_named(recorded: Any, current: Any, expected: Any) -> None:
    assert find_first_difference(recorded, current) == expected


def test_version_of_the_client_does_not_matter() -> None:
    assert content("create_session", sdk_version="1").key() == content("create_session", sdk_version="2").key()
