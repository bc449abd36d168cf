"""A step that keeps numbers of training and sampling, for a comparison to the bit with another run of the flow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from tests.rigs.official.flow_state import LINES, RANK, SEED, Flow, logprobs_of
from tests.rigs.official.steps_sampling import PROMPT, TOKENS

OPTIMIZER_STEPS = 3
SAMPLES = 3
STATE_NAME = "numbers"
"""Name of the saved state, whose weights can be compared too."""


def numbers(flow: Flow) -> str:
    """Train a model of its own, one operation at a time, and sample with seeds; keep all numbers of the results."""
    training = flow.service.create_lora_training_client(flow.base_model, rank=RANK, seed=SEED + 1)
    lengths = [len(line) - 1 for line in LINES]
    values: dict[str, list[float]] = {}
    output = flow.wait(training.forward(flow.supervised(), "cross_entropy"))
    values["forward"] = _as_float32(np.concatenate(logprobs_of(output, lengths)))
    for step in range(OPTIMIZER_STEPS):
        output = flow.wait(training.forward_backward(flow.supervised(), "cross_entropy"))
        values[f"forward_backward {step}"] = _as_float32(np.concatenate(logprobs_of(output, lengths)))
        if "loss:sum" in output.metrics:
            values[f"loss {step}"] = _as_float32([output.metrics["loss:sum"]])
        flow.wait(training.optim_step(flow.types.AdamParams(learning_rate=5e-3)))
    flow.wait(training.save_state(STATE_NAME))
    path = flow.wait(training.save_weights_for_sampler(f"{STATE_NAME}-sampler")).path
    sampler = flow.service.create_sampling_client(model_path=path)
    prompt = flow.types.ModelInput.from_ints(PROMPT)
    for seed in range(SAMPLES):
        params = flow.types.SamplingParams(max_tokens=TOKENS, temperature=1.0, seed=seed)
        sequence = flow.wait(sampler.sample(prompt, 1, params)).sequences[0]
        values[f"tokens {seed}"] = [int(token) for token in sequence.tokens]
        values[f"logprobs {seed}"] = _as_float32(sequence.logprobs)
    # Some servers leave out the first value, which is null.
    prompt_logprobs = flow.wait(sampler.compute_logprobs(prompt))
    values["prompt logprobs"] = _as_float32(value for value in prompt_logprobs if value is not None)
    flow.numbers.update(values)
    return f"{sum(map(len, values.values()))} numbers"


def _as_float32(values: Iterable[Any]) -> list[float]:
    """Return numbers as float32, in which protobuf sends them; JSON has the same numbers in more digits."""
    return [float(np.float32(value)) for value in values]
