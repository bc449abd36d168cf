"""The interface of middleware: code that runs around the handling of each request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from tinkerwire_base.call import WireRequest, WireResponse

CallNext: TypeAlias = Callable[[WireRequest], Awaitable[WireResponse]]
"""Handle a request by the next middleware, or by the server itself."""


class Middleware(Protocol):
    """An object that may change, answer or drop a request, and change its response."""

    async def handle(self, operation: str, request: WireRequest, call_next: CallNext) -> WireResponse:
        """Return the response to a request.

        Args:
            operation: name of the operation.
            request: the request as the client sent it, with header names in lower case.
            call_next: handles the request further.

        Raises:
            HttpError: the request is rejected.
            ConnectionDropped: the connection is to be closed without a response.
        """
        ...


def apply_middleware(operation: str, middleware: Middleware, call_next: CallNext) -> CallNext:
    """Return a function that handles requests of an operation by ``middleware``, then by ``call_next``."""

    def handle(request: WireRequest) -> Awaitable[WireResponse]:
        return middleware.handle(operation, request, call_next)

    return handle
