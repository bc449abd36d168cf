"""Results of queued work."""

from __future__ import annotations

from collections.abc import Awaitable

from tinkerwire._server.futures.completion_log import CopyCompletions, FinishedSample
from tinkerwire._server.futures.store import ServerFuture
from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import NO_CONTENT, Response, field_error
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
    """Wait for a result, at most for the server's long-poll time."""
    body: FutureRetrieveRequest = request.body
    future = state.futures.get(body.request_id)
    return _wait_for_result(state, future, request.headers.get("accept", ""), body.allow_metadata_only)


async def _wait_for_result(state: State, future: ServerFuture, accept: str, allows_metadata_only: bool) -> Response:
    result = await future.wait(state.settings.long_poll_s)
    if result is None:
        return Response(status=408, body=TryAgainResponse(request_id=future.request_id, queue_state="active"))
    size = len(result.content)
    if allows_metadata_only and size > state.settings.max_inline_bytes:
        return Response(body=CompleteMetadataResponse(status="complete_metadata", response_payload_size=size))
    state.futures.mark_fetched(future)
    converted = state.encoder.convert(result, accept)
    return Response(body=converted.content, headers={"content-type": converted.media})


def retrieve_futures(state: State, request: Request) -> Awaitable[Response]:
    """Wait for finished samples of a sampling session that the client has not acknowledged."""
    body: FuturesRetrieveRequest = request.body
    if body.prev_cursor < 0:
        raise field_error("prev_cursor", f"must be at least 0, got {body.prev_cursor}")
    if body.timeout is not None and not body.timeout >= 0:
        raise field_error("timeout", f"must be 0 or more seconds, got {body.timeout}")
    session = state.samplers.get(body.target.sampling_session_id)
    completions = session.completions.for_copy(body.target.cloned_sampler_id)
    completions.acknowledge(body.prev_cursor, set(body.retrieved_request_ids))
    long_poll_s = state.settings.long_poll_s
    timeout_s = long_poll_s if body.timeout is None else min(long_poll_s, body.timeout)
    return _wait_for_completions(completions, body.prev_cursor, timeout_s)


async def _wait_for_completions(completions: CopyCompletions, cursor: int, timeout_s: float) -> Response:
    samples, next_cursor = await completions.wait_after(cursor, timeout_s)
    body = FuturesRetrieveResponse(completions=[_to_wire(sample) for sample in samples], cursor=next_cursor)
    return Response(body=body)


def _to_wire(sample: FinishedSample) -> FutureFinished | FutureFailed:
    if sample.size_bytes is None:
        return FutureFailed(request_id=sample.request_id)
    return FutureFinished(request_id=sample.request_id, response_payload_uncompressed_size=sample.size_bytes)


def cancel_future(state: State, request: Request) -> Response:
    """Cancel a pending sample; a finished one is unaffected."""
    body: CancelFutureRequest = request.body
    future = state.futures.get(body.request_id)
    if future.model_id is not None:
        text = f"{future.request_id} is an operation on a model; only samples can be cancelled"
        raise field_error("request_id", text)
    state.futures.cancel(future)
    return NO_CONTENT
