"""Requirements on custom losses, which clients send as a graph for the server to compute."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import attrs

from tinkerwire_generated import models
from tinkerwire_generated.api.training import create_custom_loss

from ...checks.rejection import Rejection, find_rejection, require_rejection, submit_or_reject
from ...checks.training_effect import RATE, expect_change, expect_loss
from ...exchange import Exchange
from ...requirement import Breakage, Feature
from ...subject.server import Server
from ...subject.training_model import TOKENS, TrainingModel, logprobs_of, make_datum
from ...violation import NotApplicable, Violation, expect
from .area import AREA
from .policy_loss import ADVANTAGES, floats

CUSTOM_LOSS = "custom"
ABSENT_STATUSES = (404, 405, 501)
CANNOT_UPLOAD = Breakage("0.36.0", None, Feature.TRAIN, "cannot train with a custom loss that it uploads")


@AREA.should(
    50,
    operations=("create_custom_loss",),
    contract=("create_custom_loss 200", "CreateCustomLossResponse.loss_id"),
    remedy="Return a loss_id for the graph, or set custom_loss_server_side in client/config to false.",
    needs=("TRN-001",),
    breaks=[CANNOT_UPLOAD],
)
async def custom_loss_has_id(server: Server) -> None:
    """A create_custom_loss ends in a loss_id that is not empty."""
    loss_id, exchange = await _create(server, await _request(server))
    expect(bool(loss_id), "a loss_id that is not empty", "an empty one", exchange)


@AREA.must(
    51,
    operations=("create_custom_loss",),
    contract=("forward_backward", "ForwardBackwardInput.loss_fn_config"),
    remedy="Evaluate the graph with the logprobs of each datum and its other inputs, and sum the losses.",
    needs=("LOS-050",),
    breaks=[CANNOT_UPLOAD],
)
async def custom_loss_is_its_graph(server: Server) -> None:
    """The loss custom with a loss_id is the loss that its graph computes, summed over the datums."""
    model, config = await server.model(), await _config(server)
    output = await model.forward_backward([_datum(), _datum()], CUSTOM_LOSS, config)
    expected = -sum(a * p for row in logprobs_of(output) for a, p in zip(ADVANTAGES, row, strict=True))
    expect_loss(server, output, expected, "minus the sum of advantages times logprobs")


@AREA.must(
    52,
    operations=("create_custom_loss",),
    contract=("forward_backward", "optim_step"),
    remedy="Differentiate the graph by the logprobs, and continue with the gradient of the model.",
    needs=("LOS-050", "TRN-020"),
    breaks=[CANNOT_UPLOAD],
)
async def custom_loss_has_gradients(server: Server) -> None:
    """A step of a custom loss follows the gradient of its graph."""
    model, config = await server.new_model(), await _config(server)
    before = await model.logprobs()
    await model.forward_backward([_datum((-1.0,) * len(TOKENS))], CUSTOM_LOSS, config)
    await model.optim_step(learning_rate=RATE)
    await expect_change(server, model, before, -1, "a lower log probability after advantages of -1")


@AREA.must(
    53,
    operations=("create_custom_loss",),
    contract=("create_custom_loss 200", "CreateCustomLossRequest.custom_loss_seq_id"),
    remedy="Return the same loss for the same custom_loss_seq_id of a session: clients retry with it.",
    needs=("LOS-050",),
    breaks=[CANNOT_UPLOAD],
)
async def custom_loss_may_be_sent_again(server: Server) -> None:
    """A create_custom_loss with the same custom_loss_seq_id and content ends in the same loss_id."""
    request = await _request(server)
    first, _ = await _create(server, request)
    second, exchange = await _create(server, request)
    expect(first == second, f"the loss_id {first}", second, exchange)


@AREA.must(
    54,
    operations=("create_custom_loss",),
    contract=("forward_backward 404", "ForwardBackwardInput.loss_fn_config"),
    remedy="Reject the loss custom with a loss_id that the session does not have.",
    needs=("LOS-050",),
    breaks=[CANNOT_UPLOAD],
)
async def unknown_loss_id_is_rejected(server: Server) -> None:
    """The loss custom with an unknown loss_id is rejected, or fails."""
    await _config(server)
    model: TrainingModel = await server.new_model()
    call = model.forward_backward_call([_datum()], CUSTOM_LOSS, {"loss_id": "no-such-loss"})
    await require_rejection(server, call, "an unknown loss_id")


async def _config(server: Server) -> dict[str, str]:
    """Return the loss_fn_config of a custom loss that tests share."""

    async def create() -> str:
        return (await _create(server, await _request(server)))[0]

    return {"loss_id": await server.share("custom loss", create)}


async def _request(server: Server) -> models.CreateCustomLossRequest:
    """Return the request of a new loss: minus the sum of advantages times logprobs."""
    if not server.client.dialect.config.custom_loss_server_side:
        raise NotApplicable("client/config does not set custom_loss_server_side")
    names = ("logprobs", "advantages")
    steps = [models.CustomLossNode(op="placeholder", name=name, target=name) for name in names]
    product = [{"ref": name} for name in names]
    result = {"tuple": [{"ref": "loss"}, {"dict": {}}]}
    steps += [
        models.CustomLossNode(op="call_function", name="product", target="torch.mul", args=product),
        models.CustomLossNode(op="call_method", name="total", target="sum", args=[{"ref": "product"}]),
        models.CustomLossNode(op="call_function", name="loss", target="torch.neg", args=[{"ref": "total"}]),
        models.CustomLossNode(op="output", name="output", target="output", args=[result]),
    ]
    number = next(await server.share("numbers of custom losses", _count))
    return models.CreateCustomLossRequest(
        session_id=await server.session(),
        custom_loss_seq_id=number,
        name=f"loss_{number}",
        inputs=[models.CustomLossInput(name=name, rank=1) for name in names],
        graph=models.CustomLossGraph(nodes=steps),
    )


async def _count() -> Iterator[int]:
    return itertools.count()


async def _create(server: Server, request: models.CreateCustomLossRequest) -> tuple[str, Exchange]:
    """Return the id of a new loss; raise NotApplicable if the server has no custom losses."""
    submission = await submit_or_reject(server, create_custom_loss(body=request))
    if isinstance(submission, Rejection) and submission.exchange.status in ABSENT_STATUSES:
        raise NotApplicable("the server has no create_custom_loss")
    rejection = await find_rejection(server, submission)
    if rejection is not None or isinstance(submission, Rejection):
        raise Violation("the result of create_custom_loss", submission.exchange.describe(), submission.exchange)
    result = await server.futures.wait(submission)
    loss_id: str = result.value.loss_id
    return loss_id, result.exchange


def _datum(advantages: tuple[float, ...] = ADVANTAGES) -> models.Datum:
    datum = make_datum()
    inputs = {"target_tokens": datum.loss_fn_inputs["target_tokens"], "advantages": floats(list(advantages))}
    return attrs.evolve(datum, loss_fn_inputs=inputs)
