"""The form of a handler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import Response
from tinkerwire._server.state import State

Handler: TypeAlias = Callable[[State, Request], Response | Awaitable[Response]]
"""Runs on the event loop under the state's lock, so it must be quick; a coroutine it gives back runs without it."""
