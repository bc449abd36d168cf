"""Requirements on the order in which the operations of a model run."""

from __future__ import annotations

from ...checks.differences import largest_difference
from ...checks.rejection import Rejection, find_rejection, submit_or_reject
from ...checks.training_effect import (
    OTHER_TOKENS,
    RATE,
    THIRD_TOKENS,
    expect_same,
)
from ...client.futures import QueuedWork
from ...requirement import Breakage, Feature
from ...subject.server import Server
from ...subject.training_model import TOKENS, logprobs_of, make_datum
from ...violation import NotApplicable, expect
from .area import AREA

UNHELD_S = 2.0
"""Time within which an operation behind a gap must not end."""
WRONG_ORDER = Breakage("0.3.0", None, Feature.TRAIN, "trains with operations in another order, without an error")


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
