"""Ways to change the embedded server: its functions, its requests and its responses."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import attrs

from tinkerwire._server import handlers
from tinkerwire._server.app import EmbeddedServer
from tinkerwire._server.http.responses import HttpError
from tinkerwire_base.call import JSON, WireRequest, WireResponse

KEY = "tml-mutations"
"""The key that the server asks for."""
JSON_HEADERS = {"content-type": JSON}
When = Callable[[WireRequest, WireResponse], bool]


def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Replace an attribute by what ``make`` returns for the original."""
    setattr(owner, name, make(getattr(owner, name)))


def replace_handler(operation: str, make: Callable[[Any], Any]) -> None:
    """Replace the handler of an operation."""
    table: Any = handlers.HANDLERS
    table[operation] = make(table[operation])


def error(status: int = 422) -> HttpError:
    """Return an error for handlers to raise."""
    return HttpError(status, "mutated")


def around(change: Callable[[WireRequest, Any], Any]) -> None:
    """Put an async function around the server: it gets each request and the server's own ``handle``."""
    original = EmbeddedServer.handle

    async def handle(self: EmbeddedServer, request: WireRequest) -> WireResponse:
        async def go_on(request: WireRequest) -> WireResponse:
            return await original(self, request)

        lowered = attrs.evolve(request, headers={name.lower(): value for name, value in request.headers.items()})
        response: WireResponse = await change(lowered, go_on)
        return response

    EmbeddedServer.handle = handle  # type: ignore[method-assign]


def operation_of(request: WireRequest) -> str:
    """Return the path below ``/api/v1/``."""
    return request.path.removeprefix("/api/v1/")


def matches(pattern: str, request: WireRequest) -> bool:
    """Check whether a pattern is the whole path below ``/api/v1/``."""
    return re.fullmatch(pattern, operation_of(request)) is not None


def read(content: bytes | None) -> Any:
    """Return the JSON value of a body; None for any other content."""
    try:
        return json.loads(content) if content else None
    except (ValueError, RecursionError):
        return None


def change_request(pattern: str, change: Callable[[WireRequest], WireRequest]) -> None:
    """Change the requests of operations."""

    async def handle(request: WireRequest, go_on: Any) -> WireResponse:
        return await go_on(change(request) if matches(pattern, request) else request)

    around(handle)


def change_request_body(pattern: str, change: Callable[[dict[str, Any]], Any], *, is_lenient: bool = False) -> None:
    """Change JSON objects in requests; ``change`` gets the object, and changes it.

    Bodies that the contract does not allow stay as they are, as a change could hide what is wrong with them;
    ``is_lenient`` changes them, too.
    """
    original = EmbeddedServer.handle

    async def handle(self: EmbeddedServer, request: WireRequest) -> WireResponse:
        body = read(request.content) if matches(pattern, request) else None
        if isinstance(body, dict) and (is_lenient or _is_allowed(self, request)):
            change(body)
            request = attrs.evolve(request, content=json.dumps(body).encode())
        return await original(self, request)

    EmbeddedServer.handle = handle  # type: ignore[method-assign]


def _is_allowed(server: EmbeddedServer, request: WireRequest) -> bool:
    headers = {name.lower(): value for name, value in request.headers.items()}
    try:
        operation, _ = server._router.find(request.method, request.path)
        server._validator.parse_body(operation, request.content, headers)
    except HttpError:
        return False
    return True


def change_response(pattern: str, change: Callable[[WireRequest, WireResponse], WireResponse]) -> None:
    """Change the responses of operations."""

    async def handle(request: WireRequest, go_on: Any) -> WireResponse:
        response = await go_on(request)
        return change(request, response) if matches(pattern, request) else response

    around(handle)


def change_body(pattern: str, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change JSON objects in successful responses; ``change`` gets the object, and changes it."""

    def changed(_: WireRequest, response: WireResponse) -> WireResponse:
        body = read(response.content)
        if response.status != 200 or not isinstance(body, dict):
            return response
        change(body)
        return attrs.evolve(response, content=json.dumps(body).encode())

    change_response(pattern, changed)


def set_field(pattern: str, **values: Any) -> None:
    """Set fields of successful responses."""
    change_body(pattern, lambda body: body.update(values))


def change_field(pattern: str, name: str, change: Callable[[Any], Any]) -> None:
    """Change a field of successful responses, where it is present."""
    change_body(pattern, lambda body: body.update({name: change(body[name])}) if name in body else None)


def respond(
    pattern: str, status: int, content: bytes = b'{"detail":"mutated"}', *, when: When = lambda *_: True
) -> None:
    """Respond with a status in place of the server's response, under a condition."""

    def changed(request: WireRequest, response: WireResponse) -> WireResponse:
        if not when(request, response):
            return response
        return WireResponse(status=status, headers=JSON_HEADERS, content=content)

    change_response(pattern, changed)


def change_header(name: str, value: str | None, pattern: str = ".*", *, when: When = lambda *_: True) -> None:
    """Set a header of responses; None removes it."""

    def changed(request: WireRequest, response: WireResponse) -> WireResponse:
        if not when(request, response):
            return response
        headers = {key: old for key, old in response.headers.items() if key.lower() != name}
        return attrs.evolve(response, headers=headers if value is None else {**headers, name: value})

    change_response(pattern, changed)


def is_error(_: WireRequest, response: WireResponse) -> bool:
    """Check whether the server rejected a request."""
    return response.status >= 400


def contains(part: bytes) -> When:
    """Return a condition: the body of the request contains some bytes."""
    return lambda request, _: part in (request.content or b"")


def rejection(status: int) -> WireResponse:
    """Return the response to a rejected request."""
    return WireResponse(status=status, headers=JSON_HEADERS, content=b'{"detail":"mutated"}')
