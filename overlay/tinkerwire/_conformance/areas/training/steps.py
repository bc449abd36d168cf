"""Requirements on gradients and optimizer steps."""

from __future__ import annotations

from ...checks.breakages import WRONG_NUMBERS
from ...checks.rejection import find_rejection, submit_or_reject
from ...checks.training_effect import (
    LARGE_RATE,
    OTHER_TOKENS,
    RATE,
    expect_change,
    expect_equal_training,
    expect_same,
    weighted,
)
from ...requirement import Breakage, Feature
from ...subject.server import Server
from ...subject.training_model import TrainingModel, make_datum
from ...violation import expect
from .area import AREA


@AREA.must(
    28,
    contract=("forward_backward", "ForwardBackwardOutput"),
    remedy="Change the model in optim_step and load_weights only.",
    needs=("TRN-012",),
    breaks=[WRONG_NUMBERS],
)
async def forward_backward_keeps_weights(server: Server) -> None:
    """A forward_backward does not change the model before optim_step, and repeated work has the same logprobs."""
    model = await server.model()
    before = await model.logprobs()
    for _ in range(2):
        await model.forward_backward([weighted(100.0)])
    expect_same(server, before, await model.logprobs(), "an unchanged model before optim_step")


@AREA.must(
    20,
    contract=("forward_backward", "optim_step"),
    remedy="Apply the gradients of forward_backward in optim_step, in the direction that lowers the loss.",
    needs=("TRN-002", "TRN-004"),
    breaks=[WRONG_NUMBERS],
)
async def step_lowers_loss(server: Server) -> None:
    """A step lowers the loss on the data of its forward_backward."""
    model = await server.new_model()
    before = await model.logprobs()
    await model.forward_backward([make_datum()])
    await model.optim_step(learning_rate=RATE)
    await expect_change(server, model, before, 1, "a lower loss on the same data after a step")


@AREA.must(
    24,
    contract=("forward_backward", "optim_step"),
    remedy="Keep the gradients of forward_backward out of forward, also if both are one operation with forward_only.",
    needs=("TRN-003", "TRN-020"),
    breaks=[WRONG_NUMBERS],
)
async def forward_leaves_no_gradient(server: Server) -> None:
    """Forward adds no gradient: a step after it changes nothing."""
    model = await server.new_model()
    before = await model.logprobs()
    await model.forward([make_datum()])
    # Some servers reject a step without gradients, which is as good.
    await find_rejection(server, await submit_or_reject(server, model.optim_step_call(learning_rate=LARGE_RATE)))
    expect_same(server, before, await model.logprobs(), "an unchanged model after forward and a step")


@AREA.must(
    21,
    contract=("forward_backward", "Datum.loss_fn_inputs"),
    remedy="Multiply the gradient of each target by its weight, also by a negative one.",
    needs=("TRN-024",),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "trains forward_backward_custom with wrong gradients")],
)
async def weights_may_be_negative(server: Server) -> None:
    """Negative weights reverse the gradient, as losses that a client computes need it."""
    model = await server.new_model()
    before = await model.logprobs()
    await model.forward_backward([weighted(-1.0)])
    await model.optim_step(learning_rate=RATE)
    await expect_change(server, model, before, -1, "a lower log probability after a step with weights of -1")


@AREA.must(
    22,
    contract=("forward_backward", "Datum.loss_fn_inputs"),
    remedy="Exclude targets with weight 0 from the loss and from its gradient.",
    needs=("TRN-024",),
    breaks=[WRONG_NUMBERS],
)
async def zero_weights_mask(server: Server) -> None:
    """Targets with weight 0 do not contribute to the gradient."""
    model = await server.new_model()
    before = await model.logprobs()
    await model.forward_backward([weighted(0.0)])
    await model.optim_step(learning_rate=LARGE_RATE)
    expect_same(server, before, await model.logprobs(), "an unchanged model after a step with weights of 0")


@AREA.must(
    23,
    contract=("optim_step", "AdamParams.learning_rate"),
    remedy="Use the learning rate of each request.",
    needs=("TRN-024", "TRN-028"),
    breaks=[WRONG_NUMBERS],
)
async def zero_rate_changes_nothing(server: Server) -> None:
    """A step with a learning rate of 0 does not change the model."""
    model = await server.new_model()
    before = await model.logprobs()
    await model.forward_backward([make_datum()])
    await model.optim_step(learning_rate=0.0)
    expect_same(server, before, await model.logprobs(), "an unchanged model after a step of rate 0")


@AREA.must(
    35,
    contract=("forward_backward", "Datum.loss_fn_inputs"),
    remedy="Multiply the gradient of each target by its weight, and do not divide by the sum of the weights.",
    needs=("TRN-021",),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "trains forward_backward_custom with wrong gradients")],
)
async def weights_scale_gradients(server: Server) -> None:
    """The weights of a batch decide how much each example counts: 3 outweighs -1, and -3 outweighs 1."""
    for direction in (1, -1):
        model = await server.new_model()
        before = await model.logprobs()
        batch = [weighted(3.0 * direction), weighted(-1.0 * direction)]
        await model.forward_backward(batch)
        await model.optim_step(learning_rate=RATE)
        change = "a higher" if direction > 0 else "a lower"
        what = f"{change} log probability of an example with the weights {3 * direction} and {-direction} in a batch"
        await expect_change(server, model, before, direction, what)


@AREA.must(
    25,
    contract=("forward_backward", "optim_step"),
    remedy="Add the gradients of each forward_backward to those since the last step; do not replace them.",
    needs=("TRN-021",),
    breaks=[WRONG_NUMBERS],
)
async def gradients_add_up(server: Server) -> None:
    """The gradients of two forward_backward add up: their order does not decide the direction of the step."""
    changes = []
    for weights in ((3.0, -1.0), (-1.0, 3.0)):
        model = await server.new_model()
        [before] = await model.logprobs()
        for weight in weights:
            await model.forward_backward([weighted(weight)])
        await model.optim_step(learning_rate=RATE)
        [after] = await model.logprobs()
        changes.append(sum(after) - sum(before))
    received = f"changes of its log probability by {changes[0]:+.4f} and {changes[1]:+.4f} nats"
    expectation = "steps in one direction after weights of 3 and -1 and after weights of -1 and 3"
    expect(changes[0] * changes[1] > 0, expectation, received, server.client.recent[-1])


@AREA.must(
    26,
    contract=("forward_backward", "optim_step"),
    remedy="Sum gradients over calls as over the datums of one call; do not average them over either.",
    needs=("TRN-025", "TRN-028"),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "trains batches that it splits with wrong numbers")],
)
async def two_calls_equal_one(server: Server) -> None:
    """Two forward_backward and a step have the effect of one forward_backward with the datums of both and a step."""
    # A ratio of 3 to 2 between the examples, which an average over the datums of each call would change.
    first, second = [make_datum(), weighted(2.0)], [weighted(2.0, OTHER_TOKENS)]

    async def train_twice(model: TrainingModel) -> None:
        await model.forward_backward(first)
        await model.forward_backward(second)
        await model.optim_step(learning_rate=4 * RATE)

    async def train_once(model: TrainingModel) -> None:
        await model.forward_backward([*first, *second])
        await model.optim_step(learning_rate=4 * RATE)

    await expect_equal_training(server, train_twice, train_once, "the same logprobs after two calls as after one")


@AREA.must(
    27,
    contract=("forward_backward", "optim_step"),
    remedy="Set the accumulated gradients to zero after each step, also after a step of rate 0.",
    needs=("TRN-035", "TRN-023"),
    breaks=[WRONG_NUMBERS],
)
async def step_clears_gradients(server: Server) -> None:
    """A step clears the gradients: the next step does not apply them again."""
    model = await server.new_model()
    before = await model.logprobs()
    await model.forward_backward([weighted(1.0)])
    await model.optim_step(learning_rate=0.0)
    # With 1.4, the new gradient alone outweighs the momentum of the first, but not the old gradient besides it.
    await model.forward_backward([weighted(-1.4)])
    await model.optim_step(learning_rate=4 * RATE)
    await expect_change(server, model, before, -1, "a step with the gradients since the last step only")


@AREA.must(
    29,
    contract=("forward_backward", "optim_step"),
    remedy="Keep the weights, gradients and optimizer of each model apart.",
    needs=("TRN-020", "TRN-028"),
    breaks=[WRONG_NUMBERS],
)
async def models_are_separate(server: Server) -> None:
    """Training of one model does not change another one, and takes no gradients of it."""
    model = await server.model()
    other = await server.new_model()
    before, other_before = await model.logprobs(), await other.logprobs()
    # If gradients were common, those of the shared model would outweigh the others.
    await model.forward_backward([weighted(-30.0)])
    await other.forward_backward([make_datum()])
    await other.optim_step(learning_rate=RATE)
    expect_same(server, before, await model.logprobs(), "an unchanged model after training of another one")
    await expect_change(server, other, other_before, 1, "a step with the gradients of this model only")


@AREA.must(
    36,
    until="0.26.2",
    operations=("unload_model",),
    contract=("unload_model 200", "forward_backward", "optim_step"),
    remedy="Set the accumulated gradients of a model to zero when it is unloaded, or when its place is used again.",
    needs=("TRN-021", "MOD-018"),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "trains with the gradients of a model that was unloaded")],
)
async def unloaded_gradients_are_gone(server: Server) -> None:
    """A new model trains without the gradients of a model that was unloaded before its step."""
    first = await server.new_model()
    await first.forward_backward([weighted(-30.0)])
    await server.futures.wait(await first.unload())
    model = await server.new_model()
    before = await model.logprobs()
    await model.forward_backward([make_datum()])
    await model.optim_step(learning_rate=RATE)
    await expect_change(server, model, before, 1, "a step with the gradients of the new model only")


@AREA.should(
    30,
    contract=("optim_step", "AdamParams.beta1"),
    remedy="Use beta1 of each request as the decay of the mean of gradients.",
    needs=("TRN-027",),
    breaks=[WRONG_NUMBERS],
)
async def beta1_is_used(server: Server) -> None:
    """A step with beta1 of 0 follows its own gradient, without momentum."""
    model = await server.new_model()
    before = await model.logprobs()
    await model.forward_backward([weighted(1.0)])
    await model.optim_step(learning_rate=0.0)
    # With the default of 0.9, the momentum of the first gradient outweighs half of it.
    await model.forward_backward([weighted(-0.5)])
    await model.optim_step(learning_rate=RATE, beta1=0.0)
    await expect_change(server, model, before, -1, "a step along its own gradient with beta1 of 0")


@AREA.should(
    31,
    contract=("optim_step", "AdamParams.beta2"),
    remedy="Use beta2 of each request as the decay of the mean of squared gradients.",
    needs=("TRN-030",),
    breaks=[WRONG_NUMBERS],
)
async def beta2_is_used(server: Server) -> None:
    """A step with beta2 of 0 forgets the size of earlier gradients."""
    model = await server.new_model()
    before = await model.logprobs()
    await model.forward_backward([weighted(10_000.0)])
    await model.optim_step(learning_rate=0.0)
    # With the default of 0.95, the first gradient makes this step several thousand times smaller.
    await model.forward_backward([weighted(1.0)])
    await model.optim_step(learning_rate=RATE, beta1=0.0, beta2=0.0)
    await expect_change(server, model, before, 1, "a step of full size with beta2 of 0")


@AREA.should(
    32,
    contract=("optim_step", "AdamParams.eps"),
    remedy="Add eps of each request to the square root of the mean of squared gradients.",
    needs=("TRN-024", "TRN-028"),
    breaks=[WRONG_NUMBERS],
)
async def eps_is_used(server: Server) -> None:
    """A step with a very large eps hardly changes the model."""
    model = await server.new_model()
    before = await model.logprobs()
    await model.forward_backward([make_datum()])
    await model.optim_step(learning_rate=LARGE_RATE, eps=1e6)
    expect_same(server, before, await model.logprobs(), "an almost unchanged model after a step with eps of 1e6")


@AREA.should(
    33,
    since="0.7.0",
    contract=("optim_step", "AdamParams.weight_decay"),
    remedy="Subtract learning rate times weight_decay times the weights in each step, as AdamW does.",
    needs=("TRN-020",),
    breaks=[Breakage("0.7.0", None, Feature.TRAIN, "trains without the weight decay that was set")],
)
async def weight_decay_is_used(server: Server) -> None:
    """A step with weight_decay of 1 / learning_rate returns to the base model."""
    model = await server.new_model()
    base = await model.logprobs()
    await model.forward_backward([weighted(1.0)])
    await model.optim_step(learning_rate=4 * RATE)
    await expect_change(server, model, base, 1, "a lower loss after a step")
    rate = 1e-6
    await model.forward_backward([weighted(1.0)])
    await model.optim_step(learning_rate=rate, weight_decay=1 / rate)
    expect_same(server, base, await model.logprobs(), "the base model after all weights decayed")


@AREA.should(
    34,
    since="0.7.0",
    contract=("optim_step", "AdamParams.grad_clip_norm"),
    remedy="Scale the gradient down to a global norm of grad_clip_norm before the step; 0 means no limit.",
    needs=("TRN-027",),
    breaks=[Breakage("0.7.0", None, Feature.TRAIN, "trains without the gradient clipping that was set")],
)
async def gradient_is_clipped(server: Server) -> None:
    """A step with grad_clip_norm limits the gradient, so that later steps are not led by its momentum."""
    model = await server.new_model()
    before = await model.logprobs()
    await model.forward_backward([weighted(1000.0)])
    await model.optim_step(learning_rate=0.0, grad_clip_norm=1e-3)
    await model.forward_backward([weighted(-1.0)])
    await model.optim_step(learning_rate=RATE)
    await expect_change(server, model, before, -1, "a momentum of a clipped gradient")
