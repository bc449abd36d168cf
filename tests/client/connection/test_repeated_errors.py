"""Operations that make the server build something: the same error again and again is permanent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

import tinkerwire as tw
from support.clients import ADAM, FAST, open_client
from support.scripted import PATIENCE_S, ScriptedResponse, ScriptedServer, in_order
from tinkerwire._connection.retry import BUILDING_PATHS
from tinkerwire_generated.operations import OPERATIONS

pytestmark = pytest.mark.timeout(60)
BROKEN = ScriptedResponse({"detail": "out of memory"}, status=500)
OTHER = ScriptedResponse({"detail": "busy"}, status=500)
START: dict[str, Callable[[tw.ServiceClient], Any]] = {
    "create_model": lambda client: client.create_lora_training_client("base"),
    "create_sampling_session": lambda client: client.create_sampling_client(base_model="base"),
    "load_weights": lambda client: client.create_lora_training_client("base").load_state("tinker://m1/weights/a"),
    "save_weights": lambda client: client.create_lora_training_client("base").save_state("a"),
    "save_weights_for_sampler": lambda client: client.create_lora_training_client("base").save_weights_for_sampler("a"),
}


def attempts(server: ScriptedServer, name: str, policy: tw.RetryConfig, *answers: ScriptedResponse) -> int:
    """Requests of an operation that fails in the end."""
    server.rules[name] = in_order(*answers)
    before = len(server.named(name))
    with open_client(server.url, retry=policy) as client, pytest.raises(tw.InternalServerError):
        START[name](client).result(PATIENCE_S)
    return len(server.named(name)) - before


def test_the_paths_are_those_of_the_contract() -> None:
    """Each path is one of an operation."""
    assert {operation.path for operation in OPERATIONS.values()} >= BUILDING_PATHS


@pytest.mark.parametrize("status", [500, 502, 503])
@pytest.mark.parametrize("name", START)
def test_the_same_error_is_resent_twice(server: ScriptedServer, name: str, status: int) -> None:
    """Three requests, then the error."""
    assert attempts(server, name, FAST, ScriptedResponse({"detail": "no"}, status=status)) == 3


def test_other_errors_are_resent_as_the_policy_says(server: ScriptedServer) -> None:
    """Bodies that differ, a wish of the server, and retry_if give the policy's number of attempts."""
    assert attempts(server, "create_model", FAST, BROKEN, OTHER, BROKEN, OTHER, BROKEN, BROKEN, BROKEN) == 7
    wish = ScriptedResponse({"detail": "starting"}, status=503, headers={"retry-after-ms": "1"})
    assert attempts(server, "create_model", attrs.evolve(FAST, max_attempts=5), wish) == 5
    assert attempts(server, "create_model", attrs.evolve(FAST, max_attempts=5, retry_if=lambda _: True), BROKEN) == 5


def test_the_policy_may_allow_less(server: ScriptedServer) -> None:
    """A lower max_attempts and a retry_if that refuses are kept."""
    assert attempts(server, "create_model", attrs.evolve(FAST, max_attempts=2), BROKEN) == 2
    assert attempts(server, "create_model", attrs.evolve(FAST, retry_if=lambda _: False), BROKEN) == 1


def test_operations_that_build_nothing_are_not_limited(server: ScriptedServer) -> None:
    """A training step that fails in the same way is resent until max_attempts."""
    server.rules["optim_step"] = lambda _: BROKEN
    with open_client(server.url) as client, pytest.raises(tw.InternalServerError):
        client.create_lora_training_client("base").optim_step(ADAM).result(PATIENCE_S)
    assert len(server.named("optim_step")) == FAST.max_attempts
