"""Requirements on the operations that follow a rejected one."""

from __future__ import annotations

import attrs
import orjson

from ...checks.rejection import Rejection, require_rejection, submit_or_reject
from ...checks.training_effect import (
    RATE,
    expect_change,
    weighted,
)
from ...requirement import Breakage, Feature
from ...subject.server import Server
from ...subject.training_model import TrainingModel, make_datum, without_input
from ...violation import NotApplicable
from .area import AREA


@AREA.must(
    20,
    contract=("ForwardBackwardRequest.seq_id", "RequestFailedResponse"),
    remedy="Count a rejected or failed operation as done: run the operation with the next seq_id.",
    needs=("TRN-020", "TRN-046"),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "cannot use the model any more after one bad batch")],
)
async def model_survives_rejection(server: Server) -> None:
    """After an operation that is rejected or fails, those with the next seq_ids run."""
    model = await server.new_model()
    before = await model.logprobs()
    await require_rejection(
        server,
        model.forward_backward_call([without_input(make_datum(), "target_tokens")]),
        "a datum without target_tokens",
    )
    await model.forward_backward([make_datum()])
    await model.optim_step(learning_rate=RATE)
    await expect_change(server, model, before, 1, "a step after a rejected operation")


@AREA.should(
    21,
    contract=("ForwardBackwardRequest.seq_id", "RequestFailedResponse"),
    remedy="Check a batch before you use it: a rejected one leaves no gradients.",
    needs=("ORD-020", "TRN-025", "TRN-035"),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "trains with a part of a batch that was rejected")],
)
async def rejected_batch_leaves_no_gradients(server: Server) -> None:
    """A batch that is rejected because of its last datum leaves no gradients of the others."""
    model = await server.new_model()
    before = await model.logprobs()
    call = model.forward_backward_call([weighted(-3.0), without_input(make_datum(), "target_tokens")])
    await require_rejection(server, call, "a datum without target_tokens")
    await model.forward_backward([make_datum()])
    await model.optim_step(learning_rate=RATE)
    await expect_change(server, model, before, 1, "a step without gradients of the rejected batch")


@AREA.must(
    22,
    contract=("OptimStepRequest.seq_id", "optim_step 422"),
    remedy="Do not wait endlessly for the seq_id of a request that you rejected: clients continue with the next one.",
    needs=("TRN-003",),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "cannot use the model any more after one rejected request")],
    max_s=150.0,
)
async def model_survives_invalid_request(server: Server) -> None:
    """After a request that is rejected as invalid at its submission, operations with the next seq_ids run."""
    model = await server.new_model()
    await _submit_invalid_step(server, model, model.take_seq_id())
    await model.forward([make_datum()])


@AREA.should(
    23,
    contract=("OptimStepRequest.seq_id", "optim_step 422"),
    remedy="Leave the seq_id of a request that you reject at submission free for a corrected one.",
    needs=("ORD-022",),
)
async def rejected_seq_id_is_free(server: Server) -> None:
    """After a request that is rejected as invalid at its submission, a corrected one under its seq_id runs."""
    model = await server.new_model()
    number = model.take_seq_id()
    await _submit_invalid_step(server, model, number)
    await server.futures.run(model.forward_backward_call([make_datum()], seq_id=number))
    await model.forward([make_datum()])


async def _submit_invalid_step(server: Server, model: TrainingModel, seq_id: int) -> None:
    """Submit an optim_step with a text as its learning rate; raise NotApplicable unless it is rejected at once."""
    call = model.optim_step_call(seq_id=seq_id, learning_rate=RATE)
    request = server.client.encode(call)
    body = orjson.loads(request.content or b"")
    body["adam_params"]["learning_rate"] = "fast"
    submission = await submit_or_reject(server, call, attrs.evolve(request, content=orjson.dumps(body)))
    if not isinstance(submission, Rejection):
        raise NotApplicable("the server does not reject a learning rate that is a text at the submission")
