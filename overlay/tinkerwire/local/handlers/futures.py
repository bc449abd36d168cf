"""Results of queued work."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping

from tinkerwire.local.answers import Answer
from tinkerwire.local.handlers.handler import Handler
from tinkerwire.local.promises import Promise
from tinkerwire.local.requests import Request
from tinkerwire.local.state import State
from tinkerwire_generated.models import FutureRetrieveRequest, TryAgainResponse


def retrieve_future(state: State, request: Request) -> Awaitable[Answer]:
    """Hold the request until the result is there, or for as long as the server holds any."""
    body: FutureRetrieveRequest = request.body
    return _result(state, state.promises.get(body.request_id))


async def _result(state: State, promise: Promise) -> Answer:
    content = await promise.wait(state.settings.hold_s)
    if content is None:
        return Answer(status=408, body=TryAgainResponse(request_id=promise.request_id, queue_state="active"))
    state.promises.mark_fetched(promise)
    return Answer(body=content)


HANDLERS: Mapping[str, Handler] = {"retrieve_future": retrieve_future}
