"""Requirements on the order of a model's operations by their seq_ids, and on repeated operations."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import orjson

from tinkerwire_base.call import Call, WireRequest
from tinkerwire_generated import models

from ..checks.rejection import Rejection, find_rejection, require_rejection, submit_or_reject
from ..checks.training_effect import (
    LARGE_RATE,
    OTHER_TOKENS,
    RATE,
    THIRD_TOKENS,
    expect_change,
    expect_equal_training,
    expect_same,
    largest_difference,
    weighted,
)
from ..client.futures import QueuedWork
from ..requirement import Area, Breakage, Feature
from ..subject.server import Server
from ..subject.training_model import TOKENS, TrainingModel, logprobs_of, make_datum
from ..violation import NotApplicable, Violation, expect

AREA = Area("ORD", "order", "Order: seq_ids, and repeated operations")
REPEAT_RATE = 4 * RATE
UNHELD_S = 2.0
"""Time within which an operation behind a gap must not end."""
WRONG_ORDER = Breakage("0.3.0", None, Feature.TRAIN, "trains with operations in another order, without an error")
APPLIED_TWICE = Breakage("0.3.0", None, Feature.TRAIN, "trains twice with a batch if a response is lost")


# --- order ------------------------------------------------------------------------------------------------------------


@AREA.must(
    1,
    contract=("ForwardBackwardRequest.seq_id", "OptimStepRequest.seq_id"),
    remedy="Run the operations of a model one after the other, in the order of their seq_ids.",
    needs=("TRN-020",),
    breaks=[WRONG_ORDER],
)
async def operations_run_in_order(server: Server) -> None:
    """Operations that are submitted without waiting run in the order of their seq_ids."""
    model = await server.new_model()
    before = await model.logprobs()
    submissions: list[QueuedWork] = []
    for _ in range(3):
        for call in (
            model.forward_backward_call([make_datum()]),
            model.optim_step_call(learning_rate=RATE),
            model.forward_call([make_datum()]),
        ):
            submissions.append(await server.futures.submit(call))
    rows = [before]
    for submission in submissions:
        result = await server.futures.wait(submission)
        if submission.operation == "optim_step":
            expect(result.failure is None, "the result of optim_step", result.failure, result.exchange)
        else:
            expect(result.failure is None, "an output", result.failure, result.exchange)
            rows.append(logprobs_of(result.value))
    # forward_backward sees the model before its step, forward that after it.
    for step in range(3):
        at_backward, at_forward = rows[2 * step + 1], rows[2 * step + 2]
        expect_same(server, rows[2 * step], at_backward, f"forward_backward {step + 1} on the model before its step")
        change = largest_difference(at_backward, at_forward)
        expect(change > 1e-3, f"forward {step + 1} on the model after its step", "the logprobs before it")
    expect_same(server, rows[-1], await model.logprobs(), "the last forward on the model after all steps")


@AREA.should(
    2,
    contract=("ForwardBackwardRequest.seq_id", "OptimStepRequest.seq_id"),
    remedy="Hold an operation until all lower seq_ids have arrived, or reject it with 409.",
    needs=("ORD-001",),
    breaks=[WRONG_ORDER],
)
async def later_operation_waits(server: Server) -> None:
    """An operation that arrives before one with a lower seq_id does not run before it."""
    model = await server.new_model()
    before = await model.logprobs()
    await model.forward_backward([make_datum()])
    earlier, later = model.take_seq_id(), model.take_seq_id()
    early = await submit_or_reject(server, model.forward_call([make_datum()], seq_id=later))
    await server.futures.run(model.optim_step_call(seq_id=earlier, learning_rate=RATE))
    if isinstance(early, Rejection):
        return
    result = await server.futures.wait(early)
    if result.failure is None:
        change = largest_difference(before, logprobs_of(result.value))
        expect(change > 1e-3, "forward after the step with a lower seq_id", "the logprobs before it", result.exchange)


@AREA.must(
    3,
    since="0.18.2",
    contract=("ForwardBackwardRequest.seq_id", "ClientConfigResponse.parallel_fwdbwd_chunks"),
    remedy="Accept operations in any order of arrival, or set parallel_fwdbwd_chunks in client/config to false.",
    needs=("ORD-001",),
    breaks=[Breakage("0.18.2", None, Feature.TRAIN, "raises on batches that it splits")],
)
async def parts_may_arrive_in_any_order(server: Server) -> None:
    """The parts of a batch end with their own outputs if the first arrives last, as the official SDK sends them."""
    if not server.client.dialect.config.parallel_fwdbwd_chunks:
        raise NotApplicable("client/config sets parallel_fwdbwd_chunks to false")
    model = await server.new_model()
    data = [make_datum(tokens) for tokens in (TOKENS, OTHER_TOKENS, THIRD_TOKENS)]
    expected = await model.logprobs(data)
    numbers = [model.take_seq_id() for _ in data]
    submissions: dict[int, QueuedWork] = {}
    for index in (1, 2, 0):
        call = model.forward_backward_call([data[index]], seq_id=numbers[index])
        submissions[index] = await server.futures.submit(call)
    for index, submission in sorted(submissions.items()):
        result = await server.futures.wait(submission)
        expect(result.failure is None, f"an output of part {index + 1}", result.failure, result.exchange)
        expect_same(server, [expected[index]], logprobs_of(result.value), f"the output of part {index + 1}")


@AREA.should(
    4,
    contract=("ForwardBackwardRequest.seq_id", "retrieve_future 408"),
    remedy="Hold an operation behind a missing seq_id for some seconds: the missing one may be on its way.",
    needs=("ORD-002",),
)
async def gap_is_not_passed_at_once(server: Server) -> None:
    """An operation behind a missing seq_id is held or rejected for two seconds at least."""
    model = await server.new_model()
    await model.forward_backward([make_datum()])
    missing, later = model.take_seq_id(), model.take_seq_id()
    submission = await submit_or_reject(server, model.optim_step_call(seq_id=later, learning_rate=0.0))
    if isinstance(submission, Rejection):
        return
    request = server.futures.poll_request(submission.request_id, submission.result_type)
    exchange = await server.client.send(request, UNHELD_S)
    body = exchange.json() if exchange.status == 200 else None
    is_result = isinstance(body, dict) and "error" not in body and body.get("type") != "try_again"
    expect(not is_result, f"no result of seq_id {later} while {missing} is missing", exchange.describe(), exchange)
    await server.futures.run(model.forward_call([make_datum()], seq_id=missing))
    await server.futures.wait(submission)


@AREA.must(
    5,
    contract=("ForwardBackwardRequest.seq_id", "retrieve_future 200"),
    remedy="End operations behind a seq_id that never arrives, by a rejection or after some seconds: clients lose "
    "seq_ids when requests fail.",
    needs=("TRN-003",),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "polls forever after a request that failed")],
    max_s=150.0,
)
async def gap_does_not_block_forever(server: Server) -> None:
    """An operation behind a seq_id that never arrives ends within 100 s, or is rejected."""
    model = await server.new_model()
    model.take_seq_id()
    await find_rejection(server, await submit_or_reject(server, model.forward_call([make_datum()])))


@AREA.must(
    6,
    contract=("ForwardBackwardRequest.seq_id", "ForwardBackwardRequest.model_id"),
    remedy="Count the seq_ids of each model from 1, apart from those of other models.",
    needs=("TRN-029",),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "cannot train two models at once")],
)
async def models_count_apart(server: Server) -> None:
    """Two models of a session have seq_ids of their own, each from 1."""
    first, second = await server.new_model(), await server.new_model()
    for _ in range(2):
        for model in (first, second):
            await model.forward_backward([make_datum()])
    await first.optim_step(learning_rate=0.0)
    await second.optim_step(learning_rate=0.0)


# --- repeated operations -----------------------------------------------------------------------------------


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


# --- after a rejection ------------------------------------------------------------------------------------------------


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
    await require_rejection(server, model.forward_backward_call([_without_targets()]), "a datum without target_tokens")
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
    call = model.forward_backward_call([weighted(-3.0), _without_targets()])
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


def _without_targets() -> models.Datum:
    datum = make_datum()
    return attrs.evolve(datum, loss_fn_inputs={"weights": datum.loss_fn_inputs["weights"]})


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
