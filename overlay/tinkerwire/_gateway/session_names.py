"""Names of sessions that the upstream does not keep: the gateway remembers them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import attrs
import orjson

from tinkerwire_base.call import WireResponse
from tinkerwire_generated import models
from tinkerwire_generated.availability import FIELD_VERSIONS

from . import memory as kinds
from .front import ClientRequest, json_object
from .relay import Relay, RelayedExchange

NAME_VERSIONS = FIELD_VERSIONS["CreateSessionRequest"]["display_name"]


class SessionNames:
    """Creates and describes sessions with names.

    Args:
        relay: passes requests to the upstream.
        respond: returns the upstream's response to a request.
    """

    def __init__(
        self, relay: Relay, respond: Callable[[ClientRequest, RelayedExchange], Awaitable[WireResponse]]
    ) -> None:
        self._relay = relay
        self._respond = respond

    async def create(self, request: ClientRequest, exchange: RelayedExchange) -> WireResponse:
        """Create a session, and remember its name if the upstream may not keep it."""
        response = await self._respond(request, exchange)
        body: models.CreateSessionRequest = request.body
        session_id = json_object(response.content).get("session_id")
        if response.status < 300 and isinstance(session_id, str) and body.display_name is not None:
            dialect = await self._relay.upstream.dialect(request.headers)
            if not dialect.rules.always_has(NAME_VERSIONS):
                self._relay.memory.put(kinds.SESSION_NAME, session_id, body.display_name)
        return response

    async def get(self, request: ClientRequest, exchange: RelayedExchange) -> WireResponse:
        """Describe a session with the name that its creator gave it."""
        response = await self._respond(request, exchange)
        if response.status >= 300 or not request.front.has_field("GetSessionResponse", "display_name"):
            return response
        name = self._relay.memory.get(kinds.SESSION_NAME, request.path["session_id"])
        value = json_object(response.content)
        if name is None or value.get("display_name") is not None:
            return response
        return attrs.evolve(response, content=orjson.dumps({**value, "display_name": name}))
