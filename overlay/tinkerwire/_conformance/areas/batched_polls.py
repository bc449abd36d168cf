"""Requirements on batched polls for the samples of a sampling session, and on the cancellation of samples."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from tinkerwire_generated import models
from tinkerwire_generated.api.futures import cancel_future, retrieve_futures
from tinkerwire_generated.constants import SEQ_IDS_PER_COPY

from ..client.futures import MAX_PAUSE_S, QueuedWork
from ..exchange import Exchange
from ..requirement import Area, Breakage, Feature
from ..subject.sampler import OpenSampler
from ..subject.server import Server
from ..subject.training_model import TOKENS
from ..violation import NotApplicable, Violation, expect

AREA = Area("BAT", "batched_polls", "Batched polls and cancellation of samples")
HANGS = Breakage("0.26.2", None, Feature.SAMPLE, "waits for samples endlessly, if client/config asks for batched polls")
COPY = 3
"""Number of a copy of a sampling client."""
WAIT_S = 10.0
"""Time for which a poll waits for samples."""
MAX_WAIT_S = 30.0
"""Time within which a sample must be reported."""
ACKNOWLEDGEMENT_TIMEOUT_S = 5.0
"""Time after which the official SDK gives up a poll that only acknowledges."""


@AREA.must(
    1,
    operations=("retrieve_futures",),
    contract=("retrieve_futures 200", "FuturesRetrieveResponse.completions", "FutureFinished"),
    remedy="Report each finished sample of the sampling session once, with its request_id and the state finished.",
    needs=("FUT-002", "SMP-001"),
    breaks=[HANGS],
)
async def finished_sample_is_reported(server: Server) -> None:
    """A batched poll reports a finished sample with its request_id, and retrieve_future then returns the result."""
    sampler = await server.new_sampler()
    submission = await sampler.submit()
    completions, _, exchange = await _wait_for(server, sampler, {submission.request_id})
    states = {completion.state for completion in completions}
    expect(states == {"finished"}, "the state finished", ", ".join(states), exchange)
    await server.futures.wait(submission)


@AREA.must(
    2,
    operations=("retrieve_futures",),
    contract=("FuturesRetrieveRequest.prev_cursor", "FuturesRetrieveResponse.cursor"),
    remedy="Report samples until prev_cursor of a request covers them: a response may be lost.",
    needs=("BAT-001",),
    breaks=[HANGS],
)
async def unacknowledged_sample_is_reported_again(server: Server) -> None:
    """A poll with the old prev_cursor reports the same sample again."""
    sampler = await server.new_sampler()
    submission = await sampler.submit()
    await _wait_for(server, sampler, {submission.request_id})
    response, exchange = await _poll(server, sampler, timeout=0.0)
    ids = [completion.request_id for completion in response.completions]
    expect(ids == [submission.request_id], f"the sample {submission.request_id} again", f"{ids}", exchange)


@AREA.must(
    3,
    operations=("retrieve_futures",),
    contract=("FuturesRetrieveRequest.prev_cursor", "FuturesRetrieveResponse.cursor"),
    remedy="Report only samples after prev_cursor, and return the cursor of the last of them.",
    needs=("BAT-001",),
    breaks=[HANGS],
)
async def cursor_acknowledges(server: Server) -> None:
    """A poll with the new cursor reports only samples that finished after it."""
    sampler = await server.new_sampler()
    first = await sampler.submit()
    _, cursor, _ = await _wait_for(server, sampler, {first.request_id})
    response, exchange = await _poll(server, sampler, cursor, timeout=0.0)
    expect(not response.completions, "no sample", f"{response.completions}", exchange)
    second = await sampler.submit()
    completions, _, exchange = await _wait_for(server, sampler, {second.request_id}, response.cursor)
    ids = [completion.request_id for completion in completions]
    expect(ids == [second.request_id], f"the sample {second.request_id} only", f"{ids}", exchange)


@AREA.must(
    4,
    operations=("retrieve_futures",),
    contract="FutureFailed",
    remedy="Report a failed sample with the state failed, and return its error from retrieve_future.",
    needs=("BAT-001",),
    breaks=[HANGS],
)
async def failed_sample_is_reported(server: Server) -> None:
    """A batched poll reports a failed sample with the state failed."""
    sampler = await server.new_sampler()
    call = sampler.sample_call([*TOKENS[:-1], 10_000_000])
    exchange = await server.client.send_call(call)
    if exchange.status != 200:
        raise NotApplicable("the server refuses such samples when they are submitted")
    request_id = server.client.read(call, exchange).request_id
    completions, _, exchange = await _wait_for(server, sampler, {request_id})
    states = [completion.state for completion in completions]
    expect(states == ["failed"], "the state failed", ", ".join(states), exchange)


@AREA.must(
    5,
    operations=("retrieve_futures",),
    contract="FuturesRetrieveRequest.timeout",
    remedy="Answer a poll with timeout 0 at once, with no samples if none has finished.",
    needs=("BAT-001",),
    breaks=[Breakage("0.26.2", None, Feature.SAMPLE, "cannot acknowledge samples, and repeats the attempt endlessly")],
)
async def timeout_0_is_not_held(server: Server) -> None:
    """A poll with timeout 0 is answered without a wait."""
    _, exchange = await _poll(server, await server.new_sampler(), timeout=0.0)
    limit = f"a response within {ACKNOWLEDGEMENT_TIMEOUT_S:g} s"
    expect(exchange.seconds < ACKNOWLEDGEMENT_TIMEOUT_S, limit, f"{exchange.seconds:.1f} s", exchange)


@AREA.should(
    6,
    operations=("retrieve_futures",),
    contract="FuturesRetrieveRequest.timeout",
    remedy="Hold a poll until a sample has finished or its timeout is over: each early answer costs a request.",
    needs=("BAT-005",),
)
async def poll_is_held(server: Server) -> None:
    """A poll with timeout 1 is held for at least half a second if no sample finishes, and returns no samples."""
    response, exchange = await _poll(server, await server.new_sampler(), timeout=1.0)
    expect(not response.completions, "no sample", f"{response.completions}", exchange)
    expect(exchange.seconds >= 0.5, "a poll that is held for 0.5 s or longer", f"{exchange.seconds:.3f} s", exchange)


@AREA.must(
    7,
    operations=("retrieve_futures",),
    contract="SamplingSessionFuturesTarget.sampling_session_id",
    remedy="Report samples of the sampling session in target only.",
    needs=("BAT-001",),
    breaks=[HANGS],
)
async def other_sessions_are_not_reported(server: Server) -> None:
    """A poll reports no samples of another sampling session."""
    sampler, other = await server.new_sampler(), await server.new_sampler()
    submission = await other.submit()
    await _wait_for(server, other, {submission.request_id})
    response, exchange = await _poll(server, sampler, timeout=0.0)
    expect(not response.completions, "no sample", f"{response.completions}", exchange)


@AREA.must(
    8,
    operations=("retrieve_futures",),
    contract="SamplingSessionFuturesTarget.cloned_sampler_id",
    remedy="Report samples whose seq_id divided by 1000000000 is cloned_sampler_id, and no others.",
    needs=("BAT-007",),
    breaks=[Breakage("0.26.2", None, Feature.SAMPLE, "loses samples to another process, if it polls in batches")],
)
async def copies_get_their_own_samples(server: Server) -> None:
    """A poll for a copy of a client reports the samples under the seq_ids of this copy, and no others."""
    sampler = await server.new_sampler()
    first = await sampler.submit()
    copied = await sampler.submit(seq_id=COPY * SEQ_IDS_PER_COPY)
    for copy, submission in ((0, first), (COPY, copied)):
        await server.futures.wait(submission)
        completions, _, exchange = await _wait_for(server, sampler, {submission.request_id}, copy=copy)
        ids = [completion.request_id for completion in completions]
        expected = f"the sample {submission.request_id} of copy {copy} only"
        expect(ids == [submission.request_id], expected, f"{ids}", exchange)


@AREA.should(
    9,
    since="0.36.0",
    operations=("retrieve_futures",),
    contract="FuturesRetrieveRequest.retrieved_request_ids",
    remedy="Report a sample no more after retrieved_request_ids had its id.",
    needs=("BAT-002",),
)
async def fetched_sample_is_not_reported(server: Server) -> None:
    """A sample in retrieved_request_ids is not reported again."""
    sampler = await server.new_sampler()
    submission = await sampler.submit()
    await _wait_for(server, sampler, {submission.request_id})
    await server.futures.wait(submission)
    await _poll(server, sampler, timeout=0.0, retrieved_request_ids=[submission.request_id])
    response, exchange = await _poll(server, sampler, timeout=0.0)
    expect(not response.completions, "no sample", f"{response.completions}", exchange)


@AREA.should(
    10,
    operations=("retrieve_futures",),
    contract="retrieve_futures 404",
    remedy="Refuse a poll for a sampling session that does not exist with 404; other clients retry endlessly.",
    needs=("BAT-001",),
    breaks=[Breakage("0.26.2", None, Feature.SAMPLE, "polls endlessly after the server lost a sampling session")],
)
async def unknown_session_is_refused(server: Server) -> None:
    """A batched poll for an unknown sampling session is refused with a 4xx that ends the polling."""
    target = models.SamplingSessionFuturesTarget(sampling_session_id="no-such-sampler")
    call = retrieve_futures(body=models.FuturesRetrieveRequest(target=target, timeout=0.0))
    exchange = await server.client.send_call(call)
    is_final = exchange.is_client_error and exchange.status not in (408, 409, 429)
    expect(is_final, "404", exchange.describe(), exchange)


@AREA.should(
    11,
    operations=("retrieve_futures",),
    contract="FutureFinished.response_payload_uncompressed_size",
    remedy="Set response_payload_uncompressed_size to the size of the result in bytes, or leave it out.",
    needs=("BAT-001",),
)
async def reported_size_is_that_of_the_result(server: Server) -> None:
    """The size that a batched poll reports is above 0, and about that of the result."""
    sampler = await server.new_sampler()
    submission = await sampler.submit()
    completions, _, exchange = await _wait_for(server, sampler, {submission.request_id})
    size = completions[0].response_payload_uncompressed_size
    if size is None:
        raise NotApplicable("the server does not report sizes")
    result = await server.futures.wait(submission)
    actual = len(result.exchange.content)
    # The result may be sent as JSON or protobuf, of which either may be larger.
    fits = 0 < size <= 20 * max(actual, 1)
    expect(fits, f"a size of about {actual} bytes", f"{size}", exchange)


@AREA.should(
    12,
    operations=("cancel_future",),
    contract=("cancel_future 200", "cancel_future 204"),
    remedy="Answer cancel_future for a sample with 200 or 204, also if the sample has ended.",
    needs=("FUT-002", "SMP-001"),
    breaks=[Breakage("0.26.2", None, Feature.SAMPLE, "logs an error for each sample that is cancelled")],
)
async def sample_can_be_cancelled(server: Server) -> None:
    """A sample can be cancelled, and polls for it then end: in its result, in a failure or in a 4xx."""
    sampler = await server.base_sampler()
    submission = await sampler.submit(max_tokens=256, num_samples=8, seed=None)
    await _cancel(server, submission)
    try:
        await server.futures.wait(submission)
    except Violation as error:
        status = error.exchange.status if error.exchange else 0
        if not 400 <= status < 500:
            raise


@AREA.must(
    13,
    operations=("cancel_future",),
    contract="cancel_future",
    remedy="Cancel the one sample that the request names.",
    needs=("BAT-012",),
    breaks=[Breakage("0.26.2", None, Feature.SAMPLE, "loses samples when others are cancelled")],
)
async def other_samples_go_on(server: Server) -> None:
    """The cancellation of a sample leaves other samples of the session alone."""
    sampler = await server.base_sampler()
    cancelled = await sampler.submit(max_tokens=256, num_samples=8, seed=None)
    other = await sampler.submit()
    await _cancel(server, cancelled)
    result = await server.futures.wait(other)
    expect(result.failure is None, "the result of the other sample", f"{result.failure}", result.exchange)


@AREA.should(
    14,
    operations=("cancel_future",),
    contract="cancel_future 404",
    remedy="Answer cancel_future for an unknown id with 404, or like any other; a 5xx is retried.",
    needs=("BAT-012",),
)
async def unknown_id_cannot_be_cancelled(server: Server) -> None:
    """The cancellation of an unknown request_id is answered with a 2xx or a 4xx."""
    call = cancel_future(body=models.CancelFutureRequest(request_id="no-such-request"))
    exchange = await server.client.send_call(call)
    expect(exchange.is_success or exchange.is_client_error, "404", exchange.describe(), exchange)


async def _poll(
    server: Server, sampler: OpenSampler, cursor: int = 0, *, timeout: float, copy: int = 0, **fields: Any
) -> tuple[models.FuturesRetrieveResponse, Exchange]:
    """Poll once for the samples of a sampling session."""
    target = models.SamplingSessionFuturesTarget(sampling_session_id=sampler.id, cloned_sampler_id=copy)
    body = models.FuturesRetrieveRequest(target=target, prev_cursor=cursor, timeout=timeout, **fields)
    return await server.client.call(retrieve_futures(body=body))


async def _wait_for(
    server: Server, sampler: OpenSampler, request_ids: set[str], cursor: int = 0, *, copy: int = 0
) -> tuple[list[Any], int, Exchange]:
    """Poll until some samples are reported; return what the last poll reported, its cursor and its exchange."""
    end = time.monotonic() + MAX_WAIT_S
    while True:
        response, exchange = await _poll(server, sampler, cursor, timeout=WAIT_S, copy=copy)
        if request_ids <= {completion.request_id for completion in response.completions}:
            return list(response.completions), response.cursor, exchange
        if time.monotonic() > end:
            raise Violation(f"a report of {', '.join(request_ids)}", f"none in {MAX_WAIT_S:g} s", exchange)
        # A server need not hold batched polls.
        await asyncio.sleep(MAX_PAUSE_S)


async def _cancel(server: Server, submission: QueuedWork) -> None:
    call = cancel_future(body=models.CancelFutureRequest(request_id=submission.request_id))
    exchange = await server.client.send_call(call)
    expect(exchange.status in (200, 204), "200 or 204", exchange.describe(), exchange)
