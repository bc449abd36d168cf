"""The type of a handler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import Response
from tinkerwire._server.state import State

Handler: TypeAlias = Callable[[State, Request], Response | Awaitable[Response]]
"""A function that handles one operation. It runs on the event loop with the state's lock held, so it must be quick. A
handler that waits returns a coroutine, which runs without the lock."""
