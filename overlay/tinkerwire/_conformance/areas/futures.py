"""Requirements on futures: promises, polls, results, failures."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any

import attrs
import orjson

from tinkerwire_generated import models
from tinkerwire_generated.api.futures import retrieve_future

from ..checks.differences import largest_difference
from ..checks.rejection import Rejection, submit_or_reject
from ..client.futures import HELD_POLL_TIMEOUT_S, QueuedWork, is_final_rejection, is_unready
from ..exchange import Exchange
from ..requirement import Area, Breakage, Feature
from ..subject.sampler import LOGPROB_TOLERANCE
from ..subject.server import Server
from ..subject.training_model import TOKENS, logprobs_of, make_datum
from ..violation import NotApplicable, Violation, expect

AREA = Area("FUT", "futures", "Futures: promises, polls, results and failures")
OFFICIAL_POLL_TIMEOUT_S = 45.0
"""Time after which the official SDK gives up a poll."""
LOSES_RESULTS = Breakage("0.3.0", None, Feature.TRAIN, "raises an error in place of the result")
LONG_SAMPLE: dict[str, Any] = {"max_tokens": 256, "num_samples": 8, "seed": None}


@AREA.must(
    1,
    contract=("forward_backward 200", "UntypedAPIFuture.request_id"),
    remedy="Respond to forward_backward with status 200 and a JSON object that has request_id, a string.",
    needs=("MOD-001",),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "cannot wait for the result")],
)
async def submission_returns_promise(server: Server) -> None:
    """A training operation returns a request_id that is a string."""
    model = await server.model()
    submission = await server.futures.submit(model.forward_backward_call([make_datum()]))
    expect(bool(submission.request_id), "a request_id that is not empty", "an empty one", submission.exchange)
    await server.futures.wait(submission)


@AREA.must(
    2,
    contract=("retrieve_future 200", "ForwardBackwardOutput"),
    remedy="Return the result itself as the body of retrieve_future, without a wrapper.",
    needs=("FUT-001",),
    breaks=[LOSES_RESULTS],
)
async def poll_returns_result(server: Server) -> None:
    """A poll with the request_id returns the result of the operation, without a wrapper."""
    await (await server.model()).forward_backward([make_datum()])


@AREA.must(
    3,
    contract=("retrieve_future 408", "TryAgainResponse"),
    remedy="Answer a poll before the result is ready with status 408, or with status 200 and the type try_again.",
    needs=("SMP-001",),
    breaks=[LOSES_RESULTS],
)
async def unready_poll_asks_for_another(server: Server) -> None:
    """A poll before the result is ready is answered with status 408 or with try_again, in a body of the contract."""
    for exchange in await _poll_while_running(server):
        if is_unready(exchange):
            server.client.require_contract("retrieve_future", exchange)
            return
    raise NotApplicable("every poll was held until the result was ready")


@AREA.must(
    4,
    contract="retrieve_future 408",
    remedy="Answer a poll after at most 40 s, with 408 if the result is not ready.",
    needs=("SMP-001",),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "times out, polls again and logs a warning for each poll")],
)
async def poll_is_not_held_too_long(server: Server) -> None:
    """A poll is held for less than the 45 s after which the official SDK gives it up."""
    for exchange in await _poll_while_running(server):
        limit = f"a response within {OFFICIAL_POLL_TIMEOUT_S:g} s"
        expect(exchange.seconds < OFFICIAL_POLL_TIMEOUT_S, limit, f"{exchange.seconds:.0f} s", exchange)


@AREA.should(
    5,
    contract="retrieve_future 408",
    remedy="Hold a poll until the result is ready, for some seconds at least: each early answer costs a request.",
    needs=("FUT-003",),
)
async def poll_is_held(server: Server) -> None:
    """A poll before the result is ready is held for at least half a second, or until the result."""
    early = [
        exchange for exchange in await _poll_while_running(server) if is_unready(exchange) and exchange.seconds < 0.5
    ]
    if early:
        raise Violation("a poll that is held for 0.5 s or longer", f"408 after {early[0].seconds:.3f} s", early[0])


@AREA.must(
    6,
    contract="retrieve_future 200",
    remedy="Keep a result for some minutes after it was fetched: the response may have been lost on its way.",
    needs=("FUT-002",),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "loses a result if one response is lost")],
)
async def result_can_be_fetched_twice(server: Server) -> None:
    """A result can be fetched again, and is the same to the byte."""
    submission = await _submit_forward(server)
    first = await server.futures.wait(submission)
    second = await server.futures.poll(submission)
    same = second.status == 200 and second.content == first.exchange.content
    expect(same, "the same result as in the first response", second.describe(), second)


@AREA.must(
    7,
    contract="retrieve_future 200",
    remedy="Answer every poll for a finished result with it, also if several are open at the same time.",
    needs=("FUT-002",),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "loses a result after a timeout")],
)
async def concurrent_polls_get_the_result(server: Server) -> None:
    """Two polls for one result at the same time both get it."""
    submission = await _submit_forward(server)
    first, second = await asyncio.gather(server.futures.wait(submission), server.futures.wait(submission))
    same = first.exchange.content == second.exchange.content
    expect(same, "the same result in both responses", second.exchange.describe(), second.exchange)


@AREA.must(
    8,
    contract=("retrieve_future 404", "retrieve_future 410"),
    remedy="Answer a poll for an id that was never given, or that has expired, with 404 or 410, at once.",
    needs=("SMP-001",),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "polls forever")],
)
async def unknown_id_is_an_error(server: Server) -> None:
    """A poll for an unknown request_id is answered with a status from 400 to 499 that ends the polling."""
    exchange = await _poll_unknown_id(server)
    expect(is_final_rejection(exchange), "404 or 410", exchange.describe(), exchange)


@AREA.should(
    9,
    contract=("retrieve_future 404", "retrieve_future 410"),
    remedy="Use 404 for an id that was never given; clients read other statuses as errors of the request.",
    needs=("FUT-008",),
)
async def unknown_id_is_not_found(server: Server) -> None:
    """A poll for an unknown request_id is answered with 404 or 410."""
    exchange = await _poll_unknown_id(server)
    expect(exchange.status in (404, 410), "404 or 410", exchange.describe(), exchange)
    server.client.require_contract("retrieve_future", exchange)


@AREA.must(
    10,
    contract=("RequestFailedResponse.error", "RequestFailedResponse.category"),
    remedy="Report failed work with status 200, an error text and a category; a 5xx is retried endlessly.",
    needs=("FUT-001",),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "polls a failed operation forever, or hides its error")],
)
async def failure_is_a_result(server: Server) -> None:
    """Work that fails ends in a result with an error text, or is rejected with a 4xx when it is submitted."""
    exchange = await _failed_work(server)
    if exchange.status == 200:
        text = exchange.member("error")
        expect(isinstance(text, str) and bool(text), "an error text in the result", exchange.describe(), exchange)
        server.client.require_contract("retrieve_future", exchange)


@AREA.should(
    11,
    contract="RequestFailedResponse.category",
    remedy="Set category to user for errors of the request, and to server for failures of the server.",
    needs=("FUT-010",),
)
async def failure_has_category(server: Server) -> None:
    """The failure of a request that cannot be served has the category user."""
    exchange = await _failed_work(server)
    if exchange.status != 200:
        raise NotApplicable("the server rejects such work when it is submitted")
    category = exchange.member("category")
    expect(str(category).lower() == "user", "the category user", repr(category), exchange)


@AREA.must(
    12,
    since="0.14.0",
    contract=("FutureRetrieveRequest.allow_metadata_only", "CompleteMetadataResponse"),
    remedy="With allow_metadata_only, return the result, or its size as complete_metadata; without it the result.",
    needs=("FUT-002",),
    breaks=[Breakage("0.14.0", None, Feature.TRAIN, "raises AssertionError or ValueError in place of the result")],
)
async def metadata_may_come_first(server: Server) -> None:
    """A poll with allow_metadata_only returns the result or its size, and the next poll without it the result."""
    submission = await _submit_forward(server)
    await server.futures.wait(submission)
    request = server.futures.poll_request(submission.request_id, submission.result_type, allow_metadata_only=True)
    exchange = await server.client.send(request, HELD_POLL_TIMEOUT_S)
    if exchange.member("status") == "complete_metadata":
        size = exchange.member("response_payload_size")
        expect(isinstance(size, int) and size > 0, "the size of the result in bytes", repr(size), exchange)
    else:
        server.futures.read(submission, exchange)
    await server.futures.wait(submission)


@AREA.must(
    13,
    contract="retrieve_future",
    remedy="Ignore the headers of polls that you do not use; their values are for statistics.",
    needs=("FUT-002",),
    breaks=[LOSES_RESULTS],
)
async def poll_headers_are_optional(server: Server) -> None:
    """A poll without the headers X-Tinker-Request-Type and -Iteration gets the result, too."""
    submission = await _submit_forward(server)
    await server.futures.wait(submission)
    request = server.client.encode(retrieve_future(body=models.FutureRetrieveRequest(request_id=submission.request_id)))
    accept = server.futures.poll_request(submission.request_id, submission.result_type).headers["accept"]
    plain = attrs.evolve(request, headers={**request.headers, "accept": accept})
    server.futures.read(submission, await server.client.send(plain, HELD_POLL_TIMEOUT_S))


@AREA.must(
    14,
    contract=("UntypedAPIFuture.request_id",),
    remedy="Give every operation an id of its own.",
    needs=("FUT-001",),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "gets the result of another operation")],
)
async def ids_are_unique(server: Server) -> None:
    """Different operations have different request_ids."""
    await _expect_unique_ids(server, [await _submit_forward(server) for _ in range(3)])


@AREA.must(
    15,
    contract="RequestFailedResponse.error",
    remedy="Keep the error of failed work as long as a result.",
    needs=("FUT-010",),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "waits endlessly for failed work if one response is lost")],
)
async def failure_can_be_fetched_twice(server: Server) -> None:
    """A failure can be fetched again, and is the same."""
    first = await _failed_work(server)
    if first.status != 200:
        raise NotApplicable("the server rejects such work when it is submitted")
    second = await server.client.send(first.request, HELD_POLL_TIMEOUT_S)
    same = second.status == 200 and second.json() == first.json()
    expect(same, "the same failure as in the first response", second.describe(), second)


@AREA.should(
    16,
    contract=("TryAgainResponse.queue_state", "QueueState"),
    remedy="Set queue_state to active, paused_capacity or paused_rate_limit.",
    needs=("FUT-003",),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "shows the reason of a wait as unknown")],
)
async def queue_state_is_known(server: Server) -> None:
    """The response to a poll for work that runs has a queue_state of the contract, or no body."""
    for body, exchange in await _unready_bodies(server):
        state = body.get("queue_state")
        known = "active, paused_capacity or paused_rate_limit"
        expect(state in ("active", "paused_capacity", "paused_rate_limit"), known, repr(state), exchange)


@AREA.should(
    17,
    contract="TryAgainResponse.request_id",
    remedy="Repeat the request_id of the poll in the response.",
    needs=("FUT-003",),
)
async def unready_response_names_request(server: Server) -> None:
    """The response to a poll for work that runs has the request_id of the poll, or no body."""
    for body, exchange in await _unready_bodies(server):
        polled = orjson.loads(exchange.request.content or b"{}").get("request_id")
        expect(body.get("request_id") == polled, f"request_id {polled}", repr(body.get("request_id")), exchange)


@AREA.must(
    18,
    contract=("retrieve_future 200", "UntypedAPIFuture.request_id"),
    remedy="Keep results by their request_id, whatever the order in which clients fetch them.",
    needs=("FUT-002",),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "gets the result of another operation, or none")],
)
async def results_come_in_any_order(server: Server) -> None:
    """Results can be fetched in another order than that of their submission, and each is that of its own work."""
    model = await server.model()
    data = [make_datum(), make_datum(TOKENS[::-1])]
    submissions = [await server.futures.submit(model.forward_call([datum])) for datum in data]
    last = await server.futures.wait(submissions[1])
    first = await server.futures.wait(submissions[0])
    expected = [(await model.logprobs([datum]))[0] for datum in data]
    for result, logprobs in zip((first, last), expected, strict=True):
        found = logprobs_of(result.value)
        is_close = largest_difference(found, [logprobs]) <= LOGPROB_TOLERANCE
        expect(is_close, f"the logprobs {logprobs}", f"{found}", result.exchange)


@AREA.must(
    19,
    contract="retrieve_future 200",
    remedy="Run queued work whether or not a client polls for its result.",
    needs=("FUT-002",),
    breaks=[Breakage("0.3.0", None, Feature.TRAIN, "waits endlessly for an operation behind one without a poll")],
)
async def work_runs_without_polls(server: Server) -> None:
    """Work runs without polls: the result of a later operation comes although nobody asked for the earlier one."""
    first = await _submit_forward(server)
    await (await server.model()).forward([make_datum()])
    await server.futures.wait(first)


@AREA.should(
    20,
    contract="UntypedAPIFuture.model_id",
    remedy="Set model_id to the model of the work, or leave it out.",
    needs=("FUT-001",),
)
async def future_names_its_model(server: Server) -> None:
    """The model_id of a future is that of the request, or absent."""
    model = await server.model()
    submission = await server.futures.submit(model.forward_call([make_datum()]))
    await server.futures.wait(submission)
    name = submission.future.model_id
    expect(name in (None, model.id), f"{model.id}, or no model_id", f"{name}", submission.exchange)


@AREA.must(
    21,
    contract="UntypedAPIFuture.request_id",
    remedy="Give samples and operations on models ids from one set.",
    needs=("FUT-014", "SMP-001"),
    breaks=[Breakage("0.3.0", None, Feature.SAMPLE, "gets the result of another operation")],
)
async def ids_of_samples_are_unique(server: Server) -> None:
    """Samples have other request_ids than operations on models, and than each other."""
    sampler = await server.base_sampler()
    submissions = [await _submit_forward(server), await sampler.submit(), await sampler.submit()]
    await _expect_unique_ids(server, submissions)


async def _submit_forward(server: Server) -> QueuedWork:
    """Submit a forward of the model that tests share."""
    model = await server.model()
    return await server.futures.submit(model.forward_call([make_datum()]))


async def _expect_unique_ids(server: Server, submissions: Sequence[QueuedWork]) -> None:
    """Wait for work, and raise Violation if two futures have one id."""
    ids = [submission.request_id for submission in submissions]
    for submission in submissions:
        await server.futures.wait(submission)
    expect(len(set(ids)) == len(ids), f"{len(ids)} different ids", ", ".join(ids), submissions[-1].exchange)


async def _poll_while_running(server: Server) -> list[Exchange]:
    """Return all polls for a sample that takes long."""
    sampler = await server.base_sampler()
    result = await server.futures.wait(await sampler.submit(**LONG_SAMPLE))
    return [*result.unready, result.exchange]


async def _poll_unknown_id(server: Server) -> Exchange:
    """Poll for an id that has the form of the server's ids, but was never given."""
    submission = await (await server.base_sampler()).submit()
    known = submission.request_id
    unknown = f"{known}999999" if known.isdigit() else re.sub(r"\d", "9", known)
    await server.futures.wait(submission)
    return await server.client.send(server.futures.poll_request(unknown, "OptimStepResponse"), HELD_POLL_TIMEOUT_S)


async def _unready_bodies(server: Server) -> list[tuple[dict[str, Any], Exchange]]:
    """Return the bodies of polls that were answered before the result, with their exchanges."""
    polls = [exchange for exchange in await _poll_while_running(server) if is_unready(exchange)]
    bodies = [(exchange.json(), exchange) for exchange in polls]
    found = [(body, exchange) for body, exchange in bodies if isinstance(body, dict)]
    if not found:
        raise NotApplicable("every poll was held until the result was ready, or had no body")
    return found


async def _failed_work(server: Server) -> Exchange:
    """Return the response that reports the failure of an operation that cannot be done, or rejects it."""
    model = await server.new_model()
    call = model.forward_backward_call([make_datum(targets=[1])])  # fewer targets than tokens
    submission = await submit_or_reject(server, call)
    if isinstance(submission, Rejection):
        return submission.exchange
    result = await server.futures.wait(submission)
    if result.failure is None:
        # Another requirement tests that such data is rejected.
        raise NotApplicable("the server accepts a datum with fewer targets than tokens")
    return result.exchange
