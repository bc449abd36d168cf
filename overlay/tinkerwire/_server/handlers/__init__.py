"""Handlers of the operations of the contract."""

from collections.abc import Mapping

from tinkerwire._server.handlers import (
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
    weights_export,
)
from tinkerwire._server.handlers.handler import Handler as Handler

HANDLERS: Mapping[str, Handler] = {
    **service.HANDLERS,
    **sessions.HANDLERS,
    **training.HANDLERS,
    **weights.HANDLERS,
    **sampling.HANDLERS,
    **futures.HANDLERS,
    **runs.HANDLERS,
    **weights_export.HANDLERS,
    **client_settings.HANDLERS,
    **custom_losses.HANDLERS,
    **not_implemented.HANDLERS,
}
"""Handlers by name of the operation."""
