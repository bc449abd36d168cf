"""Results of queued work."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping

from tinkerwire._server.futures.completion_log import CopyCompletions, FinishedSample
from tinkerwire._server.futures.store import ServerFuture
from tinkerwire._server.handlers.handler import Handler
from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import DONE, Response, invalid
from tinkerwire._server.state import State
from tinkerwire_generated.models import (
    CancelFutureRequest,
    CompleteMetadataResponse,
    FutureFailed,
    FutureFinished,
    FutureRetrieveRequest,
    FuturesRetrieveRequest,
    FuturesRetrieveResponse,
    TryAgainResponse,
)


def retrieve_future(state: State, request: Request) -> Awaitable[Response]:
    """Hold the request until the result is there, or for as long as the server holds any."""
    body: FutureRetrieveRequest = request.body
    promise = state.futures.get(body.request_id)
    return _result(state, promise, request.headers.get("accept", ""), body.allow_metadata_only)


async def _result(state: State, promise: ServerFuture, accept: str, may_tell_size: bool) -> Response:
    result = await promise.wait(state.settings.long_poll_s)
    if result is None:
        return Response(status=408, body=TryAgainResponse(request_id=promise.request_id, queue_state="active"))
    size = len(result.content)
    if may_tell_size and size > state.settings.max_inline_bytes:
        return Response(body=CompleteMetadataResponse(status="complete_metadata", response_payload_size=size))
    state.futures.mark_fetched(promise)
    sent = state.encoder.accepted(result, accept)
    return Response(body=sent.content, headers={"content-type": sent.media})


def retrieve_futures(state: State, request: Request) -> Awaitable[Response]:
    """Hold the request until a sample of the sampling session has ended that the client does not know of."""
    body: FuturesRetrieveRequest = request.body
    if body.prev_cursor < 0:
        raise invalid("prev_cursor", f"expected 0 or more, got {body.prev_cursor}")
    if body.timeout is not None and not body.timeout >= 0:
        raise invalid("timeout", f"expected 0 seconds or more, got {body.timeout}")
    session = state.samplers.get(body.target.sampling_session_id)
    completions = session.completions.of_clone(body.target.cloned_sampler_id)
    completions.acknowledge(body.prev_cursor, set(body.retrieved_request_ids))
    long_poll_s = state.settings.long_poll_s
    return _ended(
        completions, body.prev_cursor, long_poll_s if body.timeout is None else min(long_poll_s, body.timeout)
    )


async def _ended(completions: CopyCompletions, cursor: int, timeout_s: float) -> Response:
    found, reached = await completions.after(cursor, timeout_s)
    return Response(body=FuturesRetrieveResponse(completions=[_outcome(each) for each in found], cursor=reached))


def _outcome(ended: FinishedSample) -> FutureFinished | FutureFailed:
    if ended.size_bytes is None:
        return FutureFailed(request_id=ended.request_id)
    return FutureFinished(request_id=ended.request_id, response_payload_uncompressed_size=ended.size_bytes)


def cancel_future(state: State, request: Request) -> Response:
    """Drop a sample that nobody waits for; one that is there stays there."""
    body: CancelFutureRequest = request.body
    promise = state.futures.get(body.request_id)
    if promise.model_id is not None:
        raise invalid("request_id", f"{promise.request_id} is an operation on a model; only samples can be cancelled")
    state.futures.cancel(promise)
    return DONE


HANDLERS: Mapping[str, Handler] = {
    "retrieve_future": retrieve_future,
    "retrieve_futures": retrieve_futures,
    "cancel_future": cancel_future,
}
