"""Requirements on the inputs and settings of losses."""

from __future__ import annotations

import attrs

from ...checks.breakages import UNREJECTED_BATCH
from ...checks.rejection import find_rejection, require_rejection, submit_or_reject
from ...checks.training_effect import OTHER_TOKENS, expect_loss
from ...client.futures import RESULT_TIMEOUT_S
from ...requirement import Breakage, Feature
from ...subject.server import Server
from ...subject.training_model import CROSS_ENTROPY, TOKENS, logprobs_of, make_datum, make_loss_datum, without_input
from ...violation import NotApplicable, expect
from .area import AREA
from .policy_loss import ADVANTAGES, IMPORTANCE_SAMPLING, floats

UNKNOWN_LOSS = b"no_such_loss_"
"""As long as cross_entropy, which it replaces in requests of any encoding."""


@AREA.should(
    40,
    contract="ForwardBackwardOutput.loss_fn_outputs",
    remedy="Return elementwise_loss, if at all, as the loss of each target, so that its sum is the metric loss:sum.",
    needs=("TRN-010",),
)
async def elementwise_losses_sum_up(server: Server) -> None:
    """The tensors elementwise_loss, if there are any, sum up to the metric loss:sum."""
    model = await server.model()
    output = await model.forward_backward([make_datum(weights=[2.0, 0.0] * 4), make_datum(OTHER_TOKENS)])
    if not all("elementwise_loss" in item for item in output.loss_fn_outputs) or "loss:sum" not in output.metrics:
        raise NotApplicable("the output does not have both elementwise_loss and loss:sum")
    total = float(sum(item["elementwise_loss"].to_numpy().sum() for item in output.loss_fn_outputs))
    expect_loss(server, output, total, "the sum of elementwise_loss")


@AREA.may(
    41,
    contract="Datum.loss_fn_inputs",
    remedy="Use a weight of 1 for each target of cross_entropy if a datum has no weights.",
    needs=("TRN-010",),
)
async def weights_are_optional(server: Server) -> None:
    """Without weights, each target of cross_entropy has a weight of 1."""
    model = await server.new_model()
    output = await model.forward_backward([without_input(make_datum(), "weights")])
    expect_loss(server, output, -sum(logprobs_of(output)[0]), "minus the sum of all logprobs")


@AREA.must(
    42,
    contract=("forward_backward", "ForwardBackwardInput.loss_fn"),
    remedy="Reject a loss_fn that you do not know; do not fall back to another one.",
    needs=("TRN-001",),
    breaks=[UNREJECTED_BATCH],
)
async def unknown_loss_is_rejected(server: Server) -> None:
    """An unknown loss_fn is rejected with a 4xx, or fails."""
    model = await server.new_model()
    call = model.forward_backward_call([make_datum()])
    request = server.client.encode(call)
    content = request.content or b""
    if CROSS_ENTROPY.encode() not in content:
        raise NotApplicable("the request is compressed")
    changed = attrs.evolve(request, content=content.replace(CROSS_ENTROPY.encode(), UNKNOWN_LOSS))
    await require_rejection(server, call, "an unknown loss_fn", changed)


@AREA.must(
    43,
    contract=("forward_backward", "Datum.loss_fn_inputs"),
    remedy="Reject a datum without an input that its loss needs; do not use a default in its place.",
    needs=("LOS-001",),
    breaks=[UNREJECTED_BATCH],
)
async def missing_inputs_are_rejected(server: Server) -> None:
    """A datum of importance_sampling without logprobs, advantages or target_tokens is rejected."""
    datum = make_loss_datum(TOKENS, OTHER_TOKENS, [-1.0] * len(TOKENS), ADVANTAGES)
    for name in datum.loss_fn_inputs:
        # Some servers reject every operation behind a rejected one.
        model = await server.new_model()
        call = model.forward_backward_call([without_input(datum, name)], IMPORTANCE_SAMPLING)
        await require_rejection(server, call, f"a datum without {name}")


@AREA.should(
    44,
    contract=("forward_backward", "Datum.loss_fn_inputs"),
    remedy="Reject inputs that do not have one number for each target token.",
    needs=("LOS-001",),
    breaks=[UNREJECTED_BATCH],
)
async def lengths_of_inputs_must_agree(server: Server) -> None:
    """A datum of importance_sampling with fewer advantages than target_tokens is rejected."""
    datum = make_loss_datum(TOKENS, OTHER_TOKENS, [-1.0] * len(TOKENS), ADVANTAGES)
    inputs = {**datum.loss_fn_inputs, "advantages": floats([1.0] * 4)}
    model = await server.new_model()
    call = model.forward_backward_call([attrs.evolve(datum, loss_fn_inputs=inputs)], IMPORTANCE_SAMPLING)
    await require_rejection(server, call, "4 advantages for 8 targets")


@AREA.may(
    45,
    contract=("forward_backward", "ForwardBackwardInput.loss_fn_config"),
    remedy="Reject keys of loss_fn_config that the loss does not have, so that typing errors do not go unnoticed.",
    needs=("LOS-010",),
)
async def unknown_settings_are_rejected(server: Server) -> None:
    """A key of loss_fn_config that the loss does not have is rejected."""
    model = await server.new_model()
    datum = make_loss_datum(TOKENS, OTHER_TOKENS, [-1.0] * len(TOKENS), ADVANTAGES)
    call = model.forward_backward_call([datum], "ppo", {"no_such_setting": 1.0})
    await require_rejection(server, call, "an unknown key of loss_fn_config")


@AREA.must(
    46,
    contract=("forward_backward", "RequestFailedResponse"),
    remedy="Check that the loss is finite before you write it into the result: JSON has neither NaN nor infinity.",
    needs=("LOS-001",),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "polls forever for a result that cannot be written")],
)
async def overflow_ends(server: Server) -> None:
    """Work whose ratios overflow ends in a failure or a result, and other models remain usable."""
    model = await server.new_model()
    datum = make_loss_datum(TOKENS, OTHER_TOKENS, [-1e4] * len(TOKENS), ADVANTAGES)
    call = model.forward_backward_call([datum], IMPORTANCE_SAMPLING)
    await find_rejection(server, await submit_or_reject(server, call), RESULT_TIMEOUT_S)
    [row] = await (await server.model()).logprobs()
    expect(all(value <= 1e-3 for value in row), "finite logprobs of another model", row, server.client.recent[-1])
