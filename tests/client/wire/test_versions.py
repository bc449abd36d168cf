"""Tests of the client with a server process of each wire version: create, train, save, load, sample, list."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinkerwire as tw
from support.embedded import embedded_http_server
from support.scripted import TEST_TIMEOUT_S
from tinkerwire._wire.dialect import BATCH_OPERATIONS
from tinkerwire_base.conversion.versioning import parse_version

pytestmark = pytest.mark.timeout(300)
VERSIONS = (
    "0.3.0",
    "0.4.1",
    "0.6.3",
    "0.9.0",
    "0.16.1",
    "0.18.2",
    "0.22.7",
    "0.25.0",
    "0.26.2",
    "0.30.4",
    "0.34.0",
    "0.38.0",
)
FLAGS = {
    "0.22.7": {"proto_write_fwdbwd": True, "proto_compress_fwdbwd": True, "fwd_via_fwdbwd": True},
    "0.24.1": {"create_model_via_load_weights": True},
    "0.38.0": {"proto_compress_fwdbwd": True},
}
VERSIONS_AND_FLAGS = [(version, {}) for version in VERSIONS] + list(FLAGS.items())
MODEL = "tinkerwire/byte-nano"
TOKENS = list(b"to be or not to be")
PROMPT = tw.ModelInput.from_ints(TOKENS)
DATUM = tw.Datum(
    model_input=tw.ModelInput.from_ints(TOKENS[:-1]),
    loss_fn_inputs={"target_tokens": TOKENS[1:], "weights": np.ones(len(TOKENS) - 1, dtype=np.float32)},
)


def run_training(client: tw.ServiceClient) -> list[float]:
    """Run a training run and return its losses."""
    assert MODEL in [model.model_name for model in client.get_server_capabilities().supported_models]
    training = client.create_lora_training_client(MODEL, rank=4, seed=7)
    losses = []
    for _ in range(3):
        trained = training.forward_backward([DATUM], "cross_entropy")
        training.optim_step(tw.AdamParams(learning_rate=1e-2)).result(TEST_TIMEOUT_S)
        losses.append(trained.result(TEST_TIMEOUT_S).metrics["loss:sum"])
    losses.append(compute_loss(training))
    path = training.save_state("a").result(TEST_TIMEOUT_S).path
    training.optim_step(tw.AdamParams(learning_rate=1.0)).result(TEST_TIMEOUT_S)
    training.load_state(path).result(TEST_TIMEOUT_S)
    assert compute_loss(training) == pytest.approx(losses[-1], rel=1e-5)
    copy = client.create_training_client_from_state(path).result(TEST_TIMEOUT_S)
    assert compute_loss(copy) == pytest.approx(losses[-1], rel=1e-5)
    assert training.get_info().model_id == training.model_id
    sampling = training.save_weights_and_get_sampling_client()
    response = sampling.sample(PROMPT, 2, tw.SamplingParams(max_tokens=3, seed=5)).result(TEST_TIMEOUT_S)
    assert [len(sequence.tokens) for sequence in response.sequences] == [3, 3]
    assert all(len(sequence.logprobs or ()) == 3 for sequence in response.sequences)
    logprobs = sampling.compute_logprobs(PROMPT).result(TEST_TIMEOUT_S)
    assert -sum(logprobs[1:]) == pytest.approx(losses[-1], rel=1e-4)  # type: ignore[arg-type]
    sampler_path = training.save_weights_for_sampler("a").result(TEST_TIMEOUT_S).path
    client.create_sampling_client(model_path=sampler_path).result(TEST_TIMEOUT_S)
    runs = client.create_rest_client().list_training_runs().result(TEST_TIMEOUT_S).training_runs
    assert {training.model_id, copy.model_id} <= {run.training_run_id for run in runs}
    return losses


def compute_loss(training: tw.TrainingClient) -> float:
    return float(training.forward([DATUM], "cross_entropy").result(TEST_TIMEOUT_S).metrics["loss:sum"])


def list_options(version: str, flags: dict[str, Any]) -> list[str]:
    """Return the command-line options of a server of a version."""
    settings = [f"{name}={str(value).lower()}" for name, value in flags.items()]
    return ["--wire", version, *(part for setting in settings for part in ("--flag", setting))]


@pytest.mark.parametrize(("version", "flags"), VERSIONS_AND_FLAGS)
def test_client_trains_with_every_version(version: str, flags: dict[str, Any]) -> None:
    """The losses are the same with wire_version and, from 0.6.0 on, with discovery."""
    with embedded_http_server(*list_options(version, flags)) as url:
        with tw.ServiceClient(base_url=url, wire_version=version, client_config=flags) as client:
            dialect = client.dialect
            losses = run_training(client)
            assert client.dialect == dialect
        assert losses[-1] < losses[0]
        assert dialect.min_version == dialect.max_version == version
        if version in ("0.3.0", "0.4.1"):
            # load_weights has no flag for the optimizer in these versions, which all later versions require.
            return
        with tw.ServiceClient(base_url=url) as client:
            assert run_training(client) == pytest.approx(losses, rel=1e-5)
            discovered = client.dialect
    # Since 0.19.0 the contract has protobuf messages, which servers accept even without their flag.
    assert (discovered.protobuf_operations == BATCH_OPERATIONS) == (parse_version(version) >= parse_version("0.19.0"))
    assert not discovered.is_provisional
    assert discovered.config.proto_compress_fwdbwd == flags.get("proto_compress_fwdbwd", False)
