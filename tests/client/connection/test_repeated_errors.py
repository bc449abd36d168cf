"""Resends of operations that make the server build something: identical errors are permanent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

import tinkerwire as tw
from support.clients import ADAM, FAST, open_client
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._connection.retry import BUILDING_PATHS, RepeatedErrors
from tinkerwire_base.errors import ResponseInfo, status_error
from tinkerwire_generated.operations import OPERATIONS

pytestmark = pytest.mark.timeout(60)
BROKEN = ScriptedResponse({"detail": "out of memory"}, status=500)
BUSY = ScriptedResponse({"detail": "busy"}, status=500)
START: dict[str, Callable[[tw.ServiceClient], Any]] = {
    "create_model": lambda client: client.create_lora_training_client("base"),
    "create_sampling_session": lambda client: client.create_sampling_client(base_model="base"),
    "load_weights": lambda client: client.create_lora_training_client("base").load_state("tinker://m1/weights/a"),
    "save_weights": lambda client: client.create_lora_training_client("base").save_state("a"),
    "save_weights_for_sampler": lambda client: client.create_lora_training_client("base").save_weights_for_sampler("a"),
}


def count_attempts(server: ScriptedServer, name: str, policy: tw.RetryConfig, *responses: ScriptedResponse) -> int:
    """Return the number of requests of an operation that fails."""
    server.rules[name] = in_order(*responses)
    before = len(server.named(name))
    with open_client(server.url, retry=policy) as client, pytest.raises(tw.InternalServerError):
        START[name](client).result(TEST_TIMEOUT_S)
    return len(server.named(name)) - before


def test_building_paths_are_in_contract() -> None:
    """Every path is the path of an operation."""
    assert {operation.path for operation in OPERATIONS.values()} >= BUILDING_PATHS


@pytest.mark.parametrize("status", [500, 502, 503])
@pytest.mark.parametrize("name", START)
def test_identical_error_is_retried_twice(server: ScriptedServer, name: str, status: int) -> None:
    """The client sends three requests and raises the error."""
    assert count_attempts(server, name, FAST, ScriptedResponse({"detail": "no"}, status=status)) == 3


def test_differing_errors_follow_policy(server: ScriptedServer) -> None:
    """Different bodies, a Retry-After header and retry_if lead to the policy's number of attempts."""
    assert count_attempts(server, "create_model", FAST, BROKEN, BUSY, BROKEN, BUSY, BROKEN, BROKEN, BROKEN) == 7
    paced_error = ScriptedResponse({"detail": "starting"}, status=503, headers={"retry-after-ms": "1"})
    assert count_attempts(server, "create_model", attrs.evolve(FAST, max_attempts=5), paced_error) == 5
    assert (
        count_attempts(server, "create_model", attrs.evolve(FAST, max_attempts=5, retry_if=lambda _: True), BROKEN) == 5
    )


def test_policy_may_allow_fewer_retries(server: ScriptedServer) -> None:
    """A lower max_attempts and a retry_if that returns False hold."""
    assert count_attempts(server, "create_model", attrs.evolve(FAST, max_attempts=2), BROKEN) == 2
    assert count_attempts(server, "create_model", attrs.evolve(FAST, retry_if=lambda _: False), BROKEN) == 1


def test_training_step_is_retried_to_max_attempts(server: ScriptedServer) -> None:
    """A step that builds nothing is retried after identical errors."""
    server.rules["optim_step"] = lambda _: BROKEN
    with open_client(server.url) as client, pytest.raises(tw.InternalServerError):
        client.create_lora_training_client("base").optim_step(ADAM).result(TEST_TIMEOUT_S)
    assert len(server.named("optim_step")) == FAST.max_attempts


def make_error(status: int, text: str = "out of memory", **headers: str) -> tw.APIStatusError:
    """Return the error of a response."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return status_error(status)("x", response=ResponseInfo(status_code=status, headers=names, text=text))


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ([make_error(500)] * 4, [False, False, True, True]),
        ([make_error(500), make_error(500), make_error(500, "busy"), make_error(500)], [False] * 4),
        ([make_error(500), make_error(500), make_error(503), make_error(503), make_error(503)], [False] * 4 + [True]),
        ([make_error(499)] * 4, [False] * 4),
        ([make_error(500, retry_after="1")] * 4, [False] * 4),
        ([make_error(500, x_should_retry="true")] * 4, [False] * 4),
        ([tw.APIConnectionError(message="x")] * 4, [False] * 4),
        ([make_error(500), make_error(500), make_error(408), make_error(500)], [False] * 4),
    ],
    ids=["identical", "other text", "other status", "4xx", "Retry-After", "x-should-retry", "no response", "408"],
)
def test_error_is_permanent_after_two_identical_resends(errors: list[tw.TinkerError], expected: list[bool]) -> None:
    """Only server errors with the same status and text count, without a header that requests a retry."""
    counter = RepeatedErrors("/api/v1/create_model")
    assert [counter.is_permanent(error) for error in errors] == expected
    other_path = RepeatedErrors("/api/v1/optim_step")
    assert not any(other_path.is_permanent(error) for error in errors)
