"""Saved weights: a trained checkpoint that tests share, steps, and comparisons of log probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from tinkerwire_generated import models
from tinkerwire_generated.api.runs import delete_checkpoint
from tinkerwire_generated.api.sampling import create_sampling_session
from tinkerwire_generated.constants import TINKER_SCHEME

from ..._checkpoints.paths import parse_checkpoint_address
from ..client.futures import is_final_rejection
from ..exchange import Exchange
from ..subject.sampler import LOGPROB_TOLERANCE, OpenSampler
from ..subject.server import Server
from ..subject.training_model import TOKENS, TrainingModel, make_datum
from ..violation import Blocked, expect
from .differences import distance

TRAINED = ("TRN-001", "TRN-002", "TRN-003", "TRN-004")
"""Requirements without which a trained checkpoint cannot be made."""
MIN_CHANGE = 0.05
"""Smallest change of log probabilities by which a test distinguishes two states of a model."""
ABSENT_NAME = "no-such-checkpoint"
MALFORMED_PATHS = ("weights", "/etc/passwd", f"{TINKER_SCHEME}../../{ABSENT_NAME}")
OTHER_TARGETS = tuple(reversed(TOKENS))


@attrs.frozen
class TrainedCheckpoint:
    """A checkpoint for training, and the log probabilities around it."""

    model: TrainingModel
    path: str
    untrained: list[float]
    """Those of the new model."""
    saved: list[float]
    """Those of the weights in the checkpoint."""
    continued: list[float]
    """Those after one more step of the model that was saved."""


async def trained_checkpoint(server: Server) -> TrainedCheckpoint:
    """Return a checkpoint of a trained model, which tests share; its model has made one more step."""

    async def save() -> TrainedCheckpoint:
        model = await server.new_shared_model()
        untrained = await get_logprobs(model)
        # The moments of the optimizer point to other targets than the step after the save: without them, the step
        # has another effect.
        await make_large_steps(model, OTHER_TARGETS)
        saved = await get_logprobs(model)
        path = await model.save_weights(server.new_name())
        continued = await make_step(model)
        require_change(untrained, saved)
        return TrainedCheckpoint(model, path, untrained, saved, continued)

    return await server.share("saved weights", save)


async def make_large_steps(model: TrainingModel, targets: Sequence[int] | None = None) -> None:
    """Make two large steps."""
    for _ in range(2):
        await model.forward_backward([make_datum(targets=targets)])
        await model.optim_step()


async def make_step(model: TrainingModel) -> list[float]:
    """Make one step, and return the log probabilities after it."""
    await model.forward_backward([make_datum()])
    await model.optim_step()
    return await get_logprobs(model)


async def save_into_session(server: Server, model: TrainingModel) -> OpenSampler:
    """Return the sampling session of save_weights_for_sampler."""
    number = server.take_sampler_seq_id(await server.session())
    result = await server.futures.run(model.save_for_sampler_call(None, sampling_session_seq_id=number))
    session_id = result.value.sampling_session_id
    expect(bool(session_id), "a sampling_session_id", repr(session_id), result.exchange)
    return OpenSampler(server.client, session_id)


async def delete(server: Server, path: str) -> None:
    """Delete a checkpoint; raise Blocked if the server does not."""
    exchange = await server.client.send_call(delete_checkpoint(*parse_checkpoint_address(path)))
    if not exchange.is_success:
        raise Blocked(f"delete_checkpoint: {exchange.describe()}", exchange)


# --- log probabilities ------------------------------------------------------------------------------------------------


async def get_logprobs(model: TrainingModel) -> list[float]:
    """Return the log probabilities of the targets of one example."""
    return (await model.logprobs())[0]


async def get_prompt_logprobs(sampler: OpenSampler) -> list[float]:
    """Return the log probabilities of all tokens of a prompt but the first."""
    response = await sampler.sample(fields={"prompt_logprobs": True}, max_tokens=1)
    values = [float(value) for value in response.prompt_logprobs or () if value is not None]
    if len(values) < len(TOKENS) - 1:
        raise Blocked("the server does not return the log probabilities of prompts")
    return values[1 - len(TOKENS) :]


def require_change(before: Sequence[float], after: Sequence[float]) -> None:
    """Raise Blocked if training has hardly changed the log probabilities, so that states cannot be distinguished."""
    if distance(before, after) <= MIN_CHANGE:
        raise Blocked(f"training changed the log probabilities by {distance(before, after):.2g} only")


# --- checks -----------------------------------------------------------------------------------------------------------


def expect_path(path: str | None, exchange: Exchange) -> None:
    """Raise Violation unless a save returned a path."""
    is_path = bool(path) and str(path).startswith(TINKER_SCHEME) and len(str(path)) > len(TINKER_SCHEME)
    expect(is_path, f"a path that begins with {TINKER_SCHEME}", repr(path), exchange)


def expect_equal(what: str, received: Sequence[float], expected: Sequence[float], exchange: Exchange) -> None:
    """Raise Violation unless log probabilities are those of the same weights."""
    difference = distance(received, expected)
    expect(
        difference <= LOGPROB_TOLERANCE,
        f"{what}, to {LOGPROB_TOLERANCE:g}",
        f"a difference of {difference:.2g}",
        exchange,
    )


async def expect_restored(server: Server, path: str, what: str, expected: Sequence[float]) -> None:
    """Raise Violation unless a new model has certain log probabilities after it has loaded a checkpoint."""
    model = await server.new_model()
    result = await model.load_weights(path, optimizer=False)
    expect_equal(what, await get_logprobs(model), expected, result.exchange)


async def expect_weights(
    server: Server, sampler: OpenSampler, expected: Sequence[float], untrained: Sequence[float]
) -> None:
    """Raise Violation unless a sampler has certain weights; sampling and training may differ in the last digits."""
    received = await get_prompt_logprobs(sampler)
    right, wrong = (distance(received, values[:-1]) for values in (expected, untrained))
    text = (
        f"log probabilities that differ from those of the weights by {right:.2g}, from the base model's by {wrong:.2g}"
    )
    expect(right < wrong / 4, "the log probabilities of the saved weights", text, server.client.recent[-1])


async def sample_from(server: Server, path: str) -> tuple[OpenSampler | None, Exchange]:
    """Open a sampling session on a path and sample; without a sampler, the exchange is the rejection."""
    session_id = await server.session()
    number = server.take_sampler_seq_id(session_id)
    body = models.CreateSamplingSessionRequest(session_id=session_id, sampling_session_seq_id=number, model_path=path)
    call = create_sampling_session(body=body)
    exchange = await server.client.send_call(call)
    if is_final_rejection(exchange):
        return None, exchange
    sampler = OpenSampler(server.client, server.client.read(call, exchange).sampling_session_id)
    result, exchange = await server.futures.attempt(sampler.sample_call())
    return (None if result is None else sampler), exchange


async def expect_no_sampler(server: Server, path: str) -> None:
    """Raise Violation if a path can be sampled from."""
    sampler, exchange = await sample_from(server, path)
    expect(sampler is None, f"a refusal of {path}", exchange.describe(), exchange)
