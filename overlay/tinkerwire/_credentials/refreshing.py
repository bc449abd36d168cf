"""Credential with an expiry: obtained at first use, and refreshed in time, once for all waiting requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import attrs

from tinkerwire_base.errors import TinkerError

from .._futures.logger import log
from .._futures.single_flight import SingleFlight
from .secret import Secret

MARGIN_S = 60.0
"""Seconds before its expiry in which a credential is sent only without a newer one; a tenth of a short lifetime."""
RETRY_S = 60.0
"""Seconds between refreshes after a failure, while the old credential is valid."""


@attrs.frozen(kw_only=True)
class _CurrentCredential:
    secret: Secret
    refresh_at: float
    """Time of a refresh in the background: half the lifetime."""
    must_refresh_at: float
    """Time from which requests wait for the refresh."""
    end: float


class RefreshingCredential:
    """Credential that ``obtain`` returns, used until it expires. Used on the loop thread.

    Args:
        obtain: returns a new credential, or raises TinkerError.
        name: name of the credential for the log.
    """

    def __init__(self, obtain: Callable[[], Coroutine[Any, Any, Secret]], name: str) -> None:
        self._obtain = obtain
        self._name = name
        self._current: _CurrentCredential | None = None
        self._renewal: SingleFlight[Secret] | None = None
        self._retry_at = 0.0

    async def get(self) -> Secret:
        """Return the current credential.

        Raises:
            TinkerError: no credential could be obtained, and the old one has expired.
        """
        current, now = self._current, asyncio.get_running_loop().time()
        if current is None or now >= current.end:
            return await self._start().get()
        if now >= current.refresh_at and now >= self._retry_at:
            if now >= current.must_refresh_at:
                return await self._start().get()
            self._start().start()
        return current.secret

    async def replace(self, rejected: Secret) -> Secret | None:
        """Return the replacement of a credential that the server rejected; None without another one.

        Raises:
            TinkerError: no credential could be obtained.
        """
        if self._current is not None and self._current.secret is rejected:
            self._current = None
        newer = await self.get()
        return None if newer.reveal() == rejected.reveal() else newer

    async def close(self) -> None:
        """Stop a pending refresh."""
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
            self._retry_at = now + RETRY_S
            if self._current is None or now >= self._current.end:
                raise
            log.warning(
                "%s could not be renewed, and expires in %.0f s: %s", self._name, self._current.end - now, error
            )
            return self._current.secret
        finally:
            self._renewal = None
        now = asyncio.get_running_loop().time()
        # A new token that has expired comes from a server whose clock is behind the local one.
        life = secret.expires_in_s() or secret.lifetime_s()
        self._current = _CurrentCredential(
            secret=secret,
            refresh_at=now + life / 2,
            must_refresh_at=now + life - min(MARGIN_S, life / 10),
            end=now + life,
        )
        self._retry_at = 0.0
        return secret
