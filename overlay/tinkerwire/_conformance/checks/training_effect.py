"""Measurements of training: log probabilities before and after, and the outputs of a batch."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from tinkerwire_generated import models

from ..subject.server import Server
from ..subject.training_model import TOKENS, TrainingModel, make_datum
from ..violation import NotApplicable, Violation, expect
from .differences import largest_difference

Rows: TypeAlias = list[list[float]]

RATE = 5e-4
"""Learning rate of steps whose direction is tested: small enough not to overshoot on models of any size."""
LARGE_RATE = 1e-2
"""Learning rate of steps that must not change anything."""
CLOSE = 2e-2
"""Largest difference (nats) between log probabilities that count as equal; servers may compute in bfloat16."""
RELATIVE = 2e-2
"""Largest relative difference between losses that count as equal."""
CLEAR = 2e-2
"""Smallest change (nats) of the log probability of a sequence that counts as a rise or a fall."""
OTHER_TOKENS = (40, 44, 48, 52, 56, 60, 64, 68)
"""Tokens of a second example, in the shape of the first."""
THIRD_TOKENS = (70, 7, 71, 11, 72, 19, 73, 23)
"""Tokens of a third example, in the shape of the first."""


def total_loss(output: models.ForwardBackwardOutput) -> float:
    """Return the sum of the loss over a batch.

    Raises:
        NotApplicable: neither the metrics nor the outputs have it.
    """
    if "loss:sum" in output.metrics:
        return float(output.metrics["loss:sum"])
    if all("elementwise_loss" in item for item in output.loss_fn_outputs):
        return float(sum(item["elementwise_loss"].to_numpy().sum() for item in output.loss_fn_outputs))
    raise NotApplicable("the output has neither the metric loss:sum nor elementwise_loss")


def expect_loss(server: Server, output: models.ForwardBackwardOutput, expected: float, formula: str) -> None:
    """Raise Violation unless the loss of a batch is a number, up to rounding."""
    loss = total_loss(output)
    is_close = abs(loss - expected) <= max(CLOSE, RELATIVE * abs(expected))
    expect(is_close, f"a loss of {expected:.4f}, {formula}", f"{loss:.4f}", server.client.recent[-1])


def expect_same(server: Server, before: Rows, after: Rows, expectation: str) -> None:
    """Raise Violation unless log probabilities are equal, up to rounding."""
    difference = largest_difference(before, after)
    received = f"a difference of {difference:.4f} nats"
    expect(difference <= CLOSE, expectation, received, server.client.recent[-1])


async def expect_change(server: Server, model: TrainingModel, before: Rows, direction: int, expectation: str) -> None:
    """Raise Violation unless the log probability of the first example rose (1) or fell (-1).

    Args:
        server: the server.
        model: the model after its training.
        before: the log probabilities of the first example before it.
        direction: 1 or -1.
        expectation: the expectation in words.
    """
    after = await model.logprobs()
    change = sum(after[0]) - sum(before[0])
    received = f"a change of its log probability by {change:+.4f} nats"
    expect(change * direction > CLEAR, expectation, received, server.client.recent[-1])


def weighted(weight: float, tokens: Sequence[int] = TOKENS) -> models.Datum:
    """Return an example whose positions have the same weight."""
    return make_datum(tokens, weights=[weight] * len(tokens))


async def expect_equal_training(
    server: Server,
    recipe: Callable[[TrainingModel], Awaitable[Any]],
    reference: Callable[[TrainingModel], Awaitable[Any]],
    expectation: str,
) -> None:
    """Raise Violation unless two ways to train new models of one seed have the same effect.

    Raises:
        NotApplicable: the server ignores the seed, so that not even the same way has the same effect twice.
    """
    first, second = await _train(server, recipe), await _train(server, reference)
    difference = largest_difference(first, second)
    if difference <= CLOSE:
        return
    if largest_difference(await _train(server, reference), second) > CLOSE:
        raise NotApplicable("models of the same seed differ after the same training")
    raise Violation(expectation, f"a difference of {difference:.4f} nats", server.client.recent[-1])


async def _train(server: Server, recipe: Callable[[TrainingModel], Awaitable[Any]]) -> Rows:
    model = await server.new_model()
    await recipe(model)
    return await model.logprobs([make_datum(), make_datum(OTHER_TOKENS)])
