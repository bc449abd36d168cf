"""Tests of saving and loading weights with a TrainingClient, and of sampling from saved weights."""

from __future__ import annotations

import asyncio

import pytest

import tinkerwire as tw
from support.clients import ADAM, PARAMS, PROMPT, open_client
from support.scripted import TEST_TIMEOUT_S, ScriptedResponse, ScriptedServer

pytestmark = pytest.mark.timeout(60)
PATH = "tinker://m1/weights/a"
SAMPLER_PATH = "tinker://m1/sampler_weights/a"


def test_save_and_load_send_every_argument(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """Names, lifetimes and the optimizer flag arrive; saving returns the path."""
    assert training.save_state("a", ttl_seconds=60).result(TEST_TIMEOUT_S).path == PATH
    assert training.save_weights_for_sampler("b", 90).result(TEST_TIMEOUT_S).path == SAMPLER_PATH
    training.load_state(PATH).result(TEST_TIMEOUT_S)
    assert server.sole_body("save_weights") == {"model_id": "m1", "path": "a", "seq_id": 1, "ttl_seconds": 60}
    assert server.sole_body("save_weights_for_sampler") == {
        "model_id": "m1",
        "path": "b",
        "seq_id": 2,
        "ttl_seconds": 90,
    }
    assert server.sole_body("load_weights") == {"model_id": "m1", "path": PATH, "optimizer": False, "seq_id": 3}
    training.load_state_with_optimizer(PATH).result(TEST_TIMEOUT_S)
    assert server.bodies("load_weights")[1]["optimizer"] is True


def test_old_wire_loads_weights_without_the_optimizer_flag(server: ScriptedServer) -> None:
    """A wire version without the optimizer flag loads weights without it, and raises for the optimizer state."""
    with open_client(server.url, wire_version="0.4.1") as client:
        training = client.create_lora_training_client("base")
        training.load_state(PATH).result(TEST_TIMEOUT_S)
        with pytest.raises(tw.DialectError, match=r"optimizer.*0\.4\.1"):
            training.load_state_with_optimizer(PATH).result(TEST_TIMEOUT_S)
    assert "optimizer" not in server.bodies("load_weights")[0]


def test_sampling_from_unnamed_weights_uses_the_session_of_the_response(
    server: ScriptedServer, training: tw.TrainingClient
) -> None:
    """No further request follows, and the save keeps its turn."""
    training.optim_step(ADAM)
    sampling = training.save_weights_and_get_sampling_client()
    after = training.optim_step(ADAM)
    assert sampling.result(TEST_TIMEOUT_S).sampling_session_id == "sampler2"
    after.result(TEST_TIMEOUT_S)
    body = server.sole_body("save_weights_for_sampler")
    assert body == {"model_id": "m1", "seq_id": 2, "sampling_session_seq_id": 0}
    assert not server.named("create_sampling_session")
    sampling.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S)
    assert server.bodies("asample")[0]["sampling_session_id"] == "sampler2"


def test_named_weights_are_saved_and_sampled_from(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """The weights are saved under the name, and the returned path is sampled from."""
    server.on_poll("SaveWeightsForSampler", lambda _: ScriptedResponse({"path": "tinker://m1/named"}))
    training.save_weights_and_get_sampling_client("named").result(TEST_TIMEOUT_S)
    assert server.sole_body("save_weights_for_sampler") == {"model_id": "m1", "path": "named", "seq_id": 1}
    assert server.sole_body("create_sampling_session")["model_path"] == "tinker://m1/named"


def test_repeated_name_samples_from_the_new_weights(
    server: ScriptedServer, training: tw.TrainingClient, caplog: pytest.LogCaptureFixture
) -> None:
    """The second save has no name; a warning is logged, and later operations keep their order."""
    server.on_poll("SaveWeightsForSampler", lambda _: ScriptedResponse({"path": "tinker://m1/sampler_weights/named"}))
    first = training.save_weights_and_get_sampling_client("named")
    second = training.save_weights_and_get_sampling_client("named")
    step = training.optim_step(tw.AdamParams())
    for waiting in (first, second, step):
        waiting.result(TEST_TIMEOUT_S)
    bodies = server.bodies("save_weights_for_sampler")
    assert [(body.get("path"), body["seq_id"]) for body in bodies] == [("named", 1), (None, 2)]
    assert bodies[1]["sampling_session_seq_id"] is not None
    assert server.bodies("optim_step")[0]["seq_id"] == 3
    assert "'named' was saved before and is not overwritten" in caplog.text


def test_repeated_name_keeps_the_first_save_on_the_embedded_server() -> None:
    """Each client samples from the weights of its call, and the first save keeps the name."""
    with tw.ServiceClient(base_url="local") as client:
        training = client.create_lora_training_client("tinkerwire/byte-nano", rank=2)
        samplers = [training.save_weights_and_get_sampling_client(name="same").result(TEST_TIMEOUT_S) for _ in range(3)]
        for sampling in samplers:
            assert sampling.sample(PROMPT, 1, PARAMS).result(TEST_TIMEOUT_S).sequences
        listing = client.create_rest_client().list_checkpoints(training.model_id).result(TEST_TIMEOUT_S).checkpoints
        assert [checkpoint.checkpoint_id for checkpoint in listing] == ["sampler_weights/same"]
        second_save = training.save_weights_for_sampler("same")
        with pytest.raises(tw.RequestFailedError, match="already exists") as caught:
            second_save.result(TEST_TIMEOUT_S)
        assert caught.value.category == "user"


def test_response_without_session_and_path_raises(server: ScriptedServer, training: tw.TrainingClient) -> None:
    """Without session and path in the response, the client and its samples raise an error."""
    server.on_poll("SaveWeightsForSampler", lambda _: ScriptedResponse({"type": "save_weights_for_sampler"}))
    sampling = training.save_weights_and_get_sampling_client()
    for waiting in (sampling, sampling.sample(PROMPT, 1, PARAMS)):
        with pytest.raises(tw.TinkerError, match="neither a sampling session nor a path"):
            waiting.result(TEST_TIMEOUT_S)


def test_training_client_creates_a_sampling_client_for_a_path(
    server: ScriptedServer, training: tw.TrainingClient
) -> None:
    """create_sampling_client of a training client samples from saved weights."""
    training.create_sampling_client(SAMPLER_PATH).result(TEST_TIMEOUT_S)
    assert asyncio.run(training.create_sampling_client_async(SAMPLER_PATH)).sampling_session_id == "sampler1"
    assert [body["model_path"] for body in server.bodies("create_sampling_session")] == [SAMPLER_PATH] * 2


def test_save_weights_external_sends_arguments_in_order(server: ScriptedServer) -> None:
    """save_weights_external sends its arguments in order; older wire versions raise."""
    server.on_poll(
        "SaveWeightsExternal", lambda _: ScriptedResponse({"path": "tinker://m1/external_weights/a", "size_bytes": 1})
    )
    with open_client(server.url, wire_version="0.38.0") as client:
        training = client.create_lora_training_client("base")
        saved = training.save_weights_external("a", 60, ["age1x"]).result(TEST_TIMEOUT_S)
        with pytest.raises(TypeError, match="age_encryption_recipients: expected a list"):
            training.save_weights_external("a", age_encryption_recipients="age1x")  # type: ignore[arg-type]
    assert saved.path == "tinker://m1/external_weights/a"
    expected = {"model_id": "m1", "path": "a", "seq_id": 1, "ttl_seconds": 60, "age_encryption_recipients": ["age1x"]}
    assert server.sole_body("save_weights_external") == expected
    with open_client(server.url) as old, pytest.raises(tw.DialectError, match=r"save_weights_external.*0\.16\.1"):
        old.create_lora_training_client("base").save_weights_external("a").result(TEST_TIMEOUT_S)
