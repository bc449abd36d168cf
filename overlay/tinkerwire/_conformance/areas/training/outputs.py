"""Requirements on the outputs of forward and forward_backward."""

from __future__ import annotations

import math

import numpy as np

from tinkerwire_generated import models

from ...checks.breakages import WRONG_NUMBERS
from ...checks.training_effect import OTHER_TOKENS, THIRD_TOKENS, expect_loss, expect_same
from ...requirement import Breakage, Feature
from ...subject.server import Server
from ...subject.training_model import TOKENS, logprobs_of, make_datum
from ...violation import expect
from .area import AREA, RAISES_ON_TRAINING

TARGET_WEIGHTS = (1.0, 0.5, 2.0, 0.0, 1.0, 0.0, 0.25, 3.0)


@AREA.must(
    1,
    contract=("forward_backward 200", "ForwardBackwardOutput.loss_fn_outputs"),
    remedy="Return one entry in loss_fn_outputs for each datum of the request, in its order.",
    needs=("MOD-001",),
    breaks=[RAISES_ON_TRAINING],
)
async def forward_backward_returns_output(server: Server) -> None:
    """A forward_backward ends in an output with one entry for each datum."""
    await (await server.model()).forward_backward([make_datum(), make_datum(OTHER_TOKENS)])


@AREA.must(
    2,
    contract=("optim_step 200", "OptimStepResponse"),
    remedy="Apply the accumulated gradients and return a result, with metrics that are numbers, null or absent.",
    needs=("TRN-001",),
    breaks=[RAISES_ON_TRAINING],
)
async def optim_step_ends(server: Server) -> None:
    """An optim_step ends in a result."""
    model = await server.model()
    await model.forward_backward([make_datum()])
    await model.optim_step(learning_rate=1e-4)


@AREA.must(
    3,
    contract=("forward_backward 200", "ForwardBackwardOutput.loss_fn_outputs"),
    remedy="Compute forward as forward_backward without gradients; newer versions set forward_only in its message.",
    needs=("MOD-001",),
    breaks=[RAISES_ON_TRAINING],
)
async def forward_returns_output(server: Server) -> None:
    """Forward ends in an output with one entry for each datum."""
    await (await server.model()).forward([make_datum(), make_datum(OTHER_TOKENS)])


@AREA.must(
    4,
    contract="ForwardBackwardOutput.loss_fn_outputs",
    remedy="Return the tensor logprobs for each datum: the log probability (nats) of each target token.",
    needs=("TRN-003",),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "raises KeyError in forward_backward_custom")],
)
async def outputs_have_logprobs(server: Server) -> None:
    """Each output has logprobs: finite numbers of at most 0, one for each target token."""
    output = await (await server.model()).forward([make_datum()])
    [row] = logprobs_of(output)
    exchange = server.client.recent[-1]
    expect(len(row) == len(TOKENS), f"{len(TOKENS)} logprobs for {len(TOKENS)} targets", len(row), exchange)
    bad = [value for value in row if not math.isfinite(value) or value > 1e-3]
    expect(not bad, "finite logprobs of at most 0", bad, exchange)


@AREA.must(
    5,
    contract="LossFnOutput",
    remedy="Set dtype of logprobs to float32, or in protobuf also to bfloat16, and shape to that of target_tokens.",
    needs=("TRN-004",),
    breaks=[RAISES_ON_TRAINING],
)
async def logprobs_have_shape_of_targets(server: Server) -> None:
    """The tensor logprobs has floating-point numbers in the shape of target_tokens."""
    output = await (await server.model()).forward([make_datum()])
    tensor = output.loss_fn_outputs[0]["logprobs"]
    exchange = server.client.recent[-1]
    expect(tensor.dtype == "float32", "the dtype float32", tensor.dtype, exchange)
    shape = tensor.to_numpy().shape
    expect(shape == (len(TOKENS),), f"the shape [{len(TOKENS)}]", list(shape), exchange)


@AREA.must(
    6,
    contract="ForwardBackwardOutput.loss_fn_outputs",
    remedy="Return the outputs in the order of the datums, also if you sort them by length or split the batch.",
    needs=("TRN-004",),
    breaks=[WRONG_NUMBERS],
)
async def outputs_are_in_order(server: Server) -> None:
    """The outputs of a batch are in the order of its datums, and equal those of each datum alone."""
    model = await server.model()
    data = [make_datum(THIRD_TOKENS), make_datum(), make_datum(OTHER_TOKENS)]
    alone = [(await model.logprobs([datum]))[0] for datum in data]
    batch = await model.logprobs(data)
    expect_same(server, alone, batch, "the logprobs of each datum alone, in order")


@AREA.must(
    7,
    contract="ForwardBackwardOutput.loss_fn_outputs",
    remedy="Remove the padding from each output, and mask it in the attention.",
    needs=("TRN-006",),
    breaks=[WRONG_NUMBERS],
)
async def datums_may_have_different_lengths(server: Server) -> None:
    """The datums of a batch may have different lengths, and padding changes neither lengths nor numbers."""
    model = await server.model()
    tokens = [TOKENS[:3], OTHER_TOKENS, TOKENS[:5]]
    rows = await model.logprobs([make_datum(sequence) for sequence in tokens])
    lengths, expected = [len(row) for row in rows], [len(sequence) for sequence in tokens]
    expect(lengths == expected, f"lengths of {expected}", lengths, server.client.recent[-1])
    whole = await model.logprobs([make_datum()])
    # The model is causal, and the last target of a shorter example is another one.
    for row, sequence in ((rows[0], tokens[0]), (rows[2], tokens[2])):
        end = len(sequence) - 1
        expect_same(server, [whole[0][:end]], [row[:end]], "the logprobs of the same tokens in a longer datum")


@AREA.must(
    8,
    contract="ForwardBackwardOutput.metrics",
    remedy="Name metrics as name:reduction with one colon, such as loss:sum; clients merge parts of a batch by it.",
    needs=("TRN-001",),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "raises ValueError on every forward_backward")],
)
async def metrics_have_reductions(server: Server) -> None:
    """The names of metrics of forward_backward have exactly one colon."""
    output = await (await server.model()).forward_backward([make_datum()])
    bad = [name for name in output.metrics if name.count(":") != 1]
    expect(not bad, "names such as loss:sum", ", ".join(bad), server.client.recent[-1])


@AREA.should(
    9,
    contract="ForwardBackwardOutput.metrics",
    remedy="Return the sum of the loss over all targets of the batch as the metric loss:sum.",
    needs=("TRN-001",),
    breaks=[Breakage("0.30.4", None, Feature.TRAIN, "raises KeyError in forward_backward_custom")],
)
async def metrics_have_the_loss(server: Server) -> None:
    """The metrics of forward_backward have loss:sum."""
    output = await (await server.model()).forward_backward([make_datum()])
    expect("loss:sum" in output.metrics, "loss:sum", ", ".join(output.metrics) or "none", server.client.recent[-1])


@AREA.must(
    10,
    contract="ForwardBackwardOutput.metrics",
    remedy="Compute cross_entropy as minus the sum of weight times logprob, over all targets of all datums.",
    needs=("TRN-006",),
    breaks=[WRONG_NUMBERS],
)
async def loss_equals_weighted_logprobs(server: Server) -> None:
    """The loss of cross_entropy is minus the sum of weights times the returned logprobs, over the whole batch."""
    model = await server.model()
    weights = [TARGET_WEIGHTS, TARGET_WEIGHTS[::-1]]
    data = [make_datum(tokens, weights=row) for tokens, row in zip((TOKENS, OTHER_TOKENS), weights, strict=True)]
    output = await model.forward_backward(data)
    expected = -float(np.sum(np.multiply(weights, logprobs_of(output))))
    expect_loss(server, output, expected, "minus the sum of weights times logprobs")


@AREA.should(
    11,
    contract="ForwardBackwardOutput.metrics",
    remedy="Return the same loss from forward as from forward_backward.",
    needs=("TRN-010",),
)
async def forward_has_the_loss(server: Server) -> None:
    """The loss of forward is minus the sum of weights times the returned logprobs."""
    output = await (await server.model()).forward([make_datum(weights=TARGET_WEIGHTS)])
    expected = -float(np.dot(TARGET_WEIGHTS, logprobs_of(output)[0]))
    expect_loss(server, output, expected, "minus the sum of weights times logprobs")


@AREA.must(
    12,
    contract=("forward_backward", "ForwardBackwardOutput"),
    remedy="Compute the same log probabilities in forward and forward_backward; do not use dropout.",
    needs=("TRN-004",),
    breaks=[WRONG_NUMBERS],
)
async def forward_agrees_with_forward_backward(server: Server) -> None:
    """Forward and forward_backward return the same logprobs for the same datum."""
    model = await server.model()
    before = await model.logprobs()
    output = await model.forward_backward([make_datum()])
    expect_same(server, before, logprobs_of(output), "the logprobs of forward")


@AREA.must(
    13,
    contract="ModelInput.chunks",
    remedy="Join the tokens of all chunks of a model input before you compute anything.",
    needs=("TRN-004",),
    breaks=[WRONG_NUMBERS],
)
async def chunks_are_one_input(server: Server) -> None:
    """A model input of several text chunks has the logprobs of the same tokens in one chunk."""
    model = await server.model()
    whole = make_datum()
    parts: list[models.ModelInputChunk] = [
        models.EncodedTextChunk(tokens=list(part)) for part in (TOKENS[:3], TOKENS[3:4], TOKENS[4:])
    ]
    chunked = models.Datum(model_input=models.ModelInput(chunks=parts), loss_fn_inputs=whole.loss_fn_inputs)
    expect_same(server, await model.logprobs([whole]), await model.logprobs([chunked]), "the logprobs of one chunk")


@AREA.must(
    14,
    contract="Datum.loss_fn_inputs",
    remedy="Score the target_tokens of the datum; do not derive targets from the input.",
    needs=("TRN-004",),
    breaks=[WRONG_NUMBERS],
)
async def targets_are_those_of_the_datum(server: Server) -> None:
    """The logprobs are those of target_tokens: another target changes the logprob of its position only."""
    model = await server.model()
    targets = [*TOKENS[1:], TOKENS[0]]
    rows = await model.logprobs([make_datum(), make_datum(targets=[*targets[:4], 90, *targets[5:]])])
    rest = [[value for place, value in enumerate(row) if place != 4] for row in rows]
    expect_same(server, rest[:1], rest[1:], "the same logprobs of the other positions")
    difference = abs(rows[0][4] - rows[1][4])
    # Two tokens may have almost the same probability, but not also a third one.
    if difference < 1e-3:
        [third] = await model.logprobs([make_datum(targets=[*targets[:4], 110, *targets[5:]])])
        difference = abs(rows[0][4] - third[4])
    expect(difference >= 1e-3, "another logprob of another target", "the same", server.client.recent[-1])


@AREA.may(
    15,
    contract="Datum.loss_fn_inputs",
    remedy="Accept target_tokens and weights of shape (tokens, K), for K targets at each position.",
    needs=("TRN-006",),
)
async def positions_may_have_many_targets(server: Server) -> None:
    """The tensor target_tokens may have two dimensions, for several targets at each position."""
    model = await server.model()
    targets = [[*TOKENS[1:], TOKENS[0]], list(OTHER_TOKENS)]
    shape = [len(TOKENS), 2]
    columns = np.transpose(targets).reshape(-1).tolist()
    inputs = {
        "target_tokens": models.TensorData(data=columns, dtype="int64", shape=shape),
        "weights": models.TensorData(data=[1.0] * len(columns), dtype="float32", shape=shape),
    }
    datum = models.Datum(model_input=models.ModelInput.from_ints(list(TOKENS)), loss_fn_inputs=inputs)
    output = await model.forward([datum])
    values = output.loss_fn_outputs[0]["logprobs"].to_numpy()
    expect(values.shape == tuple(shape), f"logprobs of the shape {shape}", list(values.shape), server.client.recent[-1])
    alone = await model.logprobs([make_datum(targets=row) for row in targets])
    expect_same(server, alone, values.T.tolist(), "the logprobs of each column of targets alone")
