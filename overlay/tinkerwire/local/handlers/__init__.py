"""What each operation of the contract does."""

from collections.abc import Mapping

from tinkerwire.local.handlers import (
    clients,
    custom_losses,
    futures,
    runs,
    sampling,
    service,
    sessions,
    sharing,
    training,
    unavailable,
    weights,
)
from tinkerwire.local.handlers.handler import Handler as Handler

HANDLERS: Mapping[str, Handler] = {
    **service.HANDLERS,
    **sessions.HANDLERS,
    **training.HANDLERS,
    **weights.HANDLERS,
    **sampling.HANDLERS,
    **futures.HANDLERS,
    **runs.HANDLERS,
    **sharing.HANDLERS,
    **clients.HANDLERS,
    **custom_losses.HANDLERS,
    **unavailable.HANDLERS,
}
"""By the operation's name. One that must wait gives back a coroutine."""
