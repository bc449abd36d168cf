"""Supervised learning: next-byte prediction, with the loss on held-out text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from .._futures.future import APIFuture
from .._training.client import TrainingClient
from ..types import AdamParams, Datum, ForwardBackwardOutput, ModelInput
from .corpus import Bytes, Corpus


@attrs.frozen(kw_only=True)
class SupervisedRecipe:
    """Settings of the supervised learning."""

    steps: int
    batch: int
    window: int
    learning_rate: float
    warmup: int = 20
    evaluate_every: int = 25
    held_out_windows: int = 64


@attrs.define
class Curve:
    """Losses in nats per byte, by step."""

    train: list[tuple[int, float]] = attrs.field(factory=list)
    held_out: list[tuple[int, float]] = attrs.field(factory=list)


def datum_of(window: Bytes) -> Datum:
    """Return a window of bytes as one example that predicts each byte from the previous bytes."""
    inputs: dict[str, Any] = {"target_tokens": window[1:], "weights": np.ones(len(window) - 1, dtype=np.float32)}
    return Datum(model_input=ModelInput.from_ints(window[:-1]), loss_fn_inputs=inputs)


def train(
    client: TrainingClient, corpus: Corpus, recipe: SupervisedRecipe, seed: int, on_step: Callable[[Curve], None]
) -> Curve:
    """Train for ``recipe.steps`` steps. The next step is sent while the current one is computed."""
    rng = np.random.default_rng(seed)
    curve = Curve()
    curve.held_out.append((0, held_out_loss(client, corpus, recipe)))
    waiting: list[tuple[int, APIFuture[ForwardBackwardOutput]]] = []

    def finish(step: int, future: APIFuture[ForwardBackwardOutput]) -> None:
        curve.train.append((step, per_byte(future.result(), recipe.batch * recipe.window)))
        on_step(curve)

    for step in range(1, recipe.steps + 1):
        data = [datum_of(window) for window in corpus.windows(recipe.batch, recipe.window, rng)]
        waiting.append((step, client.forward_backward(data, "cross_entropy")))
        client.optim_step(AdamParams(learning_rate=learning_rate_at(step, recipe)))
        if len(waiting) > 1:
            finish(*waiting.pop(0))
        if step % recipe.evaluate_every == 0 or step == recipe.steps:
            while waiting:
                finish(*waiting.pop(0))
            curve.held_out.append((step, held_out_loss(client, corpus, recipe)))
            on_step(curve)
    return curve


def learning_rate_at(step: int, recipe: SupervisedRecipe) -> float:
    """Return the learning rate of a step: a linear warm-up, then a linear decay to a tenth."""
    return recipe.learning_rate * min(1.0, step / recipe.warmup) * (1 - 0.9 * step / recipe.steps)


def held_out_loss(client: TrainingClient, corpus: Corpus, recipe: SupervisedRecipe) -> float:
    """Return nats per byte on the held-out text."""
    windows = corpus.held_out_windows(recipe.held_out_windows, recipe.window)
    output = client.forward([datum_of(window) for window in windows], "cross_entropy").result()
    return per_byte(output, sum(len(window) - 1 for window in windows))


def per_byte(output: ForwardBackwardOutput, count: int) -> float:
    """Return the mean loss of the log probabilities of all targets."""
    logprobs: Sequence[float] = [float(o["logprobs"].to_numpy().sum()) for o in output.loss_fn_outputs]
    return -sum(logprobs) / count
