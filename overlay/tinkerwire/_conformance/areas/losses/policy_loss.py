"""Checks of losses of reinforcement learning, by their formulas and by the effect of a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinkerwire_generated import models

from ...checks.rejection import find_rejection, submit_or_reject
from ...checks.training_effect import LARGE_RATE, OTHER_TOKENS, RATE, expect_change, expect_loss, expect_same
from ...subject.server import Server
from ...subject.training_model import TOKENS, TrainingModel, logprobs_of, make_datum, make_loss_datum
from ...violation import NotApplicable, Violation

IMPORTANCE_SAMPLING = "importance_sampling"
ADVANTAGES = (3.0, -1.5, -2.0, -0.5, -0.5, -1.0, 3.0, 0.0)
GAPS = (0.6, -0.5, 0.3, -0.3, 0.1, -0.7, 0.9, 0.4)
"""Differences of the log probabilities from those at sampling time: ratios from 0.5 to 2.5."""


async def supported_model(server: Server, loss: str, config: dict[str, Any] | None = None) -> TrainingModel:
    """Return the shared model; raise NotApplicable if the server does not support a loss."""
    if not await server.share(f"loss {loss}", lambda: _is_supported(server, loss, config)):
        raise NotApplicable(f"the server does not support the loss {loss}")
    return await server.model()


async def _is_supported(server: Server, loss: str, config: dict[str, Any] | None) -> bool:
    # A new model, because some servers reject every operation behind a rejected one.
    model = await server.new_model()
    datum = make_loss_datum(TOKENS, OTHER_TOKENS, [-1.0] * len(TOKENS), [0.0] * len(TOKENS))
    call = model.forward_backward_call([datum], loss, config)
    return await find_rejection(server, await submit_or_reject(server, call)) is None


async def require_support(server: Server, loss: str, config: dict[str, Any] | None = None) -> None:
    """Raise Violation unless a loss is supported, with the logprobs of cross_entropy."""
    try:
        model = await supported_model(server, loss, config)
    except NotApplicable:
        raise Violation(f"a result of the loss {loss}", "a rejection", server.client.recent[-1]) from None
    datum, _ = await policy_datum(model, GAPS, ADVANTAGES)
    output = await model.forward_backward([datum], loss, config)
    expect_same(server, await model.logprobs(), logprobs_of(output), "the logprobs of cross_entropy")


async def policy_datum(
    model: TrainingModel, gaps: tuple[float, ...], advantages: tuple[float, ...], tokens: tuple[int, ...] = TOKENS
) -> tuple[models.Datum, list[float]]:
    """Return an example whose log probabilities are above those at sampling time by ``gaps``, and the latter."""
    [row] = await model.logprobs([make_datum(tokens)])
    q = [value - gap for value, gap in zip(row, gaps, strict=True)]
    return make_loss_datum(tokens, [*tokens[1:], tokens[0]], q, advantages), q


async def expect_loss_at_ratio_1(server: Server, loss: str) -> None:
    model = await supported_model(server, loss)
    datum, _ = await policy_datum(model, (0.0,) * len(TOKENS), ADVANTAGES)
    output = await model.forward_backward([datum], loss)
    expect_loss(server, output, -sum(ADVANTAGES), "minus the sum of the advantages")


async def expect_formula(
    server: Server,
    loss: str,
    formula: Callable[[list[float], list[float], list[float]], float],
    text: str,
    config: dict[str, Any] | None = None,
) -> None:
    """Raise Violation unless the loss of two datums is the sum of a formula over both."""
    model = await supported_model(server, loss, config)
    first, q = await policy_datum(model, GAPS, ADVANTAGES)
    second, other_q = await policy_datum(model, GAPS[::-1], ADVANTAGES, OTHER_TOKENS)
    output = await model.forward_backward([first, second], loss, config)
    p, other_p = logprobs_of(output)
    expected = formula(p, q, list(ADVANTAGES)) + formula(other_p, other_q, list(ADVANTAGES))
    expect_loss(server, output, expected, text)


async def expect_step(
    server: Server,
    loss: str,
    *,
    advantage: float,
    gap: float,
    direction: int,
    config: dict[str, Any] | None = None,
) -> None:
    """Raise Violation unless a step of a loss raises (1), lowers (-1) or keeps (0) the log probabilities."""
    await supported_model(server, loss, config)
    model = await server.new_model()
    before = await model.logprobs()
    datum, _ = await policy_datum(model, (gap,) * len(TOKENS), (advantage,) * len(TOKENS))
    await model.forward_backward([datum], loss, config)
    await model.optim_step(learning_rate=RATE if direction else LARGE_RATE)
    what = f"advantages of {advantage:g} and log ratios of {gap:g}"
    if direction:
        change = "a higher" if direction > 0 else "a lower"
        await expect_change(server, model, before, direction, f"{change} log probability after {what}")
    else:
        expect_same(server, before, await model.logprobs(), f"an unchanged model after {what}")


def floats(values: list[float]) -> models.TensorData:
    return models.TensorData(data=values, dtype="float32", shape=[len(values)])
