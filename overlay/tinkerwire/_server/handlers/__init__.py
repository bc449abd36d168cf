"""Handlers of the operations of the contract."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from tinkerwire._server.handlers import (
    billing,
    client_settings,
    custom_losses,
    futures,
    not_implemented,
    runs,
    sampling,
    service,
    sessions,
    training,
    weights,
)
from tinkerwire._server.http.request import Request
from tinkerwire._server.http.responses import Response
from tinkerwire._server.state import State
from tinkerwire_generated.operations import OPERATIONS

Handler: TypeAlias = Callable[[State, Request], Response | Awaitable[Response]]
"""A function that handles one operation. It runs on the event loop with the state's lock held, so it must be quick. A
handler that waits returns a coroutine, which runs without the lock."""

_MODULES = (
    service,
    sessions,
    training,
    weights,
    sampling,
    futures,
    runs,
    client_settings,
    custom_losses,
    billing,
)

HANDLERS: Mapping[str, Handler] = {
    **{name: getattr(module, name) for module in _MODULES for name in OPERATIONS if hasattr(module, name)},
    **dict.fromkeys(not_implemented.REASONS, not_implemented.reject),
}
"""Handlers by name of the operation, which is the name of the function as well."""
