"""The dialect of one server: asked for once, corrected by what the server does, kept for the life of a client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from typing import TypeAlias

import attrs

from tinkerwire_base.call import Call, WireResponse
from tinkerwire_base.conversion.converter import parse_json
from tinkerwire_base.errors import APIStatusError
from tinkerwire_generated.api.auth import client_config
from tinkerwire_generated.availability import NEWEST
from tinkerwire_generated.models import ClientConfigRequest, ClientConfigResponse

from .._futures.single_flight import SingleFlight
from .._futures.timeout import wait_for
from .._transport import address
from .._wire.dialect import Dialect, found

ENDPOINT_MISSING = (404, 405)
"""What a server answers to a call that it does not have."""
TRIAL_WAIT_S = 5.0
"""Time that a batch waits for another one to find the form; then it is sent in the likely form."""
Ask: TypeAlias = Callable[[Call[ClientConfigResponse]], Awaitable[tuple[ClientConfigResponse, WireResponse]]]
"""Sends client/config, and returns its result together with the response that held it."""


class DialectResolver:
    """The dialect in which a client addresses its server. Used on the loop thread.

    Args:
        ask: see :data:`Ask`.
        known: the dialect where it was given; None to find it out.
        base_url: the address of the server.
    """

    def __init__(self, ask: Ask, known: Dialect | None, base_url: str) -> None:
        self.known = known
        """None until it was asked for."""
        self.refused: set[str] = set()
        """The names of the forms of batches that the server has refused."""
        self._discovery = SingleFlight(lambda: discover_dialect(ask, is_tinker=address.is_tinker_service(base_url)))
        self._trial = asyncio.Lock()

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

    def learn_form(self, name: str, form: Dialect) -> None:
        """Note that the server has taken the body of a call in a form; see :meth:`Dialect.forms`."""
        if self.known is not None:
            learned = self.known.learned(name, form)
            # A batch is split anew where the dialect is another one.
            self.known = self.known if learned == self.known else learned

    def learn_json_results(self) -> None:
        """Note that the server gives no results while protobuf is among the forms that are asked for."""
        if self.known is not None:
            self.known = attrs.evolve(self.known, has_binary_results=False)

    def learn_separate_load(self) -> None:
        """Note that the server creates no model by load_weights, although its flags say so."""
        if self.known is not None:
            config = attrs.evolve(self.known.config, create_model_via_load_weights=False)
            self.known = attrs.evolve(self.known, config=config)

    @asynccontextmanager
    async def trial(self) -> AsyncIterator[None]:
        """Let one batch at a time find the form; the others wait at most a few seconds."""
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
        """Cancel a request that is under way."""
        await self._discovery.close()


async def discover_dialect(ask: Ask, *, is_tinker: bool) -> Dialect:
    """Return the dialect of a server by its answer to client/config, or that of servers without it.

    Raises:
        TinkerError: what the request met.
    """
    try:
        config, response = await ask(client_config(body=ClientConfigRequest(sdk_version=NEWEST)))
    except APIStatusError as error:
        if error.status_code not in ENDPOINT_MISSING:
            raise
        return found(None)
    return found(config, _flags(response), is_tinker=is_tinker)


def _flags(response: WireResponse) -> Collection[str]:
    """Return the names of the flags that a response holds."""
    flags = parse_json(response.content)
    return flags.keys() if isinstance(flags, dict) else ()
