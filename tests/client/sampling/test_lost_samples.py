"""Samples whose result the server loses before it arrives: they are drawn again, within the policy."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

import tinkerwire as tw
from support.clients import ADAM, FAST, PARAMS, PROMPT, open_client
from support.scripted import PATIENCE_S, ScriptedResponse, ScriptedServer, in_order

pytestmark = pytest.mark.timeout(60)
UNKNOWN = ScriptedResponse({"detail": "unknown request"}, status=404)
ODD = ScriptedResponse({"detail": "it is over"}, status=404)
"""A 404 that does not say that anything is missing."""
GONE = ScriptedResponse(status=410)
BEFORE = {
    "reset": ScriptedResponse(drop=True),
    "garbage": ScriptedResponse(raw=b"no HTTP at all\r\n\r\n"),
    "cut": ScriptedResponse(raw=b'HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n{"sequences"'),
    "500": ScriptedResponse(status=500),
    "502": ScriptedResponse(b"<html>", status=502),
    "504": ScriptedResponse(status=504),
    "not ready": ScriptedResponse(status=408),
}


@pytest.mark.parametrize("lost", [UNKNOWN, ODD, GONE], ids=["404", "odd 404", "410"])
@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
def test_a_sample_lost_after_a_fault(
    server: ScriptedServer, client: tw.ServiceClient, before: ScriptedResponse, lost: ScriptedResponse
) -> None:
    """Whatever came in place of the result, a sample that is gone afterwards is drawn again under a new number."""
    server.on_poll("Sample", in_order(before, lost, server.healthy_response))
    sampling = client.create_sampling_client(base_model="base")
    assert len(sampling.sample(PROMPT, 1, PARAMS).result(PATIENCE_S).sequences) == 1
    assert [body["seq_id"] for body in server.bodies("asample")] == [0, 1]


@pytest.mark.parametrize("body", [{"detail": "Not Found"}, {"detail": "unknown request"}, b"", {}], ids=str)
def test_a_sample_unknown_at_its_first_poll(server: ScriptedServer, client: tw.ServiceClient, body: Any) -> None:
    """A promise that the server has just given and does not know is a lost sample as well."""
    server.on_poll("Sample", in_order(ScriptedResponse(body, status=404), server.healthy_response))
    client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS).result(PATIENCE_S)
    assert len(server.named("asample")) == 2


@pytest.mark.parametrize("lost", [UNKNOWN, GONE], ids=["404", "410"])
def test_a_sample_that_ended_and_cannot_be_fetched(server: ScriptedServer, lost: ScriptedResponse) -> None:
    """A server that reports the end of a sample in a batch and then does not have it has lost it."""
    cursor = [0]

    def ended(asked: Any) -> ScriptedResponse:
        left = [f"asample/{n}/{b.get('seq_id')}" for n, b in server.promised if "prompt" in b][cursor[0] :]
        cursor[0] += len(left)
        completions = [{"request_id": request_id, "cursor": cursor[0]} for request_id in left]
        return ScriptedResponse({"completions": completions, "cursor": cursor[0]}, delay_s=0.0 if left else 0.05)

    server.rules["retrieve_futures"] = ended
    server.rules["join_sampling_session"] = lambda _: ScriptedResponse(
        {"sample_seq_id_start": 0, "cloned_sampler_id": 0}
    )
    server.on_poll("Sample", in_order(lost, server.healthy_response))
    config = {"sample_use_retrieve_futures": True}
    with open_client(server.url, wire_version="0.38.0", client_config=config) as client:
        client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS).result(PATIENCE_S)
    assert server.named("retrieve_futures")
    assert len(server.named("asample")) == 2


def test_the_policy_bounds_the_draws(server: ScriptedServer) -> None:
    """max_attempts and retry_if decide how often a lost sample is drawn."""
    server.on_poll("Sample", lambda _: UNKNOWN)
    refuse = attrs.evolve(FAST, retry_if=lambda error: False)
    for policy, number in ((attrs.evolve(FAST, max_attempts=3), 3), (refuse, 1)):
        before = len(server.named("asample"))
        with open_client(server.url, retry=policy) as client, pytest.raises(tw.FutureExpiredError):
            client.create_sampling_client(base_model="base").sample(PROMPT, 1, PARAMS).result(PATIENCE_S)
        assert len(server.named("asample")) - before == number


@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
def test_a_lost_training_result_is_an_error(
    server: ScriptedServer, training: tw.TrainingClient, before: ScriptedResponse
) -> None:
    """A training step is never repeated: it may have been done."""
    server.on_poll("OptimStep", in_order(before, UNKNOWN))
    with pytest.raises(tw.FutureExpiredError):
        training.optim_step(ADAM).result(PATIENCE_S)
    assert len(server.named("optim_step")) == 1
