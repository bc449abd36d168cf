"""Tests of the client against a server that fails on purpose."""

from __future__ import annotations

from typing import Any

import numpy as np

import tinkerwire
from tinkerwire.local import EmbeddedServer, EmbeddedTransport, FaultInjection

STEPS, SAMPLES = 12, 30


def _train_and_sample(fault_injection: FaultInjection | None) -> tuple[float, list[list[int]]]:
    """Return the loss after training, and samples of the trained weights."""
    types: Any = tinkerwire.types
    retry = tinkerwire.RetryConfig(retry_delay_base=0.01, retry_delay_max=0.05, max_attempts=30)
    datum = types.Datum(
        model_input=types.ModelInput.from_ints([1, 2, 3]), loss_fn_inputs={"target_tokens": np.array([2, 3, 4])}
    )
    with EmbeddedServer(fault_injection=fault_injection) as server:
        service = tinkerwire.ServiceClient(base_url="local", transport=EmbeddedTransport(server), retry=retry)
        training = service.create_lora_training_client(base_model="tinkerwire/byte-nano", rank=4, seed=1)
        futures: list[Any] = []
        for _ in range(STEPS):
            futures.append(training.forward_backward([datum], "cross_entropy"))
            futures.append(training.optim_step(types.AdamParams(learning_rate=1e-3)))
        for future in futures:
            future.result(timeout=60)
        sampling = training.save_weights_and_get_sampling_client()
        sample_futures = [
            sampling.sample(types.ModelInput.from_ints([1]), 1, types.SamplingParams(max_tokens=3, seed=seed))
            for seed in range(SAMPLES)
        ]
        samples = [list(future.result(timeout=60).sequences[0].tokens) for future in sample_futures]
        loss = training.forward([datum], "cross_entropy").result(timeout=60).metrics["loss:sum"]
        service.close()
    return loss, samples


def test_injected_failures_do_not_change_results() -> None:
    """With a third of all requests failing, every step runs once: loss and samples are the same to the bit."""
    fault_injection = FaultInjection(seed=1, p_408=0.05, p_429=0.05, p_5xx=0.1, p_reset=0.05, p_lost_reply=0.1)
    assert _train_and_sample(fault_injection) == _train_and_sample(None)
    assert set(fault_injection.counts) == {"408", "429", "5xx", "reset", "lost_reply"}
