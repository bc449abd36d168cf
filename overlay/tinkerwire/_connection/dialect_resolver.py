"""The dialect of one server: discovered once, corrected by later responses, and kept for the life of a client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from typing import TypeAlias

import attrs

from tinkerwire_base.call import Call, WireResponse
from tinkerwire_base.conversion.json_text import parse_json
from tinkerwire_base.errors import APIStatusError
from tinkerwire_generated import models
from tinkerwire_generated.api.auth import client_config
from tinkerwire_generated.availability import NEWEST

from .._futures.single_flight import SingleFlight
from .._futures.timeout import wait_for
from .._transport import address
from .._wire.dialect import Dialect

ENDPOINT_MISSING = (404, 405)
"""Statuses of servers that do not have an endpoint."""
TRIAL_WAIT_S = 5.0
"""Time that a batch waits for another batch to find the encoding; then it is sent in the likely encoding."""
FetchConfig: TypeAlias = Callable[
    [Call["models.ClientConfigResponse"]], Awaitable[tuple["models.ClientConfigResponse", WireResponse]]
]
"""Function that sends client/config and returns its result together with the response."""


class DialectResolver:
    """The dialect in which a client addresses its server. Used on the loop thread.

    Args:
        fetch_config: see :data:`FetchConfig`.
        dialect: the dialect if the wire version is set; None to discover it.
        base_url: the address of the server.
    """

    def __init__(self, fetch_config: FetchConfig, dialect: Dialect | None, base_url: str) -> None:
        self.current = dialect
        """Dialect in use; None until it is discovered."""
        self.refused: set[str] = set()
        """The names of the encodings of batches that the server has rejected."""
        is_tinker = address.is_tinker_service(base_url)
        self._discovery = SingleFlight(lambda: discover_dialect(fetch_config, is_tinker=is_tinker))
        self._trial = asyncio.Lock()

    async def get(self) -> Dialect:
        """Return the dialect; the first call discovers it.

        Raises:
            TinkerError: the request failed.
        """
        if self.current is None:
            discovered = await self._discovery.get()
            # A batch may have corrected the dialect in the meantime.
            self.current = self.current or discovered
        return self.current

    def learn_form(self, name: str, form: Dialect) -> None:
        """Record that the server has accepted the body of a call in an encoding; see :meth:`Dialect.forms`."""
        if self.current is not None:
            learned = self.current.as_confirmed(name, form)
            # A new object would make callers split their batches again.
            self.current = self.current if learned == self.current else learned

    def learn_json_results(self) -> None:
        """Record that the server returns no results to requests that accept protobuf."""
        if self.current is not None:
            self.current = attrs.evolve(self.current, accepts_protobuf_results=False)

    def learn_separate_load(self) -> None:
        """Record that the server cannot create a model by load_weights, although its flags announce that."""
        if self.current is not None:
            config = attrs.evolve(self.current.config, create_model_via_load_weights=False)
            self.current = attrs.evolve(self.current, config=config)

    @asynccontextmanager
    async def trial(self) -> AsyncIterator[None]:
        """Let one batch at a time find the encoding; the others wait at most a few seconds."""
        try:
            await wait_for(self._trial.acquire(), TRIAL_WAIT_S)
        except asyncio.TimeoutError:
            yield
            return
        try:
            yield
        finally:
            self._trial.release()

    async def close(self) -> None:
        """Cancel a discovery that is in progress."""
        await self._discovery.close()


async def discover_dialect(fetch_config: FetchConfig, *, is_tinker: bool) -> Dialect:
    """Return the dialect of a server by its response to client/config, or the dialect of servers without that endpoint.

    Raises:
        TinkerError: the request failed.
    """
    try:
        config, response = await fetch_config(client_config(body=models.ClientConfigRequest(sdk_version=NEWEST)))
    except APIStatusError as error:
        if error.status_code not in ENDPOINT_MISSING:
            raise
        return Dialect.from_client_config(None)
    return Dialect.from_client_config(config, _flags(response), is_tinker=is_tinker)


def _flags(response: WireResponse) -> Collection[str]:
    """Return the names of the flags that a response holds."""
    flags = parse_json(response.content)
    return flags.keys() if isinstance(flags, dict) else ()
