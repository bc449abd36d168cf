"""The dialect of one server: asked for once, corrected by what the server does, kept for the life of a client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from tinkerwire_base.call import Call, WireResponse
from tinkerwire_base.errors import APIStatusError
from tinkerwire_generated.api.auth import client_config
from tinkerwire_generated.models import ClientConfigRequest, ClientConfigResponse
from tinkerwire_generated.times import NEWEST

from ..futures.once import Once
from ..wire.dialect import Dialect, found

ABSENT = (404, 405)
"""What a server answers to a call that it does not have."""
Ask: TypeAlias = Callable[[Call[ClientConfigResponse]], Awaitable[tuple[ClientConfigResponse, WireResponse]]]
"""Sends client/config, and returns its result together with the response that held it."""


class DialectResolver:
    """The dialect in which a client addresses its server. Used on the loop thread.

    Args:
        ask: see :data:`Ask`.
        known: the dialect where it was given; None to find it out.
    """

    def __init__(self, ask: Ask, known: Dialect | None) -> None:
        self.known = known
        """None until it was asked for."""
        self._discovery = Once(lambda: discover_dialect(ask))

    async def get(self) -> Dialect:
        """Return the dialect; ask the server for it the first time.

        Raises:
            TinkerError: what the request met.
        """
        if self.known is None:
            discovered = await self._discovery.get()
            # A batch may have taught more in the meantime.
            self.known = self.known or discovered
        return self.known

    async def close(self) -> None:
        """Cancel a request that is under way."""
        await self._discovery.close()


async def discover_dialect(ask: Ask) -> Dialect:
    """Return the dialect of a server by its answer to client/config, or that of servers without it.

    Raises:
        TinkerError: what the request met.
    """
    try:
        config, _ = await ask(client_config(body=ClientConfigRequest(sdk_version=NEWEST)))
    except APIStatusError as error:
        if error.status_code not in ABSENT:
            raise
        return found(None)
    return found(config)
