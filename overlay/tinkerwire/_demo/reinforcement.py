"""Reinforcement learning: sample, score, and make the better samples of each group more likely."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from .._training.client import TrainingClient
from ..types import AdamParams, Datum, ModelInput, SampledSequence, SamplingParams
from .corpus import Corpus

REWARD = "share of vowels among the sampled bytes"
VOWELS = frozenset(b"aeiouAEIOU")


@attrs.frozen(kw_only=True)
class ReinforcementRecipe:
    """Settings of the reinforcement learning."""

    rounds: int = 20
    prompts: int = 8
    group: int = 16
    prompt_bytes: int = 24
    sampled_bytes: int = 32
    learning_rate: float = 3e-3


def reward_of(sequence: SampledSequence) -> float:
    """Return a reward between 0 and 1."""
    return sum(token in VOWELS for token in sequence.tokens) / max(1, len(sequence.tokens))


def reinforce(
    client: TrainingClient,
    corpus: Corpus,
    recipe: ReinforcementRecipe,
    seed: int,
    on_round: Callable[[list[float]], None],
) -> list[float]:
    """Return the mean reward of each round. Each round samples from the weights of the previous round."""
    rng = np.random.default_rng(seed)
    rewards: list[float] = []
    for number in range(recipe.rounds):
        sampler = client.save_weights_and_get_sampling_client()
        prompts = corpus.windows(recipe.prompts, recipe.prompt_bytes - 1, rng)
        params = SamplingParams(max_tokens=recipe.sampled_bytes, temperature=1.0, seed=seed + number)
        futures = [sampler.sample(ModelInput.from_ints(prompt), recipe.group, params) for prompt in prompts]
        data, scores = [], []
        for prompt, future in zip(prompts, futures, strict=True):
            sequences = future.result().sequences
            group = [reward_of(sequence) for sequence in sequences]
            scores += group
            spread = float(np.std(group)) + 1e-3
            data += [
                _datum(prompt.tolist(), sequence, (score - float(np.mean(group))) / spread)
                for sequence, score in zip(sequences, group, strict=True)
            ]
        trained = client.forward_backward(data, "importance_sampling")
        client.optim_step(AdamParams(learning_rate=recipe.learning_rate))
        trained.result()
        rewards.append(float(np.mean(scores)))
        on_round(rewards)
    return rewards


def _datum(prompt: list[int], sequence: SampledSequence, advantage: float) -> Datum:
    """Return one sample as an example whose loss covers the sampled tokens only."""
    tokens = prompt + list(sequence.tokens)
    prompt_targets = len(prompt) - 1
    sampled = len(sequence.tokens)
    logprobs = np.concatenate([np.zeros(prompt_targets), sequence.logprobs or np.zeros(sampled)]).astype(np.float32)
    advantages = np.concatenate([np.zeros(prompt_targets), np.full(sampled, advantage / sampled)]).astype(np.float32)
    inputs: dict[str, Any] = {"target_tokens": tokens[1:], "logprobs": logprobs, "advantages": advantages}
    return Datum(model_input=ModelInput.from_ints(tokens[:-1]), loss_fn_inputs=inputs)
