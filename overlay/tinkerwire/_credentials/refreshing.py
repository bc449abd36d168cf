"""A credential that runs out: obtained at first need, renewed in time, by one renewal for all who wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import attrs

from tinkerwire_base.errors import TinkerError

from .._futures.reporting import log
from .._futures.single_flight import SingleFlight
from .secret import Secret

MARGIN_S = 60.0
"""So long before its end a credential is only sent where there is no newer one; for short lives, a tenth of them."""
RETRY_S = 60.0
"""How long a renewal that failed is left alone while the old credential is good."""


@attrs.frozen(kw_only=True)
class _Held:
    secret: Secret
    due: float
    """When to renew it without waiting for that: at half its life."""
    late: float
    """When to wait for the renewal."""
    end: float


class RefreshingCredential:
    """The credential that ``obtain`` brings, for as long as it is good. Used on the loop thread.

    Args:
        obtain: brings a new one, or raises TinkerError.
        name: what it is, for the log.
    """

    def __init__(self, obtain: Callable[[], Coroutine[Any, Any, Secret]], name: str) -> None:
        self._obtain = obtain
        self._name = name
        self._held: _Held | None = None
        self._renewal: SingleFlight[Secret] | None = None
        self._quiet_until = 0.0

    async def get(self) -> Secret:
        """The credential to send now.

        Raises:
            TinkerError: what obtaining it met, unless the old one is still good.
        """
        held, now = self._held, asyncio.get_running_loop().time()
        if held is None or now >= held.end:
            return await self._start().get()
        if now >= held.due and now >= self._quiet_until:
            if now >= held.late:
                return await self._start().get()
            self._start().begin()
        return held.secret

    async def after(self, refused: Secret) -> Secret | None:
        """What to send in place of a credential that the server refused; None when there is no other one.

        Raises:
            TinkerError: what obtaining it met.
        """
        if self._held is not None and self._held.secret is refused:
            self._held = None
        newer = await self.get()
        return None if newer.reveal() == refused.reveal() else newer

    async def close(self) -> None:
        """Stop a renewal that still goes on."""
        if self._renewal is not None:
            await self._renewal.close()

    def _start(self) -> SingleFlight[Secret]:
        if self._renewal is None:
            self._renewal = SingleFlight(self._renew)
        return self._renewal

    async def _renew(self) -> Secret:
        try:
            secret = await self._obtain()
        except TinkerError as error:
            now = asyncio.get_running_loop().time()
            self._quiet_until = now + RETRY_S
            if self._held is None or now >= self._held.end:
                raise
            log.warning("%s cannot be renewed yet; it lasts %.0f s more: %s", self._name, self._held.end - now, error)
            return self._held.secret
        finally:
            self._renewal = None
        now, life = asyncio.get_running_loop().time(), secret.life_s()
        self._held = _Held(
            secret=secret, due=now + life / 2, late=now + life - min(MARGIN_S, life / 10), end=now + life
        )
        self._quiet_until = 0.0
        return secret
