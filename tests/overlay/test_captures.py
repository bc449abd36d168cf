"""What our client sends, against what the official SDK 0.16.1 was seen to send in the same flow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tinkerwire as tw
from support.clients import ADAM, PARAMS, PROMPT, open_client
from support.scripted import PATIENCE_S, Answer, Scripted, in_turn
from tinkerwire_base.converter import Converter
from tinkerwire_generated.operations import OPERATIONS

pytestmark = pytest.mark.timeout(60)
CAPTURED = json.loads((Path(__file__).parents[1] / "support" / "captured-0.16.1.json").read_text())
DATUM = tw.Datum(
    model_input=tw.ModelInput.from_ints([1, 2]), loss_fn_inputs={"target_tokens": [2, 3], "weights": [1.0, 1.0]}
)
# The official client asks again for what it was just told; ours does when the user wants to know.
NOT_OURS = {("create_training_client_from_state_with_optimizer", "get_info")}


def flow(client: tw.ServiceClient) -> None:
    """The steps of the capture."""
    client.get_server_capabilities()
    training = client.create_lora_training_client("base", rank=8)
    training.forward_backward([DATUM], "cross_entropy").result(PATIENCE_S)
    training.forward([DATUM], "cross_entropy").result(PATIENCE_S)
    training.optim_step(ADAM).result(PATIENCE_S)
    path = training.save_state("a").result(PATIENCE_S).path
    training.load_state(path).result(PATIENCE_S)
    training.save_weights_for_sampler("a").result(PATIENCE_S)
    training.get_info()
    sampling = client.create_sampling_client(base_model="base")
    sampling.sample(PROMPT, 1, PARAMS).result(PATIENCE_S)
    sampling.compute_logprobs(PROMPT).result(PATIENCE_S)
    client.create_training_client_from_state_with_optimizer(path).result(PATIENCE_S)
    client.create_rest_client().list_training_runs().result(PATIENCE_S)


def meaning(path: str, body: Any) -> Any:
    """A body as its model reads it: a null and a default mean what leaving out means. Polls name ids of the server."""
    operation = OPERATIONS.get(path)
    if path == "retrieve_future" or operation is None or operation.request is None:
        return None
    return Converter().structure(body, operation.request)


def test_the_same_flow_sends_the_same(server: Scripted) -> None:
    """Method, path and body of every request mean what the official SDK's mean, in the same order."""
    with_logprobs = {"sequences": [{"stop_reason": "stop", "tokens": [1]}], "prompt_logprobs": [None, -1.0]}
    server.on_poll("Sample", in_turn(server.happy, Answer(with_logprobs)))
    server.rules["create_sampling_session"] = lambda _: Answer({"sampling_session_id": "ss1"})
    with open_client(server.url) as client:
        flow(client)
    ours = [(asked.method, asked.name, asked.body) for asked in server.asked]
    official = [
        (captured["method"], captured["path"].partition("?")[0], captured["body"])
        for captured in CAPTURED
        if (captured["step"], captured["path"]) not in NOT_OURS
    ]
    # Ours creates the session at first need, not before.
    assert official[0][1] == "create_session"
    assert [path for _, path, _ in ours][:2] == ["get_server_capabilities", "create_session"]
    official[:2] = official[1::-1]
    assert [sent[:2] for sent in ours] == [sent[:2] for sent in official]
    for (_, path, our_body), (_, _, official_body) in zip(ours, official, strict=True):
        assert meaning(path, our_body) == meaning(path, official_body), path


def test_polls_say_what_the_officials_say(server: Scripted) -> None:
    """Each poll carries the request type that the official SDK gives it."""
    kinds = {}
    with_logprobs = {"sequences": [], "prompt_logprobs": [None, -1.0]}
    server.on_poll("Sample", in_turn(server.happy, Answer(with_logprobs)))
    with open_client(server.url) as client:
        flow(client)
    for asked in server.named("retrieve_future"):
        kinds[asked.body["request_id"].partition("/")[0]] = asked.headers["x-tinker-request-type"]
    assert kinds == {
        "create_model": "CreateModel",
        "forward": "Forward",
        "forward_backward": "ForwardBackward",
        "optim_step": "OptimStep",
        "save_weights": "SaveWeights",
        "load_weights": "LoadWeights",
        "save_weights_for_sampler": "SaveWeightsForSampler",
        "asample": "Sample",
    }
    assert {asked.headers["x-tinker-sampling-backpressure"] for asked in server.named("asample")} == {"1"}
