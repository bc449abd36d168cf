"""Requirements on operations that are repeated under their seq_id."""

from __future__ import annotations

from collections.abc import Sequence

from tinkerwire_base.call import Call, WireRequest
from tinkerwire_generated import models

from ...checks.rejection import find_rejection, require_rejection, submit_or_reject
from ...checks.training_effect import (
    LARGE_RATE,
    OTHER_TOKENS,
    RATE,
    expect_equal_training,
    expect_same,
)
from ...requirement import Breakage, Feature
from ...subject.server import Server
from ...subject.training_model import TrainingModel, logprobs_of, make_datum
from ...violation import Violation, expect
from .area import AREA

REPEAT_RATE = 4 * RATE
APPLIED_TWICE = Breakage("0.3.0", None, Feature.TRAIN, "trains twice with a batch if a response is lost")


@AREA.must(
    10,
    contract=("ForwardBackwardRequest.seq_id", "forward_backward 200"),
    remedy="Recognize a repeated seq_id of a model, and return the future of its first request.",
    needs=("TRN-003",),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "raises after a response that was lost")],
)
async def repeated_operation_has_same_result(server: Server) -> None:
    """An operation that is repeated under its seq_id, with the same body and key, ends in the same output."""
    model = await server.new_model()
    request = server.client.encode(model.forward_call([make_datum()]))
    await _expect_same_outputs(server, [request, request])


@AREA.must(
    11,
    contract=("ForwardBackwardRequest.seq_id", "forward_backward 200"),
    remedy="Recognize repeated operations by model_id and seq_id: clients renew the idempotency key in later retries.",
    needs=("ORD-010",),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "raises after a server was not reachable for a minute")],
)
async def repeated_operation_may_have_new_key(server: Server) -> None:
    """An operation that is repeated under its seq_id, with a new idempotency key, ends in the same output."""
    model = await server.new_model()
    call = model.forward_call([make_datum()])
    await _expect_same_outputs(server, [server.client.encode(call), server.client.encode(call)])


@AREA.must(
    12,
    contract=("ForwardBackwardRequest.seq_id", "forward_backward"),
    remedy="Do not run a repeated forward_backward: return the future of the first.",
    needs=("TRN-026", "ORD-010"),
    breaks=[APPLIED_TWICE],
)
async def repeated_gradients_count_once(server: Server) -> None:
    """The gradients of a repeated forward_backward count once."""
    # The other example has the same input and other targets, so that counting one twice gives another step.
    other = make_datum(targets=OTHER_TOKENS)

    async def train_once(model: TrainingModel) -> None:
        await model.forward_backward([make_datum()])
        await model.forward_backward([other])
        await model.optim_step(learning_rate=REPEAT_RATE)

    for same_key in (True, False):

        async def train_with_repetition(model: TrainingModel, same_key: bool = same_key) -> None:
            await _send_twice(server, model.forward_backward_call([make_datum()]), same_key=same_key)
            await model.forward_backward([other])
            await model.optim_step(learning_rate=REPEAT_RATE)

        what = "the same" if same_key else "another"
        expectation = f"gradients that count once if the operation is repeated with {what} idempotency key"
        await expect_equal_training(server, train_with_repetition, train_once, expectation)


@AREA.must(
    13,
    contract=("OptimStepRequest.seq_id", "optim_step"),
    remedy="Do not run a repeated optim_step: return the future of the first.",
    needs=("TRN-020", "ORD-010"),
    breaks=[APPLIED_TWICE],
)
async def repeated_step_counts_once(server: Server) -> None:
    """A repeated optim_step changes the model once."""
    for same_key in (True, False):
        model = await server.new_model()
        await model.forward_backward([make_datum()])
        call = model.optim_step_call(learning_rate=LARGE_RATE)
        await server.futures.run(call)
        after = await model.logprobs()
        await _send_twice(server, call, same_key=same_key)
        expect_same(server, after, await model.logprobs(), "a model that did not change after a repeated step")


@AREA.should(
    14,
    contract=("ForwardBackwardRequest.seq_id", "OptimStepRequest.seq_id"),
    remedy="Reject another request under a seq_id that an operation has used, with 409; do not run it.",
    needs=("TRN-020",),
)
async def used_seq_id_is_not_used_again(server: Server) -> None:
    """An operation under the seq_id of an earlier operation of another kind does not run."""
    model = await server.new_model()
    before = await model.logprobs()
    used = model.next_seq_id
    await model.forward_backward([make_datum()])
    call = model.optim_step_call(seq_id=used, learning_rate=LARGE_RATE)
    exchange = await server.client.send_call(call)
    is_answered = exchange.status == 200 or exchange.is_client_error
    expect(is_answered, "409, or the future of the first request", exchange.describe(), exchange)
    expect_same(server, before, await model.logprobs(), f"a model that a step under the used seq_id {used} left alone")


@AREA.should(
    15,
    contract=("ForwardBackwardRequest.seq_id", "forward_backward"),
    remedy="Reject another body under a used seq_id with 409, so that no client takes the old result for the new one.",
    needs=("ORD-014",),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "gets the result of another batch")],
)
async def other_body_is_rejected(server: Server) -> None:
    """An operation with another body under a used seq_id is rejected with a 4xx, or fails."""
    model = await server.new_model()
    used = model.next_seq_id
    await model.forward_backward([make_datum()])
    call = model.forward_backward_call([make_datum(OTHER_TOKENS)], seq_id=used)
    await require_rejection(server, call, f"another body under the used seq_id {used}")


async def _send_twice(server: Server, call: Call[models.UntypedAPIFuture], *, same_key: bool) -> None:
    """Send a request and repeat it, and wait for both ends; the second may be rejected."""
    request = server.client.encode(call)
    second = request if same_key else server.client.encode(call)
    first = await submit_or_reject(server, call, request)
    await find_rejection(server, first)
    await find_rejection(server, await submit_or_reject(server, call, second))


async def _expect_same_outputs(server: Server, requests: Sequence[WireRequest]) -> None:
    """Raise Violation unless repeated requests of a forward end in the same output."""
    contents = []
    for request in requests:
        exchange = await server.client.send(request)
        if exchange.status != 200:
            raise Violation("the future of the first request", exchange.describe(), exchange)
        submission = server.futures.read_submission("forward", exchange)
        result = await server.futures.wait(submission)
        expect(result.failure is None, "the output of the first request", result.failure, result.exchange)
        contents.append(logprobs_of(result.value))
    expect_same(server, contents[0], contents[1], "the output of the first request")
