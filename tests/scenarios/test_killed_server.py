"""Scenario: a server is killed again and again while a client trains and samples; nothing is lost or done twice."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import numpy as np
import pytest

import tinkerwire as tw
from support.clients import KEY, datum
from support.embedded import ServerProcess

pytestmark = pytest.mark.timeout(110)
STEPS = 20
SAMPLES = 12
KILLS = 3
PATIENT = tw.RetryConfig(retry_delay_base=0.05, retry_delay_max=0.2, max_attempts=1000)
Texts = list[list[int]]


def train_and_sample(url: str, between: threading.Event) -> tuple[str, Texts]:
    """Train a model and sample from it; return the path of its state, and the tokens of all samples."""
    texts: Texts = []
    with tw.ServiceClient(base_url=url, api_key=KEY, retry=PATIENT) as client:
        training = client.create_lora_training_client("tinkerwire/byte-nano", rank=8, seed=1)
        for step in range(STEPS):
            forward_backward = training.forward_backward([datum(step, 7, 8), datum(9, step)], "cross_entropy")
            optim_step = training.optim_step(tw.AdamParams(learning_rate=1e-3))
            between.set()
            assert forward_backward.result().metrics["tokens:sum"] == 5
            assert optim_step.result().metrics["optimizer_step:max"] == step + 1
            if step % 10 == 9:
                sampling = training.save_weights_and_get_sampling_client()
                params = [tw.SamplingParams(max_tokens=8, seed=100 * step + number) for number in range(SAMPLES)]
                samples = [
                    sampling.sample(tw.ModelInput.from_ints([1, 2]), 1, sampling_params) for sampling_params in params
                ]
                texts += [sample.result().sequences[0].tokens for sample in samples]
        return training.save_state("end").result().path, texts


def read_state(folder: Path) -> dict[str, bytes]:
    """Return the weights and the optimizer of the only training checkpoint in a folder, as bytes."""
    (path,) = folder.glob("runs/*/weights/*.npz")
    with np.load(path) as arrays:
        return {name: arrays[name].tobytes() for name in arrays.files}


def run(folder: Path, kills: int, rng: random.Random) -> tuple[dict[str, bytes], Texts]:
    """Run the work against a server that is killed and started again; return the state and the samples."""
    server = ServerProcess(folder, "--wire", "0.38.0")
    server.start()
    results: list[Texts | BaseException] = []
    is_training, is_done = threading.Event(), threading.Event()

    def work() -> None:
        try:
            results.append(train_and_sample(server.url, is_training)[1])
        except BaseException as error:
            results.append(error)
        finally:
            is_done.set()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        is_training.wait(60)
        for _ in range(kills):
            if not is_done.wait(rng.uniform(0.02, 0.3)):
                server.kill()
                server.start()
        thread.join()
    finally:
        server.stop()
    (texts,) = results
    if isinstance(texts, BaseException):
        raise texts
    return read_state(folder), texts


def test_client_goes_on_after_kills_of_its_server(tmp_path: Path) -> None:
    """Weights, optimizer and samples are equal to the bit with those of an undisturbed run."""
    rng = random.Random(1)
    undisturbed = run(tmp_path / "undisturbed", 0, rng)
    assert len(undisturbed[1]) == 2 * SAMPLES
    assert run(tmp_path / "killed", KILLS, rng) == undisturbed
